package conversations

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// slow is a link on which the slices of an exchange take seconds, so that it can end midway.
var slow = memnet.Link{Delay: 5 * time.Millisecond, Bandwidth: 1000}

// TestAnExchangeEndsAtBothSides: both machines hear of it from its beginning to its end, and both
// models have moved, over however many lanes.
func TestAnExchangeEndsAtBothSides(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{lanes: lanes})
			began := r.a.model()
			r.a.propose(r.b, 7)
			pass(time.Second)
			r.a.loop.hears(t, "a", averaging.Accepted, averaging.Finished)
			r.b.loop.hears(t, "b", averaging.Proposed, averaging.Finished)
			r.conserved("a whole exchange")
			r.idle("a whole exchange")
			if r.a.model()[0] == began[0] {
				t.Error("no model has moved")
			}
			end := r.a.loop.last()
			if end.Exchange != 7 || end.Peer != r.b.at.Self() || end.Inbound || end.Bytes == 0 || !(end.Distance > 0) {
				t.Errorf("a hears %+v", end)
			}
			if end := r.b.loop.last(); end.Exchange != 7 || end.Peer != r.a.at.Self() || !end.Inbound {
				t.Errorf("b hears %+v", end)
			}
			for name, s := range map[string]*side{"a": r.a, "b": r.b} {
				if len(s.loop.ends) != 1 || s.loop.ends[0] != nil || s.loop.doubts != 0 || s.inDoubt() != 0 {
					t.Errorf("%s: hooks hear %v, and %d slices are in doubt", name, s.loop.ends, s.inDoubt())
				}
			}
		})
	}
}

// TestARefusalTellsTheMachineWhy: of what is asked in vain the proposer's machine hears the
// reason, and no model moves.
func TestARefusalTellsTheMachineWhy(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(*room)
		want  averaging.Reason
		asks  bool // the machine of b hears of the proposal
	}{
		{"busy", func(r *room) { r.b.loop.refuses = averaging.Busy }, averaging.Busy, true},
		{"of a role", func(r *room) { r.b.loop.refuses = averaging.WrongRole }, averaging.WrongRole, true},
		{"another round", func(r *room) { r.b.loop.refuses = averaging.Round }, averaging.Round, true},
		{"closing", func(r *room) { close(r.b.Life.Closing) }, averaging.Closing, false},
		{"stopped", func(r *room) { r.b.loop.stopped = true }, averaging.Closing, true},
		{"copying", func(r *room) { r.b.copies = true }, averaging.Busy, false},
		{"another model", func(r *room) { r.b.Host.Layout[0]++ }, averaging.Unfit, false},
		{"other slices", func(r *room) { r.b.Host.Cut++ }, averaging.Unfit, false},
		{"a stranger", func(r *room) { r.b.knows() }, averaging.Busy, false},
		{"kept away", func(r *room) { r.b.Host.Links.Quarantine(r.a.at.Self(), r.b.Life.Now()) }, averaging.Quarantine, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{})
				c.given(r)
				before := r.a.model()
				r.a.propose(r.b, 1)
				pass(time.Second)
				r.a.loop.hears(t, "a", averaging.Refused)
				if got := r.a.loop.last(); got.Reason != c.want || got.Exchange != 1 {
					t.Errorf("a hears %v, want the reason %v", got, c.want)
				}
				if asked := len(r.b.loop.kinds()) > 0; asked != c.asks {
					t.Errorf("the machine of b hears %v", r.b.loop.heard)
				}
				counted, declined := r.a.Counters.Counts().Refused, r.b.Counters.Counts().Declined
				if len(counted) != 1 || len(declined) != 1 {
					t.Errorf("a counts %v refused, b %v declined", counted, declined)
				}
				if met := r.a.compared; (met > 0) != (c.name == "a stranger") {
					t.Errorf("views are compared %d times", met)
				}
				r.idle("a refusal")
				if r.a.model()[0] != before[0] {
					t.Error("a model has moved")
				}
			})
		})
	}
}

// partner is somebody at b's place who answers what comes on each stream by hand.
func (r *room) partner(answers func(transport.Stream, *wire.Reader)) *side {
	r.t.Helper()
	tr, err := r.network.Transport("partner")
	if err != nil {
		r.t.Fatal(err)
	}
	stop, err := tr.Handle(transport.ProtocolExchange, run, func(stream transport.Stream) { answers(stream, wire.NewReader(stream, 0)) })
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		tr.Close()
		stop()
	})
	return &side{at: tr}
}

// TestAnotherVersionIsAskedAboutByAHello: a proposal may have been damaged on the way, so that
// who finds another version in it is asked again, unless it says so to a hello as well.
func TestAnotherVersionIsAskedAboutByAHello(t *testing.T) {
	for _, c := range []struct {
		hello error
		want  averaging.Reason
	}{
		{nil, averaging.Closing},
		{errors.New("the link is down"), averaging.Closing},
		{&transport.RefusedError{}, averaging.Unfit},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{})
			r.a.hello = c.hello
			other := r.partner(func(stream transport.Stream, frames *wire.Reader) {
				frames.Next()
				frame, err := wire.Pack(nil, 1, wire.Refuse{Reason: wire.ReasonVersion})
				if err != nil {
					t.Error(err)
				}
				stream.Write(frame)
				stream.Close()
			})
			r.a.propose(other, 1)
			pass(time.Second)
			if got := r.a.loop.last(); got.Kind != averaging.Refused || got.Reason != c.want {
				t.Errorf("after the hello ended with %v, a hears %v, want the reason %v", c.hello, got, c.want)
			}
		})
	}
}

// TestAnExchangeIsAbortedMidway: whichever machine gives it up, both hear that it has failed, and
// once what is in doubt is asked about, what one side has added the other has taken away.
func TestAnExchangeIsAbortedMidway(t *testing.T) {
	for _, inbound := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{link: slow})
			x := r.a.propose(r.b, 1)
			pass(2 * time.Second)
			gives, other := r.a, r.b
			if inbound {
				x, gives, other = r.b.loop.asked, r.b, r.a
			}
			if !gives.Busy() || !other.Busy() {
				t.Fatal("no exchange is under way")
			}
			gives.Abort(x)
			pass(stall)
			r.a.loop.hears(t, "a", averaging.Accepted, averaging.Failed)
			r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
			if ends := gives.loop.ends; len(ends) != 1 || !errors.Is(ends[0], session.ErrAborted) {
				t.Errorf("who gives it up tells hooks %v", ends)
			}
			if ends := other.loop.ends; len(ends) != 1 || errors.Is(ends[0], session.ErrAborted) {
				t.Errorf("the other tells hooks %v", ends)
			}
			r.idle("an abort")
			r.b.RepairAll(stall)
			r.conserved("an abort")
		})
	}
}

// TestWhatTheMachineLeavesUnansweredCanBeAborted: one that is asked about a proposal may give it up
// instead of answering, and what it says later is not taken for the answer to the next.
func TestWhatTheMachineLeavesUnansweredCanBeAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.b.loop.silent = true
		r.a.propose(r.b, 1)
		pass(time.Second)
		r.a.loop.hears(t, "a")
		r.b.Abort(r.b.loop.asked)
		pass(time.Second)
		r.a.loop.hears(t, "a", averaging.Failed)
		r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
		r.b.loop.silent = false
		r.b.loop.late <- averaging.Action{Kind: averaging.Refuse, Reason: averaging.Busy}
		r.a.propose(r.b, 2)
		pass(time.Second)
		r.a.loop.hears(t, "a", averaging.Failed, averaging.Accepted, averaging.Finished)
	})
}

// TestAnUnreachablePartnerFailsAnExchange: the machine hears for how long it was waited for.
func TestAnUnreachablePartnerFailsAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.network.Cut(r.a.at.Self(), r.b.at.Self())
		most := r.a.Host.Links.Answer(r.b.at.Self())
		r.a.propose(r.b, 1)
		pass(most - time.Millisecond)
		r.a.loop.hears(t, "a")
		pass(2 * time.Millisecond)
		r.a.loop.hears(t, "a", averaging.Failed)
		if got := r.a.loop.last().After; got != most {
			t.Errorf("waited for %s, want %s", got, most)
		}
		r.b.loop.hears(t, "b")
	})
}

// gives has a give b its gradient.
func (r *room) gives(id averaging.ExchangeID) collective.Transfer {
	r.t.Helper()
	var action collective.Action
	action.Peer, action.Exchange = r.b.at.Self(), id
	action.Transfer = collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}
	if _, ok := r.a.Send(action); !ok {
		r.t.Fatal("no transfer is begun")
	}
	return action.Transfer
}

// TestATransferGoesOneWay: of two parts, each as a transfer of its own.
func TestATransferGoesOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{traits: collective.Traits{Gradients: true}})
		gradient := make([]float32, values)
		for i := range gradient {
			gradient[i] = 2
		}
		if err := r.a.Host.Replica.PutRange(gradient, 0, len(gradient), 4); err != nil {
			t.Fatal(err)
		}
		before := r.b.model()
		for part := range 2 {
			var action collective.Action
			action.Peer, action.Exchange = r.b.at.Self(), averaging.ExchangeID(part+1)
			action.Transfer = collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Part: part, Parts: 2}
			if _, ok := r.a.Send(action); !ok {
				t.Fatal("no transfer is begun")
			}
			pass(time.Second)
			end := r.b.loop.last()
			if end.Kind != averaging.Finished || end.Transfer != action.Transfer || !end.Inbound {
				t.Errorf("b hears %+v", end)
			}
		}
		r.a.loop.hears(t, "a", averaging.Accepted, averaging.Finished, averaging.Accepted, averaging.Finished)
		r.b.loop.hears(t, "b", collective.Offered, averaging.Finished, collective.Offered, averaging.Finished)
		if r.a.unfit != nil || r.b.model()[0] != before[0] {
			t.Errorf("the trainer hears %v, or the parameters have moved", r.a.unfit)
		}
		r.idle("a transfer")
	})
}
