package collective

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Stage is where a member is in an attempt to sum around a ring.
type Stage uint8

const (
	Idle     Stage = iota // in no attempt
	Clearing              // has a place and waits for what it aborted to be over
	Ringing               // sends and takes
	Summed                // has the sum
)

// Ringer is a member's part of sums around a ring, one attempt after the other: all
// numbers are summed once, by one member, and handed on as they are. Whoever coordinates
// gives the places, and hears of the end.
type Ringer struct {
	*Flights
	Stage Stage
	Moved time.Duration // of the last progress in the ring
	ring  ring
	owner ringOwner
	early []topology.PeerID // refused since this peer was not ready for them
	held  []Transfer        // refused by the next member since it was not
	asked time.Duration     // when the next member said that it is, 0 before
}

// ringOwner is what a Ringer is part of.
type ringOwner interface {
	// Load asks for this peer's part of the sum to be put into Sum.
	Load()
	// hasSum is called when this peer has the sum.
	hasSum()
	// gaveUp is called when the attempt cannot be completed, and with whom, if that is
	// known: who is sent to, not who sends, since that one knows better; this peer itself
	// if it is what it has that cannot be sent.
	gaveUp(suspect topology.PeerID)
}

// maxEarly bounds who is remembered to have come too early.
const maxEarly = 4

// Attempt is the last one that this peer has joined, 0 if there is none.
func (r *Ringer) Attempt() uint64 { return r.ring.attempt }

// Join begins an attempt, once whatever runs of another is over.
func (r *Ringer) Join(attempt uint64, at Place, next, previous topology.PeerID) {
	r.Abort("")
	r.ring = newRing(attempt, at, next, previous, r.ring)
	r.Stage, r.Moved = Clearing, r.Now
	r.held, r.asked = r.held[:0], 0
	r.start()
}

// Leave gives the attempt up, and whatever is in flight.
func (r *Ringer) Leave() {
	r.Abort("")
	r.Stage = Idle
}

// start begins to send when nothing that was aborted can change the sum any more.
func (r *Ringer) start() {
	if r.Stage != Clearing || len(r.In) > 0 {
		return
	}
	r.Stage = Ringing
	r.owner.Load()
	if r.ring.steps() > 0 {
		r.Send(r.ring.next, r.ring.transfer(0), false)
	}
	for _, id := range r.early {
		r.Tell(id, Word{Kind: WordAgain, Round: r.ring.attempt})
	}
	r.early = r.early[:0]
	r.close()
}

// Offered answers what another member wants to send.
func (r *Ringer) Offered(e Event) {
	t := e.Transfer
	switch {
	case r.Stage == Ringing && r.ring.take(e.Peer, t):
		r.Moved = r.Now
		r.Accept(e, 1)
	case r.Stage != Idle && t.Round == r.ring.attempt && e.Peer != r.ring.previous:
		r.Refuse(e, averaging.Unfit)
	default:
		if known := slices.Contains(r.early, e.Peer); !known && len(r.early) < maxEarly && (t.Round > r.ring.attempt || r.Stage == Clearing) {
			r.early = append(r.early, e.Peer)
		}
		r.Refuse(e, averaging.Round)
	}
}

// Landing handles the end of a flight of the ring, and what came by it goes on. It reports
// false, with the flight, if that is the owner's, and found if there is one.
func (r *Ringer) Landing(e Event, owners func(Transfer) bool) (f Flight, found bool) {
	f, found = r.Landed(e)
	switch {
	case !found:
	case f.Aborted:
		r.start()
		return Flight{}, false
	case owners(f.Transfer):
		return f, true
	case f.Transfer.Round != r.ring.attempt:
	case e.Kind == averaging.Finished && r.Stage == Ringing:
		r.moved(f, e.Inbound)
	case e.Kind == averaging.Refused:
		r.refused(f, e.Reason)
	case e.Kind == averaging.Failed && e.Inbound:
		r.GiveUp("")
	case e.Kind == averaging.Failed && e.Reason == averaging.Unfit:
		r.GiveUp(r.Self)
	case e.Kind == averaging.Failed:
		r.GiveUp(f.Peer)
	}
	return Flight{}, false
}

// moved counts a transfer and sends on what came by it.
func (r *Ringer) moved(f Flight, inbound bool) {
	r.Moved = r.Now
	if !inbound {
		r.ring.sent++
		r.close()
		return
	}
	r.ring.taken++
	if step, ok := r.ring.after(f.Transfer); ok {
		r.Send(r.ring.next, r.ring.transfer(step), false)
	}
	r.close()
}

// close ends the member's part of the attempt.
func (r *Ringer) close() {
	if r.Stage == Ringing && r.ring.complete() {
		r.Stage = Summed
		r.owner.hasSum()
	}
}

// refused is the answer to what was sent. What came too early is asked for again.
func (r *Ringer) refused(f Flight, why averaging.Reason) {
	switch {
	case why != averaging.Round && why != averaging.Busy:
		r.GiveUp(f.Peer)
	case f.Began < r.asked: // it crossed the word that asks for it
		r.Send(f.Peer, f.Transfer, false)
	default:
		r.held = append(r.held, f.Transfer)
	}
}

// Asked sends once more what the next member has refused since it came early.
func (r *Ringer) Asked(from topology.PeerID, attempt uint64) {
	if from == r.ring.next && attempt == r.ring.attempt && r.Stage == Ringing {
		r.asked = r.Now
		for _, t := range r.held {
			r.Send(from, t, false)
		}
		r.held = r.held[:0]
	}
}

// Lost goes on without a peer: an attempt in which this one sends to it is broken.
func (r *Ringer) Lost(id topology.PeerID) {
	sends := r.Stage != Idle && r.ring.next == id
	r.Abort(id)
	if sends {
		r.GiveUp(id)
	}
}

// Impatient sends again what was held back, and breaks an attempt off that stands still.
func (r *Ringer) Impatient() {
	if r.Stage != Ringing {
		return
	}
	if len(r.held) > 0 {
		r.Asked(r.ring.next, r.ring.attempt)
	}
	if r.Now-r.Moved >= r.Deadline {
		r.GiveUp("")
	}
}

// GiveUp ends an attempt that cannot be completed, if there is one.
func (r *Ringer) GiveUp(suspect topology.PeerID) {
	if r.Stage != Idle {
		r.owner.gaveUp(suspect)
	}
}
