//go:build race

package peer_test

// underRace tells that the race detector runs, which makes large flocks ten times
// slower.
const underRace = true
