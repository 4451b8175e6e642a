// Package mask hides what members bring to a sum, so that whoever hears it learns the sum of all and nothing else
// (docs/design/043, after Bonawitz and others, 2017). Values become integers modulo 2^64 (Encode). A member adds masks
// that it has with its neighbours, which cancel in the sum of all, and a second mask of its own, which stays in the sum
// until all have told their seeds (Masks, Open). Masks follow from secrets of two members (Keys) and from all that
// participants have to agree on (Roster). All is arithmetic: keys, nonces and signatures are arguments.
package mask
