package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Pipeline trains the stage of one member. Step belongs to one goroutine; every other method is safe for concurrent use.
type Pipeline struct {
	*run
	members *members
	steps   *steps
	rounds  *rounds
	rows    *sender // of this member's rows
	asks    *sender // of rows whose outputs are wanted
	copies  *copies
}

// New begins to take micro-batches for a member's trainer; they are computed while Step runs. Close it before the node.
func New(n *peer.Node, t *peer.Trainer, with Config) (*Pipeline, error) {
	if err := with.validate(); err != nil {
		return nil, err
	}
	if _, err := t.Snapshot(make(tensor.Vector, with.Plan.length(with.Stage)), 0); err != nil {
		return nil, fmt.Errorf("%w: the trainer does not train stage %d of the plan: %w", peer.ErrConfig, with.Stage, err)
	}
	r := &run{with: with.withDefaults(), node: n, trainer: t, began: time.Now()}
	r.life, r.fail = context.WithCancelCause(context.Background())
	first := rand.Uint64() // far from the numbers of an earlier life
	p := &Pipeline{run: r, members: newMembers(n.Self(), r.with), copies: newCopies(r)}
	p.steps = &steps{run: r}
	for _, index := range r.with.Plan.stages(with.Stage) {
		s, err := newStage(r, index, first)
		if err != nil {
			r.fail(err)
			return nil, err
		}
		p.steps.stages = append(p.steps.stages, s)
	}
	r.jobs = make(chan job, len(p.steps.stages))
	p.rows, p.asks = newSender(p.steps.stages[0], first, false), newSender(p.steps.stages[0], first, true)
	p.rounds = newRounds(p)
	p.steps.rounds = p.rounds
	ready, receiver, err := make(chan struct{}), newReceiver(p), error(nil)
	r.service, err = peer.Serve(n, transport.ProtocolStages, func(ctx context.Context, s *framed.Stream) error {
		select {
		case <-ready: // a member may ask before Serve returns
			return receiver.serve(ctx, s)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		r.fail(err)
		return nil, err
	}
	if close(ready); with.Rounds {
		r.service.Together()
	}
	r.tasks.Spawn(p.watch)
	if with.Feed != nil {
		r.tasks.Spawn(p.feed)
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

// maxDropped bounds the steps in a row that are left out since they are not finite: errors come from other members, so one of
// them may be at fault, but if it goes on the learning rate is.
const maxDropped = 16

// Step computes micro-batches until there are enough for a step of this member's trainer, and makes it. It fails as
// peer.Trainer.Step does, with what Config.Feed returned, or with a *StageLostError. A step that is not finite is left out and
// logged; after 16 of them in a row Step fails. Micro-batches are computed only while Step runs.
func (p *Pipeline) Step(ctx context.Context) error {
	for dropped := 1; ; dropped++ {
		err := p.trainer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
			return p.steps.gradient(ctx, x, grad, p.service.Over)
		})
		switch {
		case err == nil:
			p.copies.give(p.members)
		case errors.Is(err, optim.ErrNotFinite) && dropped < maxDropped:
			first := p.steps.stages[0]
			by := first.desk.worst.from
			p.with.Log.Warn("a step is left out: this member of the next stage sent the largest errors, and is not believed for a while", zap.String("peer", string(by)), zap.Error(err))
			first.usual.forget(by, p.now())
			continue
		}
		return err
	}
}

// Linger goes on computing once the run is over for this member, whose parameters stay as they are, until it is over for all
// others, which need its stage for their last steps, or ctx ends.
func (p *Pipeline) Linger(ctx context.Context) error {
	x := make(tensor.Vector, p.with.Plan.length(p.with.Stage))
	grad := make(tensor.Vector, len(x))
	if _, err := p.trainer.Snapshot(x, 0); err != nil {
		return err
	}
	if p.rounds != nil {
		p.mu.Lock()
		p.rounds.end()
		p.mu.Unlock()
	}
	for {
		_, err := p.steps.gradient(ctx, x, grad, p.service.Flown)
		if errors.Is(err, peer.ErrRunOver) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Counts tell what became of micro-batches at this member: those of its own rows, and those of its stage, or of both ends.
func (p *Pipeline) Counts() (rows, stage Counts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows = p.rows.machine.Counts()
	rows.Came, rows.Lost = rows.Came+p.rows.useless, rows.Lost+p.rows.useless
	for _, s := range p.steps.stages {
		c := s.machine.Counts()
		stage.Came, stage.Done, stage.Lost = stage.Came+c.Came, stage.Done+c.Done, stage.Lost+c.Lost
		stage.Again, stage.Late = stage.Again+c.Again, stage.Late+c.Late
	}
	return rows, stage
}

// Counts say what became of micro-batches: see its fields.
type Counts = stages.Counts

// Loss is the mean loss of the micro-batches of this member's rows that came back lately; NaN before the first.
func (p *Pipeline) Loss() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows.loss
}

// feed sends this member's rows, as fast as they are computed.
func (p *Pipeline) feed() {
	for {
		x, y, err := p.with.Feed(p.life)
		if err == nil {
			_, err = p.rows.put(p.life, x, y)
		}
		if errors.Is(err, errUseless) {
			p.with.Log.Warn("rows are left out", zap.Error(err))
			p.mu.Lock()
			p.rows.useless++
			p.mu.Unlock()
			continue
		}
		if err != nil {
			p.fail(fmt.Errorf("the rows of this member: %w", err))
			return
		}
	}
}

// errNotBack: a micro-batch was given up.
var errNotBack = errors.New("no member could compute it, or its outputs are no numbers")

// Predict returns the outputs of the whole model for some examples, which go through the stages as micro-batches do. It
// waits while members are busy, and for stages without members. It needs a Step that runs at a member of each stage. Where the ends stay
// with the data, it is for members that have them, and the outputs stay there too; others get ErrEnds.
func (p *Pipeline) Predict(ctx context.Context, x tensor.Vector) (out tensor.Vector, err error) {
	width, most := p.with.Plan.Whole.In().Len(), p.with.Examples*p.with.Plan.Whole.In().Len()
	if len(x)%width != 0 {
		return nil, fmt.Errorf("predicting for %d values: want %d for each example", len(x), width)
	}
	if p.with.Plan.ends && p.with.Stage > 0 {
		return nil, fmt.Errorf("predicting: %w", ErrEnds)
	}
	var sent []*own
	for from := 0; from < len(x) && err == nil; from += most {
		var o *own
		o, err = p.asks.put(ctx, x[from:min(from+most, len(x))], nil)
		sent = append(sent, o)
	}
	for i := 0; i < len(sent) && err == nil; i++ {
		var part tensor.Vector
		part, err = p.asks.result(ctx, sent[i])
		out = append(out, part...)
	}
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	return out, nil
}

// ErrEnds: the first and the last stage stay with the members that have data, and this is none of them.
var ErrEnds = errors.New("the ends of the model stay with the members that have data: ask one of these")

// Whole copies the parameters of the whole model: this member's stage, and each other stage from a member that has it. It
// waits for members of stages that have none, until ctx ends. It works after Trainer.Close too. Members without the ends, where these
// stay with the data, get ErrEnds.
func (p *Pipeline) Whole(ctx context.Context) (*tensor.Params, error) {
	if p.with.Plan.ends && p.with.Stage > 0 {
		return nil, fmt.Errorf("copying the parameters of all stages: %w", ErrEnds)
	}
	parts := make([]tensor.Vector, p.with.Plan.Parts())
	for stage := range parts {
		var err error
		if parts[stage], err = p.copies.part(ctx, p.members, stage); err != nil {
			return nil, fmt.Errorf("copying the parameters of stage %d: %w", stage+1, err)
		}
	}
	return p.with.Plan.Join(parts...)
}

// How often the members are looked at, and the schedules asked what is overdue.
const (
	lookEvery = 200 * time.Millisecond
	tickEvery = 20 * time.Millisecond
)

// watch tells the schedules who is there and what the time is, until Close.
func (p *Pipeline) watch() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var looked time.Time
	for {
		if now := time.Now(); now.Sub(looked) >= lookEvery {
			looked = now
			p.look(now)
		}
		p.mu.Lock()
		for _, s := range p.steps.stages {
			s.carryOut(s.machine.Tick(p.now()))
		}
		p.rows.carryOut(p.rows.machine.Tick(p.now()))
		p.asks.carryOut(p.asks.machine.Tick(p.now()))
		p.rounds.goOn()
		p.mu.Unlock()
		select {
		case <-tick.C:
		case <-p.life.Done():
			return
		}
	}
}

// look reads the members again.
func (p *Pipeline) look(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	records := p.service.Records() // with the lock: not older than those by which a micro-batch was accepted
	if err := p.members.look(records, now); err != nil {
		p.fail(err)
	}
	first := p.members.of(records, 0)
	if p.with.Plan.ends {
		first = []transport.PeerID{p.members.self} // or nobody's: such a member has no rows
	}
	for _, s := range p.steps.stages {
		before := func(id transport.PeerID) bool { return p.members.before(records, id, s.index) }
		s.carryOut(s.machine.Members(p.now(), p.members.of(records, s.index+1), before))
	}
	p.rounds.look(records)
	p.rows.carryOut(p.rows.machine.Members(p.now(), first))
	p.asks.carryOut(p.asks.machine.Members(p.now(), first))
}
