package sim_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// scripted does what a test says, and keeps what it was told.
type scripted struct {
	averaging.Machine // none
	seen              []collective.Event
	says              func(collective.Event) []collective.Action
}

func (s *scripted) Traits() collective.Traits {
	return collective.Traits{Gradients: true, Messages: true}
}

func (s *scripted) Decide(_ time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	s.seen = append(s.seen, e)
	if s.says == nil {
		return actions
	}
	return append(actions, s.says(e)...)
}

// kinds are those of the events that it was told.
func (s *scripted) has(kind averaging.EventKind, inbound bool) (e collective.Event, found bool) {
	for _, e := range s.seen {
		if e.Kind == kind && e.Inbound == inbound {
			return e, true
		}
	}
	return collective.Event{}, false
}

// pairOf are two peers of which the first sends its gradient to the second once, which
// answers as it is told.
func scriptedPair(t *testing.T, link sim.Link, answer collective.Action, hooks sim.Hooks) (f *flock, a, b *scripted) {
	t.Helper()
	const values = 200_000
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	transfer := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1, Round: 3}
	a = &scripted{says: func(e collective.Event) []collective.Action {
		if e.Kind != collective.GradientDone {
			return nil
		}
		return []collective.Action{
			{Action: averaging.Action{Kind: collective.Tell, Peer: nameOf(1)}, Message: collective.Message{Kind: 9, Round: 3, Value: 2.5}},
			{Action: averaging.Action{Kind: collective.Send, Peer: nameOf(1), Exchange: 1}, Transfer: transfer},
		}
	}}
	b = &scripted{says: func(e collective.Event) []collective.Action {
		if e.Kind != collective.Offered {
			return nil
		}
		if e.Transfer != transfer {
			t.Errorf("offered %v, want %v", e.Transfer, transfer)
		}
		answer.Peer, answer.Exchange, answer.Inbound = e.Peer, e.Exchange, true
		return []collective.Action{answer}
	}}
	f = &flock{t: t, scratch: make(tensor.Vector, values)}
	trainer := newSlope(2, values)
	trainer.steps = func(peer int) time.Duration { return []time.Duration{time.Millisecond, time.Hour}[peer] }
	config := sim.Config{Task: trainer, Link: link, Terms: replica.Terms{Plan: coding.Uniform(codec)}, Hooks: hooks, Rand: rand.New(rand.NewPCG(1, 1))}
	for i, machine := range []*scripted{a, b} {
		f.add(tensor.NewParams(layout), plan{}, i)
		config.Members = append(config.Members, sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: descending{trainer, i}})
	}
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	return f, a, b
}

// transferLink takes a second for the gradient of the pair.
var transferLink = sim.Link{Delay: 50 * time.Millisecond, Bandwidth: 800_000}

func TestTransferArrives(t *testing.T) {
	f, a, b := scriptedPair(t, transferLink, collective.Action{Action: averaging.Action{Kind: averaging.Accept}}, sim.Hooks{})
	f.world.Run(55 * time.Millisecond)
	if e, told := b.has(collective.Received, false); !told || e.Message != (collective.Message{Kind: 9, Round: 3, Value: 2.5}) || e.Peer != nameOf(0) {
		t.Errorf("the word has not come: %v", b.seen)
	}
	f.world.Run(1200 * time.Millisecond)
	if _, done := a.has(averaging.Finished, false); !done {
		t.Errorf("the sender knows %v", a.seen)
	}
	if _, done := b.has(averaging.Finished, true); !done {
		t.Errorf("the receiver knows %v", b.seen)
	}
	f.replicas[1].Drain(f.scratch, 0, 1, 0)
	for i, v := range f.scratch {
		if v != float32(1+i%5) {
			t.Fatalf("value %d is %g", i, v)
		}
	}
	if c := f.world.Counts(0); c.Initiated != 1 || c.Values != 200_000 || c.Moved < 800_000 || c.Messages != 1 || c.Sent < c.Moved-200 {
		t.Errorf("counted %+v", c)
	}
}

// A transfer that is cut leaves pieces that have come and pieces that have not, and
// both ends know that it failed. Words are lost with the link.
func TestTransferIsCut(t *testing.T) {
	f, a, b := scriptedPair(t, transferLink, collective.Action{Action: averaging.Action{Kind: averaging.Accept}}, sim.Hooks{
		Opened: func(s *sim.Stream) { s.CutAfter(0, 300_000) },
	})
	f.world.Run(3 * time.Second)
	_, atA := a.has(averaging.Failed, false)
	_, atB := b.has(averaging.Failed, true)
	if !atA || !atB {
		t.Fatalf("the sender knows %v, the receiver %v", a.seen, b.seen)
	}
	if weight := f.replicas[1].Drain(f.scratch, 0, 1, 0); weight != 4 {
		t.Errorf("what has come weighs %g", weight)
	}
	came := 0
	for i, v := range f.scratch {
		if v != 0 {
			came++
		}
		if v != 0 && (v != float32(1+i%5) || came != i+1) {
			t.Fatalf("value %d is %g after %d", i, v, came)
		}
	}
	if came != 2*replica.DefaultSliceLen {
		t.Errorf("%d values have come of 300,000 bytes, want two frames", came)
	}
}

func TestWordIsLostWithTheLink(t *testing.T) {
	f, _, b := scriptedPair(t, transferLink, collective.Action{Action: averaging.Action{Kind: averaging.Accept}}, sim.Hooks{})
	f.world.Run(20 * time.Millisecond)
	f.world.Cut(0, 1)
	f.world.Run(time.Second)
	if _, told := b.has(collective.Received, false); told {
		t.Error("a word came over a link that was cut while it was under way")
	}
}

// An offer that is refused has cost no more than what goes before the answer.
func TestTransferIsRefused(t *testing.T) {
	f, a, b := scriptedPair(t, transferLink, collective.Action{Action: averaging.Action{Kind: averaging.Refuse, Reason: averaging.Round}}, sim.Hooks{})
	f.world.Run(2 * time.Second)
	if e, refused := a.has(averaging.Refused, false); !refused || e.Reason != averaging.Round {
		t.Errorf("the sender knows %v", a.seen)
	}
	if len(b.seen) != 3 { // the view, the word, the offer
		t.Errorf("the receiver knows %v", b.seen)
	}
	most := int64(wire.MaxEager + 4*replica.DefaultSliceLen + 500)
	if c := f.world.Counts(0); c.Sent > most || c.Refused != 1 {
		t.Errorf("counted %+v, at most %d bytes", c, most)
	}
	if f.replicas[1].Drain(f.scratch, 0, 1, 0) != 0 {
		t.Error("what was refused has been taken in")
	}
}

// What is broken off is not sent on.
func TestTransferIsAborted(t *testing.T) {
	f, a, b := scriptedPair(t, transferLink, collective.Action{Action: averaging.Action{Kind: averaging.Accept}}, sim.Hooks{})
	says := a.says
	a.says = func(e collective.Event) []collective.Action {
		if e.Kind == averaging.TimerFired {
			return []collective.Action{{Action: averaging.Action{Kind: averaging.Abort, Peer: nameOf(1), Exchange: 1}}}
		}
		actions := says(e)
		if e.Kind == averaging.Accepted {
			actions = append(actions, collective.Action{Action: averaging.Action{Kind: averaging.SetTimer, Timer: averaging.RoundDeadline, After: 300 * time.Millisecond}})
		}
		return actions
	}
	f.world.Run(3 * time.Second)
	if _, failed := b.has(averaging.Failed, true); !failed {
		t.Errorf("the receiver knows %v", b.seen)
	}
	if c := f.world.Counts(0); c.Sent > 600_000 {
		t.Errorf("%d bytes were sent though the transfer was broken off", c.Sent)
	}
}

// A receiver that is sent what is no gradient keeps nothing of it and says whose fault
// that is.
func TestTransferOfALiar(t *testing.T) {
	var blamed []error
	f, a, b := scriptedPair(t, transferLink, collective.Action{Action: averaging.Action{Kind: averaging.Accept}}, sim.Hooks{
		Opened: func(s *sim.Stream) {
			s.Tamper(0, func(frame []byte) [][]byte {
				const typeAt, valueAt = 3, wire.HeaderSize + wire.PartInfoSize
				if wire.Type(frame[typeAt]) == wire.TypePart {
					frame[valueAt+2], frame[valueAt+3] = 0xc0, 0x7f
					if err := wire.Seal(frame, wire.Header{Type: wire.TypePart, Exchange: 1}); err != nil {
						t.Error(err)
					}
				}
				return [][]byte{frame}
			})
		},
		Broke: func(_, _ int, err error) { blamed = append(blamed, err) },
	})
	f.world.Run(3 * time.Second)
	_, atA := a.has(averaging.Failed, false)
	_, atB := b.has(averaging.Failed, true)
	if !atA || !atB || f.replicas[1].Drain(f.scratch, 0, 1, 0) != 0 {
		t.Errorf("the sender knows %v, the receiver %v", a.seen, b.seen)
	}
	if len(blamed) != 2 || !errors.Is(blamed[0], replica.ErrImplausible) || !errors.Is(blamed[1], wire.ErrRefused) {
		t.Errorf("the errors are %v", blamed)
	}
}
