package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Pipeline trains the stage of one member. Step belongs to one goroutine; every other method is safe for concurrent use.
type Pipeline struct {
	with    Config
	node    *peer.Node
	self    transport.PeerID
	trainer *peer.Trainer
	service *peer.Service
	model   *nn.Model // the stage
	desk    *desk     // of the goroutine that calls Step
	members *members
	copies  *copies
	reading chan struct{} // a token for each micro-batch that is being read
	began   time.Time
	life    context.Context // ends with Close
	fail    context.CancelCauseFunc
	tasks   tasks.Group

	mu      sync.Mutex
	holder  *stages.Holder
	held    map[stages.Key]*held
	arrived uint64 // numbers what comes
	rows    *sender
	asks    *sender
}

// New begins to take micro-batches for a member's trainer; they are computed while Step runs. Close it before the trainer.
func New(n *peer.Node, t *peer.Trainer, with Config) (*Pipeline, error) {
	if err := with.validate(); err != nil {
		return nil, err
	}
	with = with.withDefaults()
	began := time.Now()
	first := uint64(began.UnixNano()) // later than in all earlier lives
	holder, err := stages.NewHolder(stages.Config{Stage: with.Stage, Stages: len(with.Plan.Stages), Batch: with.Batch, First: first})
	if err != nil {
		return nil, err
	}
	p := &Pipeline{
		with: with, node: n, self: n.Self(), trainer: t, model: with.Plan.Stages[with.Stage], began: began, reading: make(chan struct{}, maxReading),
		holder: holder, held: map[stages.Key]*held{},
	}
	p.life, p.fail = context.WithCancelCause(context.Background())
	p.desk = newDesk(with, p.model)
	p.members = newMembers(n.Self(), with)
	p.copies = newCopies(with, p.own)
	p.rows, p.asks = newSender(n.Self(), with.Window, first, false), newSender(n.Self(), with.Window, first, true)
	ready := make(chan struct{})
	p.service, err = peer.Serve(n, transport.ProtocolStages, func(ctx context.Context, s *framed.Stream) error {
		select {
		case <-ready: // a member may ask before Serve returns
			return p.serve(ctx, s)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		p.fail(err)
		return nil, err
	}
	close(ready)
	p.tasks.Spawn(p.watch)
	if with.Feed != nil {
		p.tasks.Spawn(p.feed)
	}
	return p, nil
}

// Close stops: what is on its way is lost to this member, and others send theirs elsewhere. It waits for all goroutines, and
// is idempotent.
func (p *Pipeline) Close() error {
	p.fail(peer.ErrClosed)
	p.service.Close()
	p.tasks.End()
	return nil
}

// Counts tell what became of micro-batches at this member: those of its own rows, and those of its stage.
func (p *Pipeline) Counts() (rows, stage Counts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows.machine.Counts(), p.holder.Counts()
}

// Counts say what became of micro-batches: see its fields.
type Counts = stages.Counts

// Loss is the mean loss of the micro-batches of this member's rows that came back lately; NaN before the first.
func (p *Pipeline) Loss() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows.loss
}

func (p *Pipeline) now() time.Duration { return time.Since(p.began) }

func (p *Pipeline) load() stages.Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holder.Load()
}

// senders tells whether a member may send micro-batches to this stage.
func (p *Pipeline) senders(id transport.PeerID) bool {
	return id == p.self && p.with.Stage == 0 || p.members.before(p.service.Records(), id)
}

// accept takes a micro-batch from a member, or of this member's own rows, and waits for what becomes of it.
func (p *Pipeline) accept(ctx context.Context, from transport.PeerID, got parcel) (o outcome, err error) {
	in, err := got.values.decode()
	if err != nil {
		return o, fmt.Errorf("%w: %w", wire.ErrMessage, err)
	}
	targets, err := got.targets.decode()
	if err != nil {
		return o, fmt.Errorf("%w: %w", wire.ErrMessage, err)
	}
	h := &held{id: got.id, in: in, targets: targets, labels: got.targets, codec: got.values.codec, answer: make(chan outcome, 1)}
	h.life, h.end = context.WithCancel(p.life)
	p.mu.Lock()
	p.arrived++
	key := stages.Key{From: from, Number: p.arrived}
	p.held[key] = h
	p.carryOut(p.holder.Forward(p.now(), from, key.Number, got.id))
	p.mu.Unlock()
	select {
	case o = <-h.answer:
		return o, nil
	case <-ctx.Done():
		return o, context.Cause(ctx)
	case <-p.life.Done():
		return o, peer.ErrClosed
	}
}

// carryOut does what the schedule of the stage says. The lock is held.
func (p *Pipeline) carryOut(do []stages.Action) {
	for _, a := range do {
		h := p.held[a.At]
		switch a.Kind {
		case stages.ComputeForward, stages.ComputeBack, stages.Step:
			p.desk.jobs <- job{a, h} // has room: there is one at a time
		case stages.Send:
			p.send(h.life, a, parcel{id: h.id, examples: len(h.in) / p.model.In().Len(), values: h.onwards, targets: h.labels, back: h.due(p)}, p.answered)
		case stages.Reply:
			h.answer <- outcome{answer: a.Answer, load: a.Load, loss: h.loss, values: h.returned(a.Answer)} // has room
			if a.Answer == stages.NoRoom {
				p.release(a.At)
			}
		case stages.Release:
			p.release(a.At)
		}
	}
}

// release frees what is held of a micro-batch, and ends conversations about it.
func (p *Pipeline) release(at stages.Key) {
	h := p.held[at]
	h.end()
	delete(p.held, at)
	p.desk.free(h)
}

// send sends a micro-batch to a member, and tells what becomes of it.
func (p *Pipeline) send(ctx context.Context, a stages.Action, what parcel, answered func(a stages.Action, o outcome, err error)) {
	stage := p.with.Stage + 1
	if a.At == (stages.Key{}) {
		stage = 0 // of rows
	}
	p.tasks.Spawn(func() {
		var o outcome
		var err error
		if a.To == p.self {
			o, err = p.accept(ctx, p.self, what)
		} else {
			err = p.service.Ask(ctx, a.To, func(s *framed.Stream) (err error) {
				o, err = say(s, stage, what)
				return err
			})
		}
		if ctx.Err() == nil {
			answered(a, o, err)
		}
	})
}

// answered takes what became of a micro-batch at a member of the next stage.
func (p *Pipeline) answered(a stages.Action, o outcome, err error) {
	o, broken := p.judged(a.To, o, err)
	var errors tensor.Vector
	if broken == nil && o.answer == stages.Done && !a.ID.Asks {
		if errors, err = o.values.decode(); err != nil {
			o, broken = p.judged(a.To, o, fmt.Errorf("errors that are no numbers: %w: %w", wire.ErrMessage, err))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if broken != nil {
		p.carryOut(p.holder.Broken(p.now(), a.Number))
		return
	}
	at, do := p.holder.Answer(p.now(), a.To, a.Number, o.answer, o.load)
	if h := p.held[at]; h != nil { // it is waited for
		h.loss, h.errors, h.back = o.loss, errors, o.values
	}
	p.carryOut(do)
}

// judged tells of faults of the other side. A member that refuses what it was sent takes it to be of no use. The error is not
// nil if nothing will be heard any more.
func (p *Pipeline) judged(from transport.PeerID, o outcome, err error) (outcome, error) {
	refusal, refused := errors.AsType[*wire.Refusal](err)
	switch {
	case err == nil:
		return o, nil
	case refused && refusal.Reason == wire.ReasonProtocol:
		p.with.Log.Warn("a member refuses a micro-batch", zap.String("peer", string(from)), zap.Error(err))
		return outcome{answer: stages.GivenUp}, nil
	case errors.Is(err, wire.ErrMessage):
		p.with.Log.Warn("a member answers a micro-batch with what is no answer", zap.String("peer", string(from)), zap.Error(err))
	default:
		p.with.Log.Debug("a micro-batch is sent to another member", zap.String("peer", string(from)), zap.Error(err))
	}
	return o, err
}
