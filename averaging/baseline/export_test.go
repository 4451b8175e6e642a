package baseline

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Version names the parameters of a peer: where they are the same, the models are.
func (c *coordination) Version() string {
	if c.round == 0 {
		return "0"
	}
	return fmt.Sprintf("%x/%d", c.reign, c.round)
}

// Coordinator is who coordinates, as a peer knows it.
func (c *coordination) Coordinator() topology.PeerID { return c.coordinator }

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
	high, low := collective.Unpack(w.Value, leadBits)
	at, _ := collective.PlaceOf(w)
	attempt, p := collective.Unpack(w.Value, statusBits)
	switch w.Kind {
	case wordWho:
		return "who coordinates?"
	case wordLead:
		return fmt.Sprintf("%s coordinates, with %d workers, at round %d", named(low), high, w.Round)
	case wordNone:
		return "no coordinator known"
	case wordParting:
		return "the run is over here"
	case wordStatus:
		if server {
			return fmt.Sprintf("%s, push %d", [...]string{"training", "pushing", "pulling", "done"}[p], w.Round)
		}
		return fmt.Sprintf("%s, at round %d, last attempt %d", [...]string{"ready", "in the ring", "with the sum", "updating", "done"}[p&^phaseInitial], w.Round, attempt)
	case wordHeard:
		return "heard"
	case wordPlace:
		return fmt.Sprintf("place %d of %d in attempt %d, between %s and %s", at.Rank, at.Size, w.Round, named(at.Previous), named(at.Next))
	case wordRegroup:
		return fmt.Sprintf("attempt %d is broken off", w.Round)
	case wordCommit:
		return fmt.Sprintf("all have the sum of attempt %d", w.Round)
	case wordBroken:
		if w.View == 0 {
			return fmt.Sprintf("attempt %d broke off", w.Round)
		}
		return fmt.Sprintf("attempt %d broke off with %s", w.Round, named(w.View))
	case wordAgain:
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
