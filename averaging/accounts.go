package averaging

import (
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/topology"
)

// How much of a passive's time and model one proposer may have. The honest go over
// their links in turn, so each partner of a passive comes about as often as the others:
// what others get is the measure, whatever the passive's own speed. Where they are
// slower than the passive, its own steps are. docs/design/024 has the figures.
const (
	// othersShare is how many exchanges a partner is due for each that the others have
	// had in the mean. Above 1, so that equal partners never wait for each other.
	// Partners that help each other gain by it: more than 1/othersShare of all need
	// nobody else.
	othersShare = 1.75
	// unlinkedShares is how many partners' shares all those proposers have together, at
	// most, that the overlay does not join to the passive: whose anchor it is, of which
	// each active has three, or whose view differs. Where it joins all actives to the
	// passive they have one.
	unlinkedShares = 3
	// burst is how many exchanges a share can save up.
	burst = 4
	// one is an exchange that is left, made of parts that are rounded.
	one = 1 - 1e-9
	// usual is how many times the mean an exchange may last before its time is counted.
	usual = 2
	// tooLong is how many times longer than the mean an exchange must have lasted that
	// came to nothing, for its proposer to be taken for one that stalls.
	tooLong = 4
	// stallCost is how many times longer than it has held a place for nothing a proposer
	// is refused at least: whatever it does in between, it has one in 1+stallCost of the
	// time. maxStallCost bounds that in times of Config.RetryAfter, for the sake of those
	// that are only slow. As long do others go before a partner that has kept this peer
	// waiting for nothing, within maxSlowCost.
	stallCost    = 8
	maxStallCost = 4
	maxSlowCost  = 8
	// maxAccounts bounds the proposers that are remembered, beside as many as there are
	// partners, who are not forgotten; of others who has not come for the longest time is.
	maxAccounts = 1024
)

// accounts tell which proposers have had their share of a passive.
type accounts struct {
	clock    float64 // the exchanges that a share has been due so far
	given    float64 // of these, since the last step, for what others have had
	took     mean    // by an inbound exchange
	partners []partner
	known    *simplelru.LRU[topology.PeerID, *account] // of those who have come
	unlinked account                                   // what all have together that are no partners
	shares   float64                                   // of that
}

// account is what a proposer has had.
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
	return accounts{known: known, unlinked: account{left: burst}, shares: 1}
}

// link takes the partners of a new view with so many actives. What they have had stays
// on their accounts.
func (a *accounts) link(partners []partner, actives int) {
	a.shares = float64(min(max(1+actives-len(partners), 1), unlinkedShares))
	a.partners = partners
}

// linked tells whether a proposer is a partner.
func (a *accounts) linked(peer topology.PeerID) bool {
	return slices.ContainsFunc(a.partners, func(p partner) bool { return p.id == peer })
}

// of is the account of a proposer, a new one if it has none: who has not come has had nothing.
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
	acc = &account{left: burst, at: a.clock}
	a.known.Add(peer, acc)
	return acc
}

// charged is the account that a proposer's exchanges count on, with what it is due by
// now.
func (a *accounts) charged(peer topology.PeerID) *account {
	acc, shares := &a.unlinked, a.shares
	if a.linked(peer) {
		acc, shares = a.of(peer), 1
	}
	acc.left = min(acc.left+shares*(a.clock-acc.at), burst*shares)
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

// due tells whether a proposer has something left of its share. A passive that has one
// partner has nobody to keep its place for. Who has had nothing for a time has one
// exchange in any case: a passive that takes no steps is reached though all others are
// silent.
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
// for as long as they are due it then, whatever came of it. It reports a proposer that
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

// stepped takes a step of the passive, which would initiate an exchange every so many
// were it active. A share is due its part of that, or what others had if that is more.
func (a *accounts) stepped(every int) {
	a.clock += max(1/float64(max(len(a.partners), 1)*max(every, 1))-a.given, 0)
	a.given = 0
}
