package replica

import (
	"math"
	"sync/atomic"
)

// side is the common part of both sides of an exchange.
type side struct {
	replica *Replica
	ledger  *Ledger
	terms   Terms
	weight  float64
	trust   float64 // factor for this side's bounds with the partner

	due        atomic.Int32      // parts that the exchange has: its slices, and what has to be sent again
	applied    atomic.Int32      // of these, those applied: by a responder, at both sides
	failed     atomic.Int32      // blocks that failed
	ranging    bool              // the responder has ranges to send
	rangesSent int               // slices whose ranges have been sent
	left       atomic.Int32      // slices that a partial exchange does not carry
	squared    [MaxLanes]float64 // by lane, of its slices' distances
	moves      moved
}

// Use sets the replica and the ledger of the next exchanges. They may change from one
// exchange to the next; memory does not grow if all replicas have the same layout and
// slices.
func (s *side) Use(r *Replica, l *Ledger) {
	s.replica, s.ledger = r, l
	s.moves.size(r)
}

// begin starts an exchange.
func (s *side) begin(terms Terms) {
	s.terms = terms.within()
	s.weight = s.terms.weight()
	s.moves.across = s.terms.Across > 0
	s.trust = s.replica.biases.trust(s.terms.Partner) * s.replica.judgement.trust(s.terms.Partner)
	s.due.Store(int32(len(s.replica.shared)))
	s.applied.Store(0)
	s.left.Store(0)
	s.failed.Store(0)
	s.ranging, s.rangesSent = latticed(s.terms.Codecs), 0
	clear(s.squared[:])
}

// remember puts a distance into a slice's window, and returns it as clipped; limit is the
// smaller of the two sides' bounds. It is divided by the trust, so that a partner with less
// trust does not lower the bound for others. The caller holds the slice's lock.
func (s *side) remember(of *slice, distance, limit float64) float64 {
	if unclipped(s.replica) {
		return distance
	}
	return of.expects(s.terms.Across > 0).bound.add(s.terms.Partner, distance, limit/s.trust)
}

// limit is this side's bound for the partner's slice. The caller holds the slice's lock.
func (s *side) limit(of *slice) float64 { return s.trust * s.replica.limit(of, s.terms.Across > 0) }

// Lanes and Window are the numbers agreed: what was asked for, within bounds.
func (s *side) Lanes() int  { return s.terms.Lanes }
func (s *side) Window() int { return s.terms.Window }

// flying is how many frames of a lane can be on their way: as the window says, or all that the
// exchange has.
func (s *side) flying() int { return min(s.terms.Window, max(attempts*len(s.replica.shared), 1)) }

// leave takes so many slices out of the exchange, once, whichever lane says it first. It returns false
// if another number was left before.
func (s *side) leave(slices int32) bool {
	if s.left.CompareAndSwap(0, slices) {
		s.due.Add(-slices)
		return true
	}
	return s.left.Load() == slices
}

// Done tells whether every slice that the exchange carries has been applied, by a responder at both sides, and what
// had to be sent again too.
func (s *side) Done() bool { return s.applied.Load() == s.due.Load() }

// Retransmitted is the number of blocks that failed and had to be sent again.
func (s *side) Retransmitted() int { return int(s.failed.Load()) }

// Applied is the number of slices applied; one that was sent again counts again.
func (s *side) Applied() int { return int(s.applied.Load()) }

// Distance is the distance between the two models that the slices showed, as if those that a
// partial exchange leaves were as far apart as the others. It is complete once Done. A partner's
// claim counts only up to what the bound lets into its window.
func (s *side) Distance() float64 {
	total := 0.0
	for _, squared := range s.squared {
		total += squared
	}
	if left := float64(s.left.Load()); left > 0 {
		all := float64(len(s.replica.shared))
		total *= all / (all - left)
	}
	return math.Sqrt(total)
}

// Ranged tells whether all ranges that the responder has to tell have been sent: only then can an initiator's lanes code.
func (s *side) Ranged() bool { return !s.ranging || s.rangesSent == len(s.replica.shared) }
