//go:build !race

package swim

// underRace tells that the race detector runs, which makes wide flocks take minutes.
const underRace = false
