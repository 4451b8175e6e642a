package peer

import (
	"errors"
	"math/bits"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// Bounds of what is told apart: reasons and codecs with higher numbers count as
// unknown.
const (
	maxReasons = 16
	maxCodecs  = 64
	// maxAges bounds the buckets of Ages: the last holds all ages from 2^18 steps on.
	maxAges = 20
)

// Why exchanges broke off.
const (
	causeCut      = iota // the stream ended or broke
	causeTime            // it took too long, or nothing moved
	causeGone            // the partner could not be reached
	causeGivenUp         // this side gave it up
	causePartner         // the partner refused in the middle
	causeProtocol        // the partner broke the rules
	causes
)

var causeNames = [causes]string{"cut", "time", "unreachable", "given-up", "refused", "protocol"}

// tallies are counts that tell causes apart. Adding is a single atomic operation: the
// lanes of an exchange add to them.
type tallies struct {
	refused, declined [maxReasons]atomic.Uint64
	failed, dropped   [causes]atomic.Uint64 // by who began them: this side, or the other
	sent, received    [maxCodecs]atomic.Uint64
	ages              [maxAges]atomic.Uint64
	age               atomic.Uint64 // the sum of all ages
	rounds, durations blocked
}

// Ages counts exchanges by the steps that the trainer took while they were under way:
// so old was, at most, what they averaged when it came into the model.
type Ages struct {
	// Counts are the numbers of exchanges per bucket: Counts[0] those during which no
	// step was taken, Counts[i] those of 2^(i-1) to 2^i − 1 steps, the last those of
	// more too.
	Counts [maxAges]uint64
	// Sum is that of all ages.
	Sum uint64
}

// Bound is the most steps of a bucket.
func (Ages) Bound(bucket int) uint64 { return 1<<bucket - 1 }

// Traffic is what moved in exchanges that were coded alike.
type Traffic struct{ Sent, Received uint64 }

// Tallies are counts of a peer's exchanges that tell causes apart. Transfers, of which
// the strategies beside AD-PSGD and D-PSGD consist, count as exchanges.
type Tallies struct {
	// Samples is the number of samples that gradients were computed from.
	Samples uint64
	// Refused and Declined count proposals, of this peer and to it, by the reason for
	// which they were refused; Failed and Dropped exchanges that broke off, of those
	// that this peer began and of those that it served, by cause.
	Refused, Declined, Failed, Dropped map[string]uint64
	// TransportRefused counts the streams, datagrams and connections that were refused or
	// gave way to others, and MembershipRefused the messages about members that were not
	// heard, by cause; of adapters that count them, as the default ones do.
	TransportRefused, MembershipRefused map[string]uint64
	// Traffic is by the coarsest codec of an exchange: a policy may code small layers
	// finer. What came to no exchange, or was said before one, is under "none".
	Traffic map[string]Traffic
	// Age is by how many steps what exchanges averaged was late.
	Age Ages
	// Rounds are the times from a proposal to its answer, Durations those of completed
	// exchanges at either side.
	Rounds, Durations Histogram
}

// Tallies tells what has become of exchanges since the start. It costs more than
// Stats and is for who looks now and then.
func (p *Peer) Tallies() Tallies {
	c := &p.counters.tallies
	t := Tallies{
		Samples: p.control.samples.Load(),
		Refused: byReason(&c.refused), Declined: byReason(&c.declined), Failed: byCause(&c.failed), Dropped: byCause(&c.dropped),
		TransportRefused: refusals(p.transport), MembershipRefused: refusals(p.membership),
		Traffic: make(map[string]Traffic), Rounds: c.rounds.report(), Durations: c.durations.report(),
	}
	for id := range c.sent {
		moved := Traffic{Sent: c.sent[id].Load(), Received: c.received[id].Load()}
		if moved == (Traffic{}) {
			continue
		}
		name := "none"
		if codec, known := quant.ByID(quant.ID(id)); known {
			name = codec.Name
		}
		t.Traffic[name] = moved
	}
	t.Age.Sum = c.age.Load()
	for i := range c.ages {
		t.Age.Counts[i] = c.ages[i].Load()
	}
	return t
}

// refusals are what an adapter has refused, nil if it does not count that.
func refusals(adapter any) map[string]uint64 {
	if counting, ok := adapter.(seam.Refuser); ok {
		return counting.Refused()
	}
	return nil
}

func byReason(counts *[maxReasons]atomic.Uint64) map[string]uint64 {
	named := make(map[string]uint64)
	for reason := range counts {
		if n := counts[reason].Load(); n > 0 {
			named[reasonName(reason)] = n
		}
	}
	return named
}

func byCause(counts *[causes]atomic.Uint64) map[string]uint64 {
	named := make(map[string]uint64)
	for cause := range counts {
		if n := counts[cause].Load(); n > 0 {
			named[causeNames[cause]] = n
		}
	}
	return named
}

// reasonName is a reason's name; 0 is one that this release does not know.
func reasonName(reason int) string {
	if reason == 0 {
		return "unknown"
	}
	return wire.Reason(reason).String()
}

func tally(counts *[maxReasons]atomic.Uint64, reason wire.Reason) {
	if reason >= maxReasons {
		reason = 0
	}
	counts[reason].Add(1)
}

// moved counts what went over a stream of an exchange that is coded so.
func (t *tallies) moved(codec quant.ID, sent, received uint64) {
	if codec >= maxCodecs {
		codec = 0
	}
	t.sent[codec].Add(sent)
	t.received[codec].Add(received)
}

// grew counts an exchange during which the trainer took so many steps.
func (t *tallies) grew(steps uint64) {
	t.age.Add(steps)
	t.ages[min(bits.Len64(steps), maxAges-1)].Add(1)
}

// begins notes how an exchange is coded, and how far the trainer is, before slices move.
func (p *Peer) begins(x *tracked, t *talk, ids []quant.ID) {
	x.steps, x.codec = p.counters.steps.Load(), coarsest(ids)
	t.codec = x.codec
}

// broke counts an exchange that broke off.
func (t *tallies) broke(err error, inbound bool) {
	if inbound {
		t.dropped[causeOf(err)].Add(1)
		return
	}
	t.failed[causeOf(err)].Add(1)
}

func causeOf(err error) int {
	_, theirs := replica.Blame(err)
	switch {
	case theirs:
		return causeProtocol
	case errors.As(err, new(*refusal)):
		return causePartner
	case errors.Is(err, seam.ErrUnreachable):
		return causeGone
	case ranOut(err):
		return causeTime
	case errors.Is(err, errAborted):
		return causeGivenUp
	}
	return causeCut
}

// coarsest is the codec of those of an exchange whose codes have the fewest bits: of the
// simple ones that with the highest number, and of lattices, which come before those,
// that with the lowest.
func coarsest(ids []quant.ID) (coarse quant.ID) {
	for _, id := range ids {
		lattice, coarser := id >= quant.Lattice4to1, coarse >= quant.Lattice4to1
		if lattice && (!coarser || id < coarse) || !lattice && !coarser && id > coarse {
			coarse = id
		}
	}
	return coarse
}
