package watch

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Alarm is one of a member.
type Alarm struct {
	Peer  transport.PeerID `json:"peer"`
	Name  string           `json:"alarm"`
	Since float64          `json:"since_seconds"`
	Text  string           `json:"text"`
}

// Alarms judges the members of a run by what they tell, one look after the other. The zero value is ready.
type Alarms struct {
	of map[transport.PeerID]*stats.Alarms
}

// See judges members by what they tell, and the peer that looks, if it is one of them, by its own reading.
func (a *Alarms) See(members []control.Member, self transport.PeerID, own stats.Reading) []Alarm {
	readings := map[transport.PeerID]stats.Reading{}
	training := 0
	for _, m := range members {
		if m.State == control.Training {
			training++
		}
		if !m.Received.IsZero() {
			readings[m.ID] = stats.Reading{At: own.At, Exchanged: m.Exchanged, Distance: m.ConsensusDistance, Accuracy: math.NaN(), Exchanges: m.State == control.Training}
		}
	}
	if self != "" {
		own.Exchanges = readings[self].Exchanges
		readings[self] = own
	}
	kept, all := make(map[transport.PeerID]*stats.Alarms, len(readings)), []Alarm{}
	for id, r := range readings {
		r.Exchanges = r.Exchanges && training > 1
		if kept[id] = a.of[id]; kept[id] == nil {
			kept[id] = &stats.Alarms{}
		}
		for _, one := range kept[id].See(r) {
			all = append(all, Alarm{id, one.Name, r.At.Sub(one.Since).Seconds(), one.Text})
		}
	}
	a.of = kept
	slices.SortFunc(all, func(a, b Alarm) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Peer, b.Peer)) })
	return all
}
