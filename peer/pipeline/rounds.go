package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// defaultPerRound is how many micro-batches a member with rows makes in a round.
const defaultPerRound = 8

// rounds are those of this member, where Config.Rounds asks for them; nil where not.
type rounds struct {
	*run
	stages []*stage
	rows   *sender

	// The lock is held for these.
	machine *stages.Rounds
	round   uint64 // the current
	ended   bool   // the run is over for this member: it is in no round any more
	refused bool   // it has been said that a member refuses reports
}

// newRounds makes those of a pipeline, if it is to have some.
func newRounds(p *Pipeline) *rounds {
	if !p.with.Rounds {
		return nil
	}
	r := &rounds{run: p.run, stages: p.steps.stages, rows: p.rows}
	r.machine = stages.NewRounds(p.node.Self(), p.with.Stage, p.with.Plan.Parts(), p.with.Patience)
	p.rows.machine.PerRound = p.with.Batch
	p.rows.after = r.goOn
	return r
}

// look tells the machine who trains. The lock is held, as it is for all that follows but begin, follow and receive.
func (r *rounds) look(records []transport.Record) {
	if r == nil {
		return
	}
	others := map[transport.PeerID]int{}
	for _, o := range records {
		if flock.Trains(o) && o.Flags&flock.Over == 0 && o.Stage > 0 && int(o.Stage) <= r.with.Plan.Parts() {
			others[o.Peer] = int(o.Stage) - 1
		}
	}
	r.machine.Members(r.now(), others)
	progress := r.rows.machine.Counts().Came
	for _, s := range r.stages {
		c := s.machine.Counts()
		progress += c.Came + c.Done + c.Lost + c.Again
	}
	r.machine.Tick(r.now(), progress)
	r.goOn()
}

// begin begins a step of the goroutine that calls Step, which is to compute nothing if it is false: the parameters are yet to come from
// the others of the stage.
func (r *rounds) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return true
	}
	version := r.trainer.Version()
	if r.machine.Begin(r.now(), version) {
		for _, s := range r.stages {
			s.desk.due = false
		}
	}
	r.goOn()
	return version > 0
}

// goOn does what is due.
func (r *rounds) goOn() {
	if r == nil {
		return
	}
	now := r.now()
	if r.ended {
		for _, s := range r.stages {
			s.carryOut(s.machine.Follow(now))
		}
		return
	}
	if round, makes, entered := r.machine.Enter(now); entered {
		r.round = round
		if makes && r.with.Feed != nil {
			r.rows.machine.Round(round)
			r.rows.wake()
		}
		for _, s := range r.stages {
			s.carryOut(s.machine.Enter(now, round))
		}
	}
	if r.rows.machine.Rests() {
		r.machine.Rest(now)
	}
	if round, over := r.machine.Over(now); over {
		for _, s := range r.stages {
			s.carryOut(s.machine.RoundOver(now, round))
		}
	}
	to, report := r.machine.ToSend(now)
	for _, id := range to {
		r.tasks.Spawn(func() { r.send(id, report) })
	}
}

// end leaves the rounds: what is of the next is computed for others, if they make it, and no step is made. One stage waits for the other,
// which goes on with this round while its step is not due.
func (r *rounds) end() {
	if r.ended = true; !slices.ContainsFunc(r.stages, func(s *stage) bool { return !s.desk.due }) {
		for _, s := range r.stages {
			s.desk.due = false
			s.carryOut(s.machine.Enter(r.now(), r.round+1))
		}
	}
}

// follow goes on to the next round without a step if this member has left them, and tells whether it has. The caller does not hold the lock.
func (r *rounds) follow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		r.end()
	}
	return r.ended
}

// send sends another member how far this one is.
func (r *rounds) send(to transport.PeerID, report stages.Report) {
	var o outcome
	err := r.service.Ask(r.life, to, func(s *framed.Stream) (err error) {
		m := wire.Batch{Kind: wire.BatchRound, Stage: uint8(r.with.Stage + 1), Number: report.Version}
		if report.In {
			m.Round = report.Round + 1
		}
		if err = framed.Say(s, 0, m); err == nil {
			o, err = readOutcome(s, raw())
		}
		return err
	})
	refusal, refused := errors.AsType[*wire.Refusal](err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused && refusal.Reason == wire.ReasonProtocol && !r.refused {
		r.refused = true
		r.with.Log.Warn("a member does not take part in rounds", zap.String("peer", string(to)), zap.Error(err))
	}
	r.machine.Sent(r.now(), to, report, err == nil && o.answer == stages.Done)
	r.goOn()
}

// receive takes the report of another member.
func (r *rounds) receive(from transport.PeerID, m wire.Batch) (o outcome, err error) {
	if r == nil {
		return o, errRounds
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report := stages.Report{In: m.Round > 0, Version: m.Number}
	if report.In {
		report.Round = m.Round - 1
	}
	if !r.machine.Received(r.now(), from, report) {
		o.answer = stages.NoRoom
	}
	r.goOn()
	return o, nil
}

// errRounds: one side has rounds, and the other has none.
var errRounds = fmt.Errorf("rounds (Config.Rounds) are for all members of a run, or for none: %w", wire.ErrMessage)
