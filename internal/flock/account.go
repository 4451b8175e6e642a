package flock

import (
	"github.com/seed-97356399/murmuration/peer/transport"
)

// account is what all lives of one member have done: together they count as one peer,
// for no more than one could have done.
type account struct {
	earlier uint64 // by the lives before the newest
	life    uint64 // the newest, and what it has done
	steps   uint64
	resumed bool // steps include what earlier lives had done, up to a checkpoint
	incarnations
}

// done is the sum. What earlier lives did after the checkpoint that the newest came back
// with is counted as long as it is more.
func (a account) done() uint64 {
	if a.resumed {
		return max(a.earlier, a.steps)
	}
	return plus(a.earlier, a.steps)
}

// with is the account with what a record says; it counts up to ceiling, which is what one
// peer could have done.
func (a account) with(r transport.Record, ceiling uint64) account {
	if r.Incarnation < a.life {
		return a
	}
	if r.Incarnation > a.life {
		a.earlier, a.life, a.resumed = a.done(), r.Incarnation, false
	}
	a.resumed = a.resumed || r.Flags&Resumed != 0 // a node goes on from a checkpoint once it trains
	a.steps = min(r.Steps, ceiling)
	if !a.resumed {
		a.steps = min(a.steps, ceiling-min(a.earlier, ceiling))
	}
	return a
}

// lives are the account as records: the newest life, and those before it as one.
func (a account) lives(id transport.PeerID) []transport.Record {
	newest := transport.Record{Peer: id, Incarnation: a.life, Steps: a.steps}
	if a.resumed {
		newest.Flags = Resumed
	}
	if a.earlier == 0 || a.life == 0 {
		return []transport.Record{newest}
	}
	return []transport.Record{{Peer: id, Incarnation: a.life - 1, Steps: a.earlier}, newest}
}
