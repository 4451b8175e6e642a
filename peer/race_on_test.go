//go:build race

package peer_test

// underRace tells that the race detector runs, which makes large flocks ten times
// slower.
const underRace = true

// sparing is by what runs that only repeat themselves are shorter under the race
// detector. Without it they are whole.
const sparing = 2
