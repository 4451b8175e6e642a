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

// sender sends micro-batches of this member's rows into the first stage. The pipeline's lock is held for it.
type sender struct {
	machine *stages.Source
	own     map[stages.ID]*own
	room    chan struct{} // a token if there may be room for more
	loss    float64       // mean of those that came back lately
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

func newSender(self transport.PeerID, window int, first uint64, asks bool) *sender {
	s := &sender{machine: stages.NewSource(self, window, first), own: map[stages.ID]*own{}, room: make(chan struct{}, 1), loss: math.NaN()}
	s.machine.Asks = asks
	return s
}

// wake tells who waits for room to look.
func (s *sender) wake() {
	select {
	case s.room <- struct{}{}:
	default: // a token is there
	}
}

// feed sends this member's rows, as fast as they are computed.
func (p *Pipeline) feed() {
	for {
		x, y, err := p.with.Feed(p.life)
		if err == nil {
			_, err = p.put(p.life, p.rows, x, y)
		}
		if err != nil {
			p.fail(fmt.Errorf("the rows of this member: %w", err))
			return
		}
	}
}

// put sends a micro-batch when there is room.
func (p *Pipeline) put(ctx context.Context, s *sender, x, y tensor.Vector) (*own, error) {
	width := p.with.Plan.Whole.In().Len()
	n := len(x) / width
	o := &own{parcel: parcel{examples: n, values: encode(raw(), x), targets: encode(raw(), y)}}
	switch terms := p.with.Plan.Loss.Terms(p.with.Plan.Whole.Out()); {
	case n < 1 || n > p.with.Examples || len(x) != n*width:
		return nil, fmt.Errorf("a micro-batch of %d values: want 1 to %d examples of %d", len(x), p.with.Examples, width)
	case s == p.asks:
		o.back = n * p.with.Plan.Whole.Out().Len()
	case len(y) != n*terms:
		return nil, fmt.Errorf("a micro-batch of %d targets: want %d for each of %d examples", len(y), terms, n)
	}
	for {
		p.mu.Lock()
		if s.machine.Room() > 0 {
			break
		}
		p.mu.Unlock()
		select {
		case <-s.room:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer p.mu.Unlock()
	o.life, o.end = context.WithCancel(p.life)
	id, do := s.machine.Make(p.now())
	o.id = id
	s.own[id] = o
	if s.machine.Room() > 0 {
		s.wake() // another may wait
	}
	p.sendRows(s, do)
	return o, nil
}

// sendRows does what the machine of a sender says. The lock is held.
func (p *Pipeline) sendRows(s *sender, do []stages.Action) {
	for _, a := range do {
		o := s.own[a.ID]
		if a.Kind == stages.Send {
			p.send(o.life, a, o.parcel, func(a stages.Action, got outcome, err error) { p.returned(s, a, got, err) })
			continue
		}
		o.end()
		delete(s.own, a.ID)
		s.wake()
	}
}

// returned takes what became of a micro-batch of this member's rows.
func (p *Pipeline) returned(s *sender, a stages.Action, got outcome, err error) {
	got, broken := p.judged(a.To, got, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if broken != nil {
		p.sendRows(s, s.machine.Broken(p.now(), a.Number))
		return
	}
	id, do := s.machine.Answer(p.now(), a.To, a.Number, got.answer, got.load)
	if o := s.own[id]; o != nil {
		if o.result = got.values; math.IsNaN(s.loss) {
			s.loss = got.loss
		}
		s.loss += smoothing * (got.loss - s.loss)
	}
	p.sendRows(s, do)
}

// errNotBack: a micro-batch was given up.
var errNotBack = errors.New("no member could compute it, or its outputs are no numbers")

// Predict returns the outputs of the whole model for some examples, which go through the stages as micro-batches do. It
// waits while members are busy, and for stages without members.
func (p *Pipeline) Predict(ctx context.Context, x tensor.Vector) (tensor.Vector, error) {
	width, most := p.with.Plan.Whole.In().Len(), p.with.Examples*p.with.Plan.Whole.In().Len()
	if len(x)%width != 0 {
		return nil, fmt.Errorf("predicting for %d values: want %d for each example", len(x), width)
	}
	var sent []*own
	for from := 0; from < len(x); from += most {
		o, err := p.put(ctx, p.asks, x[from:min(from+most, len(x))], nil)
		if err != nil {
			return nil, fmt.Errorf("predicting: %w", err)
		}
		sent = append(sent, o)
	}
	var out tensor.Vector
	for _, o := range sent {
		select {
		case <-o.life.Done():
		case <-ctx.Done():
			return nil, fmt.Errorf("predicting: %w", context.Cause(ctx))
		}
		p.mu.Lock()
		got := o.result
		p.mu.Unlock()
		if got.n == 0 {
			return nil, fmt.Errorf("predicting: %w", errNotBack)
		}
		part, err := got.decode()
		if err != nil {
			return nil, fmt.Errorf("predicting: %w", err)
		}
		out = append(out, part...)
	}
	return out, nil
}
