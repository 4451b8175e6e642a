package baseline

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Version names the parameters of a peer: where they are the same, the models are. It is ""
// if a peer's are its own.
func (c *coordination) Version() string {
	if c.version <= initialVersion {
		return [...]string{"", "initial"}[c.version]
	}
	return fmt.Sprintf("%s/%d", c.coordinator, c.version)
}

// Clock is how many pushes of a worker have been answered.
func (m *ParamServer) Clock() uint64 { return m.clock }

// Describe prints a word as transcripts show it. names are all peers there are.
func Describe(w collective.Word, names []topology.PeerID, server bool) string {
	named := func(m uint64) topology.PeerID {
		for _, id := range names {
			if collective.Mark(id) == m {
				return id
			}
		}
		return "nobody"
	}
	at, _ := collective.PlaceOf(w)
	switch w.Kind {
	case wordWho:
		return "who coordinates?"
	case wordLead:
		return fmt.Sprintf("%s coordinates, at version %d", named(w.View), w.Round)
	case wordNone:
		return "no coordinator known"
	case wordParting:
		return "the run is over here"
	case collective.WordStatus:
		if server {
			return fmt.Sprintf("%s, push %d", [...]string{"training", "pushing", "pulling", "done"}[int(w.Value)], w.Round)
		}
		state := "updating"
		switch {
		case w.View&isDone != 0:
			state = "done"
		case w.View&isReady != 0:
			state = [...]string{"ready", "ready, with a place", "in the ring", "with the sum"}[int(w.Value)]
		}
		return fmt.Sprintf("%s, at version %d, last attempt %d", state, w.View>>statusBits, w.Round)
	case collective.WordHeard:
		return "heard"
	case collective.WordPlace:
		return fmt.Sprintf("place %d of %d in attempt %d, between %s and %s", at.Rank, at.Size, w.Round, named(at.Previous), named(at.Next))
	case collective.WordRegroup:
		return fmt.Sprintf("attempt %d is broken off", w.Round)
	case collective.WordCommit:
		return fmt.Sprintf("all have the sum of attempt %d", w.Round)
	case collective.WordBroken:
		if w.View == 0 {
			return fmt.Sprintf("attempt %d broke off", w.Round)
		}
		return fmt.Sprintf("attempt %d broke off with %s", w.Round, named(w.View))
	case collective.WordAgain:
		return fmt.Sprintf("ready for attempt %d", w.Round)
	case wordBatch:
		return fmt.Sprintf("take %g samples", w.Value)
	case wordSpeed:
		return fmt.Sprintf("%.1f samples a second", w.Value)
	case wordSamples:
		return fmt.Sprintf("push %d is of %g samples", w.Round, w.Value)
	case wordAt:
		return fmt.Sprintf("at the barrier of round %d%s", w.Round, map[bool]string{true: ", exchange over"}[w.Value > 0])
	}
	return w.String()
}
