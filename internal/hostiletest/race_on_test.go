//go:build race

package hostiletest_test

// underRace tells that the race detector runs: under it flocks are smaller and attacks fewer.
const underRace = true
