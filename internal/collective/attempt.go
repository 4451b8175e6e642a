package collective

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/topology"
)

// maxEarly bounds the members that are remembered to have offered too early; it is more than the partners of any
// member.
const maxEarly = 64

// attempt is the transfers of the attempt at a sum in which this peer has a place.
type attempt struct {
	*Flights
	place   *sums.Moving                      // nil if there is none
	loading bool                              // this peer waits for the end of aborted transfers
	early   []topology.PeerID                 // members refused because this peer was not ready
	refused []Flight                          // transfers refused by partners that were not ready
	ready   map[topology.PeerID]time.Duration // when partners became ready, in this attempt
}

// enter gives up the transfers of the last attempt, and takes the place in the next, if there is one.
func (a *attempt) enter(place *sums.Moving) {
	a.place, a.loading, a.refused, a.ready = place, place != nil, nil, make(map[topology.PeerID]time.Duration)
	carries := func(f Flight) bool { _, does := chunkOf(f.Transfer); return does } // other transfers of the owner go on
	a.AbortOut(carries)
	a.AbortIn(carries)
}

// is tells whether a transfer is of this attempt.
func (a *attempt) is(t Transfer) bool { return a.place != nil && a.place.Attempt == t.Round }

// begin takes chunks from now on, and asks for those that were refused before.
func (a *attempt) begin() {
	a.loading = false
	for _, id := range a.early {
		a.Tell(id, Message{Kind: MessageRetry, Round: a.place.Attempt})
	}
	a.early = a.early[:0]
}

// chunkOf is the chunk of a sum that a transfer carries; does is false if it carries none.
func chunkOf(t Transfer) (p sums.Chunk, does bool) {
	return sums.Chunk{Part: t.Part, Parts: t.Parts, Add: t.Add}, t.From == Sum && t.Into == Sum && t.Parts > 1
}

// carrying is the transfer of a chunk.
func (a *attempt) carrying(p sums.Chunk) Transfer {
	return Transfer{From: Sum, Into: Sum, Add: p.Add, Part: p.Part, Parts: p.Parts, Round: a.place.Attempt}
}

// offered answers the offer of a chunk.
func (a *attempt) offered(e Event) {
	chunk, fits := chunkOf(e.Transfer)
	switch here := a.is(e.Transfer) && !a.loading; {
	case fits && here && a.place.Accept(a.Now, e.Peer, chunk):
		a.Accept(e, 1)
	case fits && !here:
		if len(a.early) < maxEarly && !slices.Contains(a.early, e.Peer) {
			a.early = append(a.early, e.Peer)
		}
		a.Refuse(e, averaging.Round)
	default:
		a.Refuse(e, averaging.Unfit)
	}
}

// landed handles the end of a transfer. It returns false if a chunk is lost.
func (a *attempt) landed(e Event, f Flight) bool {
	chunk, _ := chunkOf(f.Transfer)
	switch {
	case e.Kind == averaging.Finished && e.Inbound:
		a.place.Took(a.Now, f.Peer, chunk)
	case e.Kind == averaging.Finished:
		a.place.Gave(a.Now, f.Peer, chunk)
	case e.Kind == averaging.Refused && (e.Reason == averaging.Round || e.Reason == averaging.Busy):
		if a.refused = append(a.refused, f); f.Began < a.ready[f.Peer] { // it crossed the message that asks for it
			a.resend(f.Peer)
		}
	default:
		return false
	}
	return true
}

// resend sends again what a member has refused; all members if to is empty.
func (a *attempt) resend(to topology.PeerID) {
	a.refused = slices.DeleteFunc(a.refused, func(f Flight) bool {
		if to != "" && f.Peer != to {
			return false
		}
		a.Send(f.Peer, f.Transfer, false)
		return true
	})
}
