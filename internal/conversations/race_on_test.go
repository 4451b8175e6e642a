//go:build race

package conversations

// underRace tells that the race detector runs.
const underRace = true
