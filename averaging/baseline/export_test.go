package baseline

import (
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
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

// Coordinators are the servers of the parts, as this peer knows them.
func (m *ParamServers) Coordinators() (list []topology.PeerID) {
	for _, part := range m.parts {
		list = append(list, part.coordinator)
	}
	return list
}

// Describe prints a word as transcripts show it. names are all peers there are.
func Describe(w collective.Message, names []topology.PeerID, server bool) string {
	named := func(m uint64) topology.PeerID {
		for _, id := range names {
			if id.Fingerprint() == m {
				return id
			}
		}
		return "nobody"
	}
	if w.Sum != nil {
		return describeSum(w.Sum)
	}
	switch w.Kind {
	case messageWho:
		return "who coordinates?"
	case messageLead:
		return fmt.Sprintf("%s coordinates, at version %d", named(w.View), w.Round)
	case messageNone:
		return "no coordinator known"
	case messageParting:
		return "the run is over here"
	case messageStatus:
		if server {
			return fmt.Sprintf("%s, push %d", [...]string{"training", "pushing", "pulling", "done"}[int(w.Value)], w.Round)
		}
		state := "updating"
		switch {
		case w.View&isDone != 0:
			state = "done"
		case w.View&isReady != 0:
			state = "ready"
		}
		return fmt.Sprintf("%s, at version %d", state, w.View>>statusBits)
	case collective.MessageAck:
		return "heard"
	case collective.MessageRetry:
		return fmt.Sprintf("ready for attempt %d", w.Round)
	case messageBatch:
		return fmt.Sprintf("take %g samples", w.Value)
	case messageSpeed:
		return fmt.Sprintf("%.1f samples a second", w.Value)
	case messageSamples:
		return fmt.Sprintf("push %d is of %g samples", w.Round, w.Value)
	case messageVersion:
		return fmt.Sprintf("parameters of version %d come", w.Round)
	case messageAt:
		return fmt.Sprintf("in round %d%s", w.Round, map[bool]string{true: ", exchange over"}[w.Value > 0])
	}
	return w.String()
}

// describeSum prints what is said of a sum.
func describeSum(s *wire.Sum) string {
	switch s.Kind {
	case wire.SumStatus:
		return fmt.Sprintf("%s: %s, attempt %d, %d steps taken", s.Name, [...]string{"waiting", "with a place", "with the sum"}[s.Stage], s.Attempt, s.Rank>>12)
	case wire.SumAsk:
		return s.Name + ": have you a part?"
	case wire.SumNone:
		return s.Name + ": no part"
	case wire.SumPlace:
		return fmt.Sprintf("%s: place %d of %d in attempt %d, partners %s", s.Name, s.Rank, s.Size, s.Attempt, strings.Join(s.Partners, " "))
	case wire.SumVoid:
		return fmt.Sprintf("%s: attempt %d is given up", s.Name, s.Attempt)
	case wire.SumCommit:
		return fmt.Sprintf("%s: all have the sum of attempt %d", s.Name, s.Attempt)
	case wire.SumBroken:
		return fmt.Sprintf("%s: attempt %d broke off with %s", s.Name, s.Attempt, s.Next)
	}
	return fmt.Sprintf("%s: kind %d %s", s.Name, s.Kind, s.Detail)
}
