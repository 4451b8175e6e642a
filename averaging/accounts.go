package averaging

import (
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/topology"
)

// How much of a passive's time and model one proposer may have. Honest proposers go over
// their links in turn, so each partner of a passive comes about as often as the others: a
// share is measured by what the others get, whatever the passive's own speed, or by the
// passive's own steps where the others are slower. docs/design/024 has the figures.
const (
	// othersShare is how many exchanges a partner is due for each that the others have had
	// on average. It is above 1, so that equal partners never wait for each other.
	// Colluding partners gain by it: if they are more than 1/othersShare of all, they can
	// use the passive alone.
	othersShare = 1.75
	// unlinkedShares is the most partners' shares that all proposers without a link to the
	// passive have together: actives that chose it as one of their three anchors, or whose
	// view differs. Where the overlay joins all actives to the passive, they have one
	// share.
	unlinkedShares = 3
	// savedUp is how many exchanges a share can save up.
	savedUp = 4
	// one is the balance that counts as one exchange; it allows for rounding.
	one = 1 - 1e-9
	// usual is how many times the mean an exchange may last before its time is counted.
	usual = 2
	// tooLong: a proposer counts as stalling if its failed exchange lasted at least this
	// many times the mean.
	tooLong = 4
	// stallCost: a proposer that held a place in vain is refused for at least stallCost
	// times as long, so it can hold a place for at most 1 part in 1+stallCost of the time.
	// maxStallCost bounds the refusal, in units of Config.RetryAfter, for proposers that
	// are only slow. For as long, up to maxSlowCost, other partners are asked before one
	// that has kept this peer waiting in vain.
	stallCost    = 8
	maxStallCost = 4
	maxSlowCost  = 8
	// maxAccounts bounds the remembered proposers that are not partners; partners are always
	// remembered. Beyond it the one that has not proposed for the longest time is forgotten.
	maxAccounts = 1024
)

// accounts records which proposers have used up their share of a passive.
type accounts struct {
	clock    float64 // the exchanges that a share has been due so far
	given    float64 // of these, since the last step, for what others have had
	took     mean    // by an inbound exchange
	partners []partner
	known    *simplelru.LRU[topology.PeerID, *account] // of those who have come
	unlinked account                                   // of all proposers together that are no partners
	shares   float64                                   // of that
}

// account is what one proposer has used.
type account struct {
	incarnation uint64        // as last proposed, and
	last        ExchangeID    // the highest of its exchanges
	left        float64       // exchanges that were left when the clock showed
	at          float64       // this
	served      time.Duration // when the last began
	free        time.Duration // from when on it may have the next
}

func newAccounts() accounts {
	known, _ := simplelru.NewLRU[topology.PeerID, *account](maxAccounts+topology.MaxMembers, nil) // an error is a size below 1
	return accounts{known: known, unlinked: account{left: savedUp}, shares: 1}
}

// link takes the partners of a new view with so many actives. Their accounts stay as they
// are.
func (a *accounts) link(partners []partner, actives int) {
	a.shares = float64(min(max(1+actives-len(partners), 1), unlinkedShares))
	a.partners = partners
}

// linked tells whether a proposer is a partner.
func (a *accounts) linked(peer topology.PeerID) bool {
	return slices.ContainsFunc(a.partners, func(p partner) bool { return p.id == peer })
}

// of is the account of a proposer; a new, empty one if it has none.
func (a *accounts) of(peer topology.PeerID) *account {
	acc, ok := a.known.Get(peer)
	if ok {
		return acc
	}
	for a.known.Len() >= maxAccounts+len(a.partners) { // at least maxAccounts are of others
		if oldest, _, _ := a.known.GetOldest(); a.linked(oldest) {
			a.known.Get(oldest) // is the newest now
		} else {
			a.known.Remove(oldest)
		}
	}
	acc = &account{left: savedUp, at: a.clock}
	a.known.Add(peer, acc)
	return acc
}

// charged is the account that pays for a proposer's exchanges, brought up to date.
func (a *accounts) charged(peer topology.PeerID) *account {
	acc, shares := &a.unlinked, a.shares
	if a.linked(peer) {
		acc, shares = a.of(peer), 1
	}
	acc.left = min(acc.left+shares*(a.clock-acc.at), savedUp*shares)
	acc.at = a.clock
	return acc
}

// fresh tells whether a proposal names an exchange that its proposer has not proposed
// before, and notes it: ids grow with each proposal of an incarnation.
func (a *accounts) fresh(e Event) bool {
	acc := a.of(e.Peer)
	if e.Incarnation < acc.incarnation || e.Incarnation == acc.incarnation && e.Exchange <= acc.last {
		return false
	}
	acc.incarnation, acc.last = e.Incarnation, e.Exchange
	return true
}

// due tells whether a proposer has something left of its share. A passive with a single
// partner need not keep its place for others. A proposer that has had no exchange for the
// time inAnyCase is due one in any case: so a passive that takes no steps can be reached
// even if all others are silent.
func (a *accounts) due(now, inAnyCase time.Duration, peer topology.PeerID) bool {
	acc := a.charged(peer)
	if acc != &a.unlinked && len(a.partners) == 1 {
		return true
	}
	return now >= acc.free && (acc.left >= one || now >= later(acc.served, inAnyCase))
}

// begun takes an exchange off the account of its proposer. If that is a partner, the
// others are due more.
func (a *accounts) begun(now time.Duration, peer topology.PeerID) {
	acc := a.charged(peer)
	acc.left--
	acc.served = now
	if acc != &a.unlinked {
		gain := othersShare / float64(max(len(a.partners)-1, 1))
		a.clock += gain
		a.given += gain
		acc.at += gain
	}
}

// ended keeps the place for the others after an exchange that took longer than usual,
// whatever its outcome, for as long as is due to them. It returns true if the proposer
// stalls.
func (a *accounts) ended(now, took time.Duration, e Event) (stalls bool) {
	acc, others := a.charged(e.Peer), float64(len(a.partners)-1)
	if acc == &a.unlinked {
		others = float64(len(a.partners)) / a.shares
	}
	if a.took.known || e.Kind != Finished {
		beyond := max(float64(took)-usual*a.took.value, 0)
		acc.free = later(now, time.Duration(beyond*others/othersShare))
	}
	if e.Kind != Finished {
		return a.took.known && float64(took) > tooLong*a.took.value
	}
	a.took.add(float64(took))
	return false
}

// stepped records a step of the passive, which as an active would initiate an exchange every
// so many steps. A share grows by its part of that, or by what others had if that is more.
func (a *accounts) stepped(every int) {
	a.clock += max(1/float64(max(len(a.partners), 1)*max(every, 1))-a.given, 0)
	a.given = 0
}
