//go:build !race

package peer_test

// underRace tells that the race detector runs, which makes large flocks ten times
// slower.
const underRace = false

// sparing is by what runs that only repeat themselves are shorter under the race
// detector.
const sparing = 1
