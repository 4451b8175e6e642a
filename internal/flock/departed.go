package flock

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// MaxDeparted bounds the departed members with an account each; the steps of those that
// have been away for longest are kept as one sum.
const MaxDeparted = 1024

// departed holds the steps of members that are not present.
type departed struct {
	known     *simplelru.LRU[transport.PeerID, account]
	inherited uint64 // steps of others without an account: before this peer came, or beyond MaxDeparted
}

func newDeparted() (d departed) {
	d.known, _ = simplelru.NewLRU[transport.PeerID, account](MaxDeparted, nil) // fails of sizes that are not positive
	return d
}

// of is the account of a member that has departed.
func (d *departed) of(id transport.PeerID) account {
	a, _ := d.known.Peek(id)
	return a
}

// keep takes the account of a member that departs. If there are too many, the oldest
// account goes into the sum.
func (d *departed) keep(id transport.PeerID, a account) {
	if _, oldest, ok := d.known.GetOldest(); ok && d.known.Len() >= MaxDeparted && !d.known.Contains(id) {
		d.inherited = plus(d.inherited, oldest.done())
	}
	d.known.Add(id, a)
}

// done is the total, without some members.
func (d *departed) done(without map[transport.PeerID]bool) uint64 {
	sum := d.inherited
	for _, id := range d.known.Keys() {
		if !without[id] {
			sum = plus(sum, d.of(id).done())
		}
	}
	return sum
}
