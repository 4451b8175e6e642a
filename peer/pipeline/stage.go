package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// stage is the stage of the model that this member has: what is on its way there, and who computes it.
type stage struct {
	*run
	index int // from 0, of all stages
	model *nn.Model
	desk  *desk // of the goroutine that calls Step
	usual usual // errors

	// The lock is held for these.
	machine *stages.Holder
	held    map[stages.Key]*held
	arrived uint64 // numbers what comes
}

func newStage(r *run, index int, first uint64) (*stage, error) {
	all := len(r.with.Plan.Stages)
	with := stages.Config{Stage: index, Stages: all, Batch: r.with.Batch, First: first, Rounds: r.with.Rounds, Home: r.with.Plan.ends && index == all-2}
	if r.with.Plan.ends && index == all-1 {
		with.Batch = math.MaxInt // it steps when the first stage of this member does
	}
	machine, err := stages.NewHolder(with)
	return &stage{run: r, index: index, model: r.with.Plan.Stages[index], desk: newDesk(r.with, index), machine: machine, usual: newUsual(), held: map[stages.Key]*held{}}, err
}

func (s *stage) load() stages.Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Load()
}

// errGone: who sent a micro-batch may not send to this stage any more.
var errGone = errors.New("who sent it is no member of the stage before any more")

// accept takes a micro-batch from a member, or of this member's own rows, and waits for what becomes of it.
func (s *stage) accept(ctx context.Context, from transport.PeerID, got parcel) (o outcome, err error) {
	in, err := got.values.decode()
	if err != nil {
		return o, fmt.Errorf("%w: %w", wire.ErrMessage, err)
	}
	if s.with.Plan.ends && s.index == 0 {
		got.targets = coded{codec: raw()} // they do not go on
	}
	targets, err := got.targets.decode()
	if err != nil {
		return o, fmt.Errorf("%w: %w", wire.ErrMessage, err)
	}
	if !s.with.Plan.Loss.Takes(s.with.Plan.Whole.Out(), targets) {
		return o, fmt.Errorf("targets that the loss does not take: %w", errShape)
	}
	h := &held{id: got.id, in: in, targets: targets, labels: got.targets, codec: got.values.codec, answer: make(chan outcome, 1)}
	h.life, h.end = context.WithCancel(s.life)
	s.mu.Lock()
	s.arrived++
	key := stages.Key{From: from, Number: s.arrived}
	s.held[key] = h
	s.carryOut(s.machine.Forward(s.now(), from, key.Number, got.id))
	s.mu.Unlock()
	select {
	case o, waited := <-h.answer:
		if !waited {
			return o, errGone
		}
		return o, nil
	case <-ctx.Done():
		return o, context.Cause(ctx)
	case <-s.life.Done():
		return o, peer.ErrClosed
	}
}

// carryOut does what the schedule says. The lock is held.
func (s *stage) carryOut(do []stages.Action) {
	for _, a := range do {
		h := s.held[a.At]
		switch a.Kind {
		case stages.ComputeForward, stages.ComputeBack, stages.Step:
			s.jobs <- job{a, h, s} // has room: there is one of each stage at a time
		case stages.Send:
			s.send(h.life, a.To, s.index+1, s.onwards(h), func(o outcome, err error) { s.answered(a, o, err) })
		case stages.Reply:
			h.answer <- outcome{answer: a.Answer, load: a.Load, loss: h.loss, values: h.returned(a.Answer)} // has room
			if a.Answer == stages.NoRoom {
				s.release(a.At)
			}
		case stages.Release:
			s.release(a.At)
		}
	}
}

// onwards is what goes on to the next stage, and how many values come back of it: errors over each output, or the outputs of
// the last stage.
func (s *stage) onwards(h *held) parcel {
	p := parcel{id: h.id, round: s.round(h.id), examples: len(h.in) / s.model.In().Len(), values: h.onwards, targets: h.labels, back: h.onwards.n}
	if h.id.Asks {
		p.back = s.outputs(p.examples)
	}
	return p
}

// release frees what is held of a micro-batch, and ends conversations about it.
func (s *stage) release(at stages.Key) {
	h := s.held[at]
	h.end()
	close(h.answer)
	delete(s.held, at)
	s.desk.free(h)
}

// answered takes what became of a micro-batch at a member of the next stage.
func (s *stage) answered(a stages.Action, o outcome, broken error) {
	var errs tensor.Vector
	if broken == nil && o.answer == stages.Done && !a.ID.Asks {
		if errs, broken = o.values.decode(); broken == nil {
			broken = s.usual.check(a.To, s.now(), o.loss, errs)
		}
		if broken != nil {
			s.with.Log.Warn("a member of the next stage sends errors that cannot be", zap.String("peer", string(a.To)), zap.Error(broken))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if broken != nil {
		s.carryOut(s.machine.Broken(s.now(), a.Number))
		return
	}
	at, do := s.machine.Answer(s.now(), a.To, a.Number, o.answer, o.load)
	if h := s.held[at]; h != nil { // it is waited for
		h.loss, h.errors, h.from, h.back = o.loss, errs, a.To, o.values
	}
	s.carryOut(do)
}

// tell tells the schedule something, and carries out what it says.
func (s *stage) tell(something func() []stages.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carryOut(something())
}
