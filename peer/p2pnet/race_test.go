//go:build race

package p2pnet

// raceEnabled tells whether the race detector watches.
const raceEnabled = true
