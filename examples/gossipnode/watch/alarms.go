package watch

import (
	"cmp"
	"math"
	"slices"
	"time"

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

// Bounds are what alarms of this peer's own are judged by, beside its figures. The zero value has none.
type Bounds struct {
	// Saved is the age of its last checkpoint, if it keeps any; one is due each SaveEvery.
	Saved     func() (age time.Duration, kept bool)
	SaveEvery time.Duration
	Budget    float64 // of exchanges that it begins, bytes an hour
}

// Reading is what alarms of this peer are judged by.
func (b Bounds) Reading(s stats.Peer, accuracy float64) stats.Reading {
	x := s.Exchanges
	r := stats.Reading{At: time.Now(), Lost: s.Lost, Exchanged: x.Last, Distance: x.ConsensusDistance, Accuracy: accuracy, Budget: b.Budget}
	r.Moved = float64(x.BytesSent+x.BytesReceived) * float64(x.Initiated) / float64(max(x.Completed(), 1))
	if b.Saved != nil && !s.Control.Paused && !s.Over && s.Steps > s.Resumed {
		if age, kept := b.Saved(); kept {
			r.Saved, r.SaveEvery = age, b.SaveEvery
		}
	}
	return r
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
			readings[m.ID] = stats.Reading{
				At: own.At, Exchanged: m.Exchanged, Distance: m.ConsensusDistance, Accuracy: math.NaN(), Exchanges: m.State == control.Training, Told: m.Alarms,
			}
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

// Own is See for the peer that looks: its own alarms, to tell others.
func (a *Alarms) Own(members []control.Member, self transport.PeerID, own stats.Reading) stats.AlarmSet {
	var raised []stats.Alarm
	for _, one := range a.See(members, self, own) {
		if one.Peer == self {
			raised = append(raised, stats.Alarm{Name: one.Name})
		}
	}
	return stats.SetOf(raised)
}
