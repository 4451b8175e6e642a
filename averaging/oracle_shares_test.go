package averaging_test

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// shares is what the oracle knows of who has had how much of a passive: all are given
// what they are due the moment they are due it.
type shares struct {
	linked   []topology.PeerID
	left     map[topology.PeerID]float64
	unlinked float64
	weight   float64                           // of that
	served   map[topology.PeerID]time.Duration // by the account charged
	free     map[topology.PeerID]time.Duration
	given    float64
	mean     float64
	met      bool
	stalls   map[topology.PeerID]int
	until    map[topology.PeerID]time.Duration
}

// nobody's account is that of those who are no partners.
const nobody = topology.PeerID("")

func (s *shares) partner(peer topology.PeerID) bool {
	for _, id := range s.linked {
		if id == peer {
			return true
		}
	}
	return false
}

func (s *shares) of(peer topology.PeerID) float64 {
	if _, known := s.left[peer]; !known {
		s.left[peer] = 4
	}
	return s.left[peer]
}

// give lets everybody but one have so many exchanges more.
func (s *shares) give(n float64, but topology.PeerID) {
	for peer, left := range s.left {
		if peer != but {
			s.left[peer] = min(left+n, 4)
		}
	}
	s.unlinked = min(s.unlinked+s.weight*n, 4*s.weight)
}

// charge takes exchanges off the account that a proposer's count on.
func (s *shares) charge(peer topology.PeerID, n float64) {
	if s.partner(peer) {
		s.left[peer] = s.of(peer) - n
	} else {
		s.unlinked -= n
	}
}

// account is the name of the one that a proposer's exchanges count on.
func (s *shares) account(peer topology.PeerID) topology.PeerID {
	if s.partner(peer) {
		return peer
	}
	return nobody
}

func (s *shares) due(peer topology.PeerID, now, inAnyCase time.Duration) bool {
	account, left := s.account(peer), s.unlinked
	if s.partner(peer) {
		if left = s.of(peer); len(s.linked) == 1 {
			return true
		}
	}
	return now >= s.free[account] && (left >= 1-1e-9 || now >= s.served[account]+inAnyCase)
}

// ended is the end of an exchange that began at a moment.
func (s *shares) ended(e entry, began, retry time.Duration) {
	peer, took := e.event.Peer, float64(e.now-began)
	rest := max(took-2*s.mean, 0) * float64(len(s.linked)) / s.weight / 1.75
	if s.partner(peer) {
		rest = max(took-2*s.mean, 0) * float64(len(s.linked)-1) / 1.75
	}
	if s.met || e.event.Kind != averaging.Finished {
		s.free[s.account(peer)] = e.now + time.Duration(rest)
	}
	if e.event.Kind == averaging.Finished {
		delete(s.stalls, peer)
		delete(s.until, peer)
		if s.met {
			if s.mean > 0 {
				took = min(took, 10*s.mean)
			}
			s.mean += 0.2 * (took - s.mean)
		} else {
			s.mean, s.met = took, true
		}
	} else if s.met && took > 4*s.mean {
		s.until[peer] = max(s.until[peer], e.now+max(retry<<min(s.stalls[peer], 6), min(8*(e.now-began), 4*retry)))
		s.stalls[peer]++
	}
}

// shares reads the history.
func (o *oracle) shares() *shares {
	s := &shares{
		left: map[topology.PeerID]float64{}, unlinked: 4, weight: 1, served: map[topology.PeerID]time.Duration{},
		free:   map[topology.PeerID]time.Duration{},
		stalls: map[topology.PeerID]int{}, until: map[topology.PeerID]time.Duration{},
	}
	for i, e := range o.history {
		switch e.event.Kind {
		case averaging.ViewChanged:
			s.linked, _ = o.at(i + 1).neighbours()
			s.weight = float64(min(max(1+e.event.Overlay.View().Actives()-len(s.linked), 1), 3))
		case averaging.StepDone:
			s.give(max(1/float64(max(len(s.linked), 1)*o.every)-s.given, 0), nobody)
			s.given = 0
		case averaging.Finished, averaging.Failed:
			for _, x := range o.at(i).inbound() {
				if e.event.Inbound && x.peer == e.event.Peer && x.id == e.event.Exchange {
					s.ended(e, x.due-o.deadline, o.retry)
				}
			}
		}
		for _, a := range e.actions {
			if a.Kind == averaging.Accept {
				s.accepted(a.Peer, e.now)
			}
		}
	}
	return s
}

// inAnyCase is after what time a proposer has an exchange, whatever others had.
func (o *oracle) inAnyCase(now time.Duration) time.Duration {
	for _, e := range o.history {
		if e.event.Kind == averaging.StepDone && e.now > 0 && now < e.now+o.deadline {
			return o.deadline
		}
	}
	return o.retry
}

// accepted is the beginning of an exchange.
func (s *shares) accepted(peer topology.PeerID, now time.Duration) {
	s.charge(peer, 1)
	s.served[s.account(peer)] = now
	if !s.partner(peer) {
		return
	}
	gain := 1.75 / float64(max(len(s.linked)-1, 1))
	s.given += gain
	s.give(gain, peer)
}

// member tells whether a peer is in the newest view.
func (o *oracle) member(peer topology.PeerID) (here bool) {
	for _, e := range o.history {
		if e.event.Kind == averaging.ViewChanged {
			_, here = e.event.Overlay.View().Lookup(peer)
		}
	}
	return here
}

// proposedBefore tells whether a proposal is of an earlier life, or its id not above all
// before it in this one. Only those count that came to where ids are looked at.
func (o *oracle) proposedBefore(next averaging.Event) bool {
	var life uint64
	var last averaging.ExchangeID
	for i, e := range o.history {
		if e.event.Kind != averaging.Proposed || e.event.Peer != next.Peer {
			continue
		}
		_, role := o.at(i).neighbours()
		looked := role == topology.Passive && o.at(i).member(e.event.Peer) && !o.at(i).quarantined(e.event.Peer, e.now)
		if looked && (e.event.Incarnation > life || e.event.Incarnation == life && e.event.Exchange > last) {
			life, last = e.event.Incarnation, e.event.Exchange
		}
	}
	return next.Incarnation < life || next.Incarnation == life && next.Exchange <= last
}

// stalling tells whether a proposer has held a place for nothing of late.
func (o *oracle) stalling(peer topology.PeerID, now time.Duration) bool {
	return now < o.shares().until[peer]
}
