package flock

import (
	"github.com/seed-97356399/murmuration/peer/transport"
)

// account holds the steps of all lives of one member. Together they count as one peer, and
// for no more than one peer could have done.
type account struct {
	earlier uint64 // by the lives before the newest
	life    uint64 // the newest, and its steps
	steps   uint64
	resumed bool // steps include what earlier lives had done, up to a checkpoint
	incarnations
}

// done is the member's total. Steps that earlier lives took after the checkpoint of the
// newest life count as long as the total is larger with them.
func (a account) done() uint64 {
	if a.resumed {
		return max(a.earlier, a.steps)
	}
	return plus(a.earlier, a.steps)
}

// with is the account updated by a record, counted up to ceiling, the most that one peer
// could have done.
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

// lives are the account as records: one for the newest life, and one for all earlier lives.
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
