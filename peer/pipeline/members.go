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
	return &members{with: with, self: self, empty: make([]time.Time, len(with.Plan.Stages))}
}

// of lists the members that train a stage, this one among them.
func (m *members) of(records []transport.Record, stage int) (ids []transport.PeerID) {
	for _, r := range records {
		if flock.Trains(r) && int(r.Stage) == stage+1 {
			ids = append(ids, r.Peer)
		}
	}
	if stage == m.with.Stage {
		ids = append(ids, m.self)
	}
	slices.Sort(ids)
	return ids
}

// having lists the other members that have a stage's parameters, though they may have ended to train it.
func (m *members) having(records []transport.Record, stage int) (ids []transport.PeerID) {
	for _, r := range records {
		if int(r.Stage) == stage+1 && r.Peer != m.self {
			ids = append(ids, r.Peer)
		}
	}
	return ids
}

// before tells whether a member may send to this one's stage: it has the stage before, or, for the first, any or none.
func (m *members) before(records []transport.Record, id transport.PeerID) bool {
	if id == m.self {
		return m.with.Stage == 0
	}
	at, here := slices.BinarySearchFunc(records, id, func(r transport.Record, id transport.PeerID) int { return cmp.Compare(r.Peer, id) })
	return here && (m.with.Stage == 0 || int(records[at].Stage) == m.with.Stage)
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
			return &StageLostError{Stage: stage, Of: len(m.empty)}
		}
	}
	m.whole = m.whole || len(missing) == 0
	if len(missing) > 0 && now.Sub(m.said) > sayEvery {
		m.said = now
		m.with.Log.Warn("waiting for members that take a stage: start more", zap.Ints("stages", missing), zap.Int("of", len(m.empty)))
	}
	return nil
}
