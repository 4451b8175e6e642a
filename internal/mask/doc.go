// Package mask hides the numbers of members in a sum, so that a participant learns only the sum of all
// (docs/design/043, after Bonawitz and others, 2017). Values become integers modulo 2^64 (Encode). A member adds
// masks that it shares with its neighbours, which cancel in the sum of all. It also adds a second mask of its own,
// which stays in the sum until all have revealed their seeds (Masks, Open). Masks follow from secrets of two members
// (Keys) and from the data that participants agree on (Roster). Everything is arithmetic: keys, nonces and signatures
// are arguments.
package mask
