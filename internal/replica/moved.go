package replica

import (
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// moved is the change of the watched values by an exchange (drawn), by this side's own steps
// since the exchange before (own), and of the values at which partners are judged (felt).
type moved struct {
	drawn, own moves
	felt       felt
	across     bool // the partner is at another site
}

// size makes room for what exchanges of a replica move.
func (m *moved) size(r *Replica) {
	if len(m.felt) != len(r.judgement.places.at) {
		*m = moved{felt: make(felt, len(r.judgement.places.at))}
	}
}

// before and after take in a shared slice of which an exchange changes some blocks. The caller holds its lock.
func (m *moved) before(r *Replica, shared int, own tensor.Vector, blocks coding.Set) {
	if s := &r.slices[r.shared[shared]]; s.apart != nil {
		s.apart.passed(s, own, blocks, m.across)
	}
	r.biases.watched.changed(&m.own, shared, own)
	r.judgement.count(m.felt, shared, own, -1)
}

func (m *moved) after(r *Replica, shared int, own tensor.Vector) {
	r.biases.watched.changed(&m.drawn, shared, own)
	r.judgement.count(m.felt, shared, own, 1)
}

// end tells of the exchange with a partner that is over, and is ready for the next.
func (m *moved) end(r *Replica, partner string) {
	r.biases.add(partner, m)
	if !unclipped(r) && len(m.felt) >= slicePlaces { // of a few values nothing can be told
		r.judgement.met(partner, m.felt)
	}
	clear(m.felt)
}
