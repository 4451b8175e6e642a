package pipeline

import (
	"cmp"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// sayEvery is how often it is said that stages have nobody.
const sayEvery = 10 * time.Second

// members knows who has which stage, and since when a stage has nobody.
type members struct {
	with  Config
	self  transport.PeerID
	whole bool        // all stages have had members at once
	empty []time.Time // since when a stage has had none; zero if it has some
	said  time.Time
}

func newMembers(self transport.PeerID, with Config) *members {
	return &members{with: with, self: self, empty: make([]time.Time, with.Plan.Parts())}
}

// of lists the members that train a stage, this one among them. There are none behind the last.
func (m *members) of(records []transport.Record, stage int) (ids []transport.PeerID) {
	part := m.with.Plan.part(stage)
	for _, r := range records {
		if flock.Trains(r) && int(r.Stage) == part+1 {
			ids = append(ids, r.Peer)
		}
	}
	if part == m.with.Stage {
		ids = append(ids, m.self)
	}
	slices.Sort(ids)
	return ids
}

// having lists the other members that have a part's parameters, though they may have ended to train it.
func (m *members) having(records []transport.Record, part int) (ids []transport.PeerID) {
	for _, r := range records {
		if int(r.Stage) == part+1 && r.Peer != m.self {
			ids = append(ids, r.Peer)
		}
	}
	return ids
}

// before tells whether a member may send to a stage of this one: it has the stage before, or, for the first, any or none, unless
// that stays with the data.
func (m *members) before(records []transport.Record, id transport.PeerID, stage int) bool {
	if id == m.self || stage == 0 && m.with.Plan.ends {
		return id == m.self && stage == 0
	}
	at, here := slices.BinarySearchFunc(records, id, func(r transport.Record, id transport.PeerID) int { return cmp.Compare(r.Peer, id) })
	return here && (stage == 0 || int(records[at].Stage) == m.with.Plan.part(stage-1)+1)
}

// look notes which stages have nobody. It returns the first that has been so for too long.
func (m *members) look(records []transport.Record, now time.Time) error {
	var missing []int
	for stage := range m.empty {
		if len(m.of(records, stage)) > 0 {
			m.empty[stage] = time.Time{}
			continue
		}
		if missing = append(missing, stage+1); m.empty[stage].IsZero() {
			m.empty[stage] = now
		}
		if m.whole && now.Sub(m.empty[stage]) > m.with.Patience {
			return &StageLostError{Stage: stage, Of: len(m.with.Plan.Stages)}
		}
	}
	m.whole = m.whole || len(missing) == 0
	if len(missing) > 0 && now.Sub(m.said) > sayEvery {
		m.said = now
		m.with.Log.Warn("waiting for members that take a stage: start more"+m.who(), zap.Ints("stages", missing), zap.Int("of", len(m.with.Plan.Stages)))
	}
	return nil
}

// who says which members take stages, where not any does.
func (m *members) who() string {
	if !m.with.Plan.ends {
		return ""
	}
	return ", with data for the first and last, without for those between"
}
