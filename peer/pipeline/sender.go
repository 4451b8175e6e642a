package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// sender sends micro-batches of this member's rows into the first stage.
type sender struct {
	*run
	accept func(context.Context, transport.PeerID, parcel) (outcome, error) // of this member's own stage, which may be the first
	after  func()                                                           // called, with the lock, when some may be back; nil in a run without rounds
	room   chan struct{}                                                    // a token if there may be room for more

	// The lock is held for these.
	machine *stages.Source
	own     map[stages.ID]*own
	loss    float64 // mean of those that came back lately
	useless uint64  // micro-batches that were not sent since they hold what cannot be used
}

// own is a micro-batch of this member's rows.
type own struct {
	parcel
	life   context.Context // ends when it is back, or lost
	end    context.CancelFunc
	result coded // what came back
}

// smoothing is what the loss of a micro-batch counts in the mean.
const smoothing = 1.0 / 16

func newSender(s *stage, first uint64, asks bool) *sender {
	machine := stages.NewSource(s.node.Self(), s.with.Window, first)
	machine.Asks = asks
	return &sender{run: s.run, accept: s.accept, machine: machine, own: map[stages.ID]*own{}, room: make(chan struct{}, 1), loss: math.NaN()}
}

// wake tells who waits for room to look.
func (s *sender) wake() {
	select {
	case s.room <- struct{}{}:
	default: // a token is there
	}
}

// errUseless: rows hold what is no number, or no class.
var errUseless = errors.New("a micro-batch holds NaN or infinite values, or targets that the loss does not take")

// parcel makes a micro-batch of rows.
func (s *sender) parcel(x, y tensor.Vector) (p parcel, err error) {
	width, out := s.with.Plan.Whole.In().Len(), s.with.Plan.Whole.Out()
	p = parcel{examples: len(x) / width, values: encode(raw(), x), targets: encode(raw(), y)}
	if s.machine.Asks {
		p.back = s.outputs(p.examples)
	}
	switch terms := s.with.Plan.Loss.Terms(out); {
	case p.examples < 1 || p.examples > s.with.Examples || len(x) != p.examples*width:
		err = fmt.Errorf("a micro-batch of %d values: want 1 to %d examples of %d", len(x), s.with.Examples, width)
	case !tensor.Finite(x) || !tensor.Finite(y) || !s.with.Plan.Loss.Takes(out, y):
		err = errUseless
	case !s.machine.Asks && len(y) != p.examples*terms:
		err = fmt.Errorf("a micro-batch of %d targets: want %d for each of %d examples", len(y), terms, p.examples)
	}
	return p, err
}

// put sends a micro-batch when there is room.
func (s *sender) put(ctx context.Context, x, y tensor.Vector) (*own, error) {
	p, err := s.parcel(x, y)
	if err != nil {
		return nil, err
	}
	o := &own{parcel: p}
	s.mu.Lock()
	for s.machine.Room() == 0 {
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.life.Done():
			return nil, context.Cause(s.life)
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	o.life, o.end = context.WithCancel(s.life)
	id, do := s.machine.Make(s.now())
	o.id, o.round = id, s.round(id)
	s.own[id] = o
	if s.machine.Room() > 0 {
		s.wake() // another may wait
	}
	s.carryOut(do)
	return o, nil
}

// carryOut does what the machine says. The lock is held.
func (s *sender) carryOut(do []stages.Action) {
	for _, a := range do {
		o := s.own[a.ID]
		switch {
		case a.Kind == stages.Send && a.To == s.node.Self():
			s.tasks.Spawn(func() {
				got, err := s.accept(o.life, a.To, o.parcel)
				if o.life.Err() == nil {
					s.answered(a, got, err)
				}
			})
		case a.Kind == stages.Send:
			s.send(o.life, a.To, 0, o.parcel, func(got outcome, err error) { s.answered(a, got, err) })
		default:
			o.end()
			delete(s.own, a.ID)
			s.wake()
		}
	}
}

// answered takes what became of a micro-batch of this member's rows.
func (s *sender) answered(a stages.Action, got outcome, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if broken != nil {
		s.carryOut(s.machine.Broken(s.now(), a.Number))
		return
	}
	id, do := s.machine.Answer(s.now(), a.To, a.Number, got.answer, got.load)
	if o := s.own[id]; o != nil {
		if !s.with.Plan.ends {
			o.result = got.values
		}
		if math.IsNaN(s.loss) {
			s.loss = got.loss
		}
		s.loss += smoothing * (got.loss - s.loss)
	}
	if s.carryOut(do); s.after != nil {
		s.after()
	}
}

// home gives what the last stage of this member needs of one of its micro-batches that comes there, if one of so many examples is on
// its way.
func (s *sender) home(id stages.ID, examples int) (targets coded, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.own[id]; o != nil && o.examples == examples {
		return o.targets, true
	}
	return targets, false
}

// keep takes the outputs of one that stay here.
func (s *sender) keep(id stages.ID, outputs coded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.own[id]; o != nil {
		o.result = outputs
	}
}

// result waits for the outputs of a micro-batch.
func (s *sender) result(ctx context.Context, o *own) (tensor.Vector, error) {
	select {
	case <-o.life.Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.life.Err() != nil {
		return nil, context.Cause(s.life)
	}
	s.mu.Lock()
	got := o.result
	s.mu.Unlock()
	if got.n == 0 {
		return nil, errNotBack
	}
	return got.decode()
}
