package conversations

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// hand is a conversation with b that a test holds by hand in the place of a.
type hand struct {
	transport.Stream
	frames   *wire.Reader
	t        *testing.T
	exchange uint64
}

func (r *room) byHand(exchange uint64) *hand {
	r.t.Helper()
	stream, err := r.a.at.Open(r.t.Context(), r.b.at.Self(), transport.ProtocolExchange, run)
	if err != nil {
		r.t.Fatal(err)
	}
	return &hand{stream, wire.NewReader(stream, 0), r.t, exchange}
}

func (h *hand) say(frame []byte) {
	h.t.Helper()
	if _, err := h.Write(frame); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hand) pack(m wire.Message) []byte {
	h.t.Helper()
	frame, err := wire.Pack(nil, h.exchange, m)
	if err != nil {
		h.t.Fatal(err)
	}
	return frame
}

// hears reads a frame, which must be of a type.
func (h *hand) hears(want wire.Type) (payload []byte) {
	h.t.Helper()
	header, payload, err := h.frames.Next()
	if err != nil || header.Type != want {
		h.t.Fatalf("b says %v, %v; want %v", header.Type, err, want)
	}
	return payload
}

// proposal is one that b has no objection to.
func (r *room) proposal() wire.Propose {
	host := r.b.Host
	return wire.Propose{Opening: wire.Opening{
		Run: run, Layout: host.Layout, Cut: host.Cut, Incarnation: 1, SliceLen: sliceLen, Codecs: []uint8{uint8(coding.Raw)},
	}, Overlap: 1, Lanes: 1}
}

// code is the frame of a first slice, all of one value.
func (h *hand) code(value float32) []byte {
	h.t.Helper()
	slice := make(tensor.Vector, sliceLen)
	for i := range slice {
		slice[i] = value
	}
	frame := wire.AppendCodeInfo(wire.Reserve(nil), wire.CodeInfo{Bound: float32(math.Inf(1)), Codec: uint8(coding.Raw)})
	frame = tensor.AppendBytes(frame, slice)
	if err := wire.Seal(frame, wire.Header{Type: wire.TypeCode, Exchange: h.exchange}); err != nil {
		h.t.Fatal(err)
	}
	return frame
}

// TestAPartnerThatStallsIsGivenUp: whichever side falls silent, and whenever, both hear that the
// exchange has failed, and the proposer for how long no sign of the other came.
func TestAPartnerThatStallsIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration
		asked  bool // it is the one that was asked that stalls
		silent bool // no sign of it has come
	}{
		{"no answer", 0, true, true},
		{"no more differences", 2 * time.Second, true, false},
		{"no more slices", 2 * time.Second, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{link: slow})
				stalls, other := r.a, r.b
				if c.asked {
					stalls, other = r.b, r.a
				}
				if c.after == 0 {
					r.network.StallAfter(stalls.at.Self(), other.at.Self(), 0)
				}
				r.a.propose(r.b, 1)
				pass(c.after)
				if c.after > 0 && len(r.a.loop.kinds()) != 1 {
					t.Fatalf("a hears %v before the stall", r.a.loop.heard)
				}
				r.network.StallAfter(stalls.at.Self(), other.at.Self(), 0)
				pass(stall - time.Second) // who knows a link waits less long for it than for any
				if got := r.a.loop.last(); got.Kind != averaging.Failed || (got.After > 0) != c.silent || got.After > stall {
					t.Errorf("a hears %+v", got)
				}
				if got := r.b.loop.last(); got.Kind != averaging.Failed || !got.Inbound {
					t.Errorf("b hears %+v", got)
				}
				failed, dropped := r.a.Counters.Counts().Failed, r.b.Counters.Counts().Dropped
				if c.asked && failed["time"] != 1 || !c.asked && dropped["time"] != 1 {
					t.Errorf("a counts %v, and b %v", failed, dropped)
				}
				r.idle("a stall")
				r.network.Release(stalls.at.Self(), other.at.Self())
				pass(stall)
				r.b.RepairAll(stall)
				r.conserved("a stall")
			})
		})
	}
}

// settle are the ways in which a side gets to know what became of slices in doubt.
var settle = []struct {
	name string
	do   func(*room)
}{
	{"asked of its own accord", func(r *room) {
		r.b.Repair(time.Now()) // which notes that something is in doubt
		pass(repairFirst)
		r.b.Repair(time.Now())
	}},
	{"asked before the next exchange", func(r *room) { r.a.propose(r.b, 2) }},
	{"asked by one that leaves", func(r *room) { r.b.RepairAll(stall) }},
}

// TestACutStreamLosesNothing: wherever it is cut or stalls, over however many lanes, what one side has added the other takes
// away once it has asked.
func TestACutStreamLosesNothing(t *testing.T) {
	every := int64(61) // bytes from one cut to the next
	if underRace {
		every *= 5
	}
	doubted := 0
	for _, c := range []struct {
		outward, stalls bool
		lanes           int
	}{{true, false, 1}, {false, false, 1}, {true, true, 1}, {true, false, 3}, {false, false, 3}} {
		for cut, whole := int64(1), false; !whole; cut += every {
			how := settle[cut/every%int64(len(settle))]
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{lanes: c.lanes})
				from, to := r.a.at.Self(), r.b.at.Self()
				if !c.outward {
					from, to = to, from
				}
				fault := r.network.CutAfter
				if c.stalls {
					fault = r.network.StallAfter
				}
				fault(from, to, cut)
				r.a.propose(r.b, 1)
				pass(2 * stall)
				whole = r.a.loop.last().Kind == averaging.Finished && r.b.loop.last().Kind == averaging.Finished
				doubts := r.b.inDoubt()
				doubted += doubts
				if (r.b.Unresolved() > 0) != (doubts > 0) || (r.b.loop.doubts > 0) != (doubts > 0) {
					t.Errorf("cut after %d bytes: %d slices in doubt, of %d exchanges, told %d times", cut, doubts, r.b.Unresolved(), r.b.loop.doubts)
				}
				r.network.Release(from, to)
				how.do(r)
				pass(time.Second)
				if lost := r.b.Host.Ledger.Lost(); r.b.inDoubt() != 0 || r.b.Unresolved() != 0 || lost.Slices != 0 {
					t.Errorf("cut after %d bytes, %s: %d slices still in doubt, %d lost", cut, how.name, r.b.inDoubt(), lost.Slices)
				}
				if doubts > 0 && r.b.loop.doubts < 2 {
					t.Errorf("cut after %d bytes, %s: the machine does not hear of it", cut, how.name)
				}
				r.conserved(how.name)
				r.idle(how.name)
			})
		}
	}
	if doubted == 0 {
		t.Error("no cut leaves anything in doubt: the test tests nothing")
	}
}

// leaveInDoubt has b send the difference of a first slice, and no acknowledgement come.
func (r *room) leaveInDoubt() {
	r.t.Helper()
	h := r.byHand(1)
	h.say(h.pack(r.proposal()))
	h.hears(wire.TypeAccept)
	h.say(h.code(1))
	h.hears(wire.TypeDiff)
	h.Reset()
	pass(time.Second)
	r.b.loop.hears(r.t, "b", averaging.Proposed, averaging.Failed)
	if r.b.inDoubt() != 1 || r.b.Unresolved() != 1 {
		r.t.Fatalf("%d slices of %d exchanges in doubt, want 1 of 1", r.b.inDoubt(), r.b.Unresolved())
	}
}

// TestDoubtsAreSettledAsThePartnerSays: it is asked before its next proposal is answered, in
// whatever life it is, and b moves exactly if it has moved.
func TestDoubtsAreSettledAsThePartnerSays(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  wire.Settled
		another uint64 // how many lives later it proposes again
		moves   bool
		lost    uint64
	}{
		{"applied", wire.Settled{Known: true, Applied: 1}, 0, true, 0},
		{"not applied", wire.Settled{Known: true}, 0, false, 0},
		{"forgotten", wire.Settled{}, 0, false, 1},
		{"applied in another life", wire.Settled{Known: true, Applied: 1}, 1, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{})
				before := r.b.model()
				r.leaveInDoubt()
				h, proposal := r.byHand(2), r.proposal()
				proposal.Incarnation += c.another
				h.say(h.pack(proposal))
				var question wire.Status
				if err := question.Decode(h.hears(wire.TypeStatus)); err != nil || question.Incarnation != 1 || len(question.Slices) != 1 || question.Slices[0] != 0 {
					t.Fatalf("b asks %+v, %v", question, err)
				}
				h.exchange = 1
				h.say(h.pack(c.answer))
				h.hears(wire.TypeAccept)
				h.Reset()
				pass(time.Second)
				if after := r.b.model(); (after[0] != before[0]) != c.moves {
					t.Errorf("value 0 went from %g to %g", before[0], after[0])
				}
				if lost := r.b.Host.Ledger.Lost(); r.b.inDoubt() != 0 || lost.Slices != c.lost || (lost.Bound > 0) != (c.lost > 0) {
					t.Errorf("%d slices in doubt, %d lost with bound %g", r.b.inDoubt(), lost.Slices, lost.Bound)
				}
				var figures stats.Peer
				if r.b.Counters.Report(&figures); figures.Exchanges.Settled != 1-c.lost {
					t.Errorf("%d slices are counted as settled", figures.Exchanges.Settled)
				}
			})
		})
	}
}

// TestWhoAnswersNoQuestionHoldsNobodyUp: a member that cannot be reached is asked now and then;
// after a few questions its doubts keep the machine from nothing, and are settled all the same.
func TestWhoAnswersNoQuestionHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.leaveInDoubt()
		r.network.Cut(r.a.at.Self(), r.b.at.Self())
		asks := func(within time.Duration) {
			for end := time.Now().Add(within); time.Now().Before(end); pass(repairFirst) {
				r.b.Repair(time.Now())
			}
		}
		asks(repairFirst)
		if _, _, asked := r.b.Kept(); asked != 1 || r.b.Unresolved() != 1 {
			t.Errorf("%d are asked, and %d exchanges unresolved, want 1 and 1", asked, r.b.Unresolved())
		}
		asks(maxUnanswered * (stall + repairMost))
		if r.b.Unresolved() != 0 || r.b.inDoubt() != 1 {
			t.Errorf("%d exchanges unresolved and %d slices in doubt, want 0 and 1", r.b.Unresolved(), r.b.inDoubt())
		}
		r.network.HealAll()
		asks(2 * repairMost)
		if _, _, asked := r.b.Kept(); asked != 0 || r.b.inDoubt() != 0 {
			t.Errorf("%d are asked, and %d slices in doubt, after the link is back", asked, r.b.inDoubt())
		}
	})
}

// TestWhoBreaksTheRulesIsKeptAway: nothing of what it sent is applied, its machine hears of it, and
// it is served again when its time is over. Who only says nothing is not kept away.
func TestWhoBreaksTheRulesIsKeptAway(t *testing.T) {
	for _, c := range []struct {
		name   string
		frame  func(*room, *hand) []byte
		stalls bool
	}{
		{"a slice of NaN", func(_ *room, h *hand) []byte { return h.code(float32(math.NaN())) }, false},
		{"a slice of infinities", func(_ *room, h *hand) []byte { return h.code(float32(math.Inf(-1))) }, false},
		{"a slice farther away than any model", func(_ *room, h *hand) []byte { return h.code(1e12) }, false},
		{"a proposal once more", func(r *room, h *hand) []byte { return h.pack(r.proposal()) }, false},
		{"half a frame, then silence", func(_ *room, h *hand) []byte { return h.code(1)[:100] }, true},
		{"silence", func(*room, *hand) []byte { return nil }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{})
				before := r.b.model()
				h := r.byHand(1)
				h.say(h.pack(r.proposal()))
				h.hears(wire.TypeAccept)
				h.say(c.frame(r, h))
				if c.stalls {
					pass(2 * stall)
				} else {
					h.hears(wire.TypeRefuse)
				}
				h.Close()
				pass(time.Second)
				if after := r.b.model(); after[0] != before[0] {
					t.Errorf("value 0 went from %g to %g", before[0], after[0])
				}
				again := r.byHand(2)
				again.say(again.pack(r.proposal()))
				if c.stalls {
					r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
					again.hears(wire.TypeAccept)
					again.Reset()
					return
				}
				r.b.loop.hears(t, "b", averaging.Proposed, averaging.Quarantined, averaging.Failed)
				again.hears(wire.TypeRefuse)
				again.Close()
				term := r.b.loop.heard[1].After
				if left := r.b.Quarantined(r.a.at.Self()); left <= 0 || left > term || len(r.b.loop.ends) != 2 {
					t.Errorf("kept away for %s of %s, and hooks hear %v", left, term, r.b.loop.ends)
				}
				pass(term)
				once := r.byHand(3)
				once.say(once.pack(r.proposal()))
				once.hears(wire.TypeAccept)
				once.Reset()
			})
		})
	}
}

// TestAnAnswerAgainstTheRulesIsNoRefusal: who is asked and answers what nobody asked for is kept
// away too.
func TestAnAnswerAgainstTheRulesIsNoRefusal(t *testing.T) {
	for name, answer := range map[string]wire.Message{
		"codecs that were not offered": wire.Accept{Codecs: []uint8{250}, Window: 1, Overlap: 1, Lanes: 1},
		"more lanes than asked for":    wire.Accept{Codecs: []uint8{uint8(coding.Raw)}, Window: 1, Overlap: 1, Lanes: 7},
		"a message that is not due":    wire.Lane{Lane: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{})
				other := r.partner(func(stream transport.Stream, frames *wire.Reader) {
					header, _, err := frames.Next()
					frame, packs := wire.Pack(nil, header.Exchange, answer)
					if err := errors.Join(err, packs); err != nil {
						t.Error(err)
					}
					stream.Write(frame)
					frames.Next()
					stream.Close()
				})
				r.a.propose(other, 1)
				pass(time.Second)
				r.a.loop.hears(t, "a", averaging.Quarantined, averaging.Failed)
				if r.a.Quarantined(other.at.Self()) == 0 || r.a.Counters.Counts().Failed["protocol"] != 1 {
					t.Errorf("a counts %v", r.a.Counters.Counts().Failed)
				}
			})
		})
	}
}
