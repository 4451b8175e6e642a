package baseline

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// Merge runs another machine, whose peers' models differ, and when the run is over gives
// all of them the mean of their models, with the same bytes for everybody, before it
// says Settled.
//
// Exchanges cannot do that: what both sides add is rounded at each. So the parameters are
// summed as AllReduce sums gradients, by a ring that its leader places and in which each
// number is summed once, by one member, and handed on as it is. It moves 2(n-1)/n models
// a peer, where exchanging partial sums with partners at distance 2^k would move log2 n.
//
//   - The participants are those who are done with the run within the deadline of the
//     first, and live. A death breaks the attempt off, and the others make another, from
//     the parameters that they had.
//   - One that is done later gets the result from who has it, its own model not counted,
//     if that is within twice the deadline. It is taken in beside the parameters, and
//     becomes them when it is whole.
//   - Whoever has the result hands it out to those who have not, if the leader dies while
//     it lets the members adopt: of those who live and can reach each other, all end with
//     one model, in whatever moment whoever dies.
//   - From the moment in which a peer takes part, it refuses exchanges. What its trainer
//     does to the parameters after that is lost, or sets it apart: the runtime is to
//     apply no step once it has reported RunOver.
type Merge struct {
	inner    averaging.Machine
	ring     *AllReduce
	deadline time.Duration
	serving  int // inbound exchanges of the inner machine that are not over
	stage    mergeStage
	merged   time.Duration
	asked    time.Duration // when somebody first asked who leads, the leader being silent since
	scratch  []averaging.Action
}

type mergeStage uint8

const (
	inRun    mergeStage = iota
	emptying            // the inner machine has settled, and still serves exchanges
	inMerge
	afterMerge
)

// mergeIDs are those of the ring's outbound transfers, far above those of the inner machine, which
// counts from 1.
const mergeIDs averaging.ExchangeID = 1 << 40

// lingers is for how many deadlines a peer has the result for others: one may be done two
// deadlines late, wait for one until it finds the leader dead, and then look for another.
const lingers = 4

// NewMerge makes a machine that runs inner and merges at the end. Words, offers and the
// timer RoundDeadline are the ring's alone: so inner can be AD-PSGD, or another machine
// that does without them, and not D-PSGD. Of the configuration Self, Deadline, Parts and
// Weight count. It reports all faults at once.
func NewMerge(config Config, inner averaging.Machine) (*Merge, error) {
	err := config.validate()
	if inner == nil {
		err = errors.Join(err, errors.New("there is no machine to run"))
	}
	if _, same := inner.(averaging.GradientMachine); same {
		err = errors.Join(err, errors.New("a machine that averages gradients gives all the same model: there is nothing to merge"))
	}
	if averaging.AlgorithmOf(inner) == averaging.NameDPSGD {
		err = errors.Join(err, errors.New("D-PSGD waits by the same timer as the merge: run AD-PSGD"))
	}
	if err != nil {
		return nil, fmt.Errorf("final merge: %w", err)
	}
	config.Batch, config.Server = 0, ""
	ring, err := NewAllReduce(config)
	if err != nil {
		return nil, err
	}
	ring.lastID, ring.merges, ring.result = mergeIDs, true, true
	return &Merge{inner: inner, ring: ring, deadline: ring.config.Deadline}, nil
}

// PoolsModels implements averaging.PoolingMachine.
func (m *Merge) PoolsModels() {}

// Handle implements averaging.Machine.
func (m *Merge) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	switch event.Kind {
	case averaging.ViewChanged, averaging.PeerLost, averaging.Quarantined, averaging.TimerFired:
		actions = m.run(now, event, actions)
		actions = m.sum(now, event, actions)
		actions = m.linger(now, actions)
	case averaging.Told, averaging.Offered:
		actions = m.sum(now, event, actions)
	case averaging.Accepted, averaging.Refused, averaging.Finished, averaging.Failed:
		if m.ofRing(event) {
			actions = m.sum(now, event, actions)
		} else {
			actions = m.run(now, event, actions)
		}
	case averaging.Proposed:
		if m.stage >= emptying {
			actions = append(actions, averaging.Action{
				Kind: averaging.Refuse, Peer: event.Peer, Exchange: event.Exchange, Inbound: true, Reason: averaging.Closing,
			})
			break
		}
		actions = m.run(now, event, actions)
	case averaging.Updated:
		actions = m.sum(now, event, actions)
	default:
		actions = m.run(now, event, actions)
	}
	if m.stage == emptying && m.serving == 0 {
		m.stage = inMerge
		actions = m.sum(now, averaging.Event{Kind: averaging.GradientDone, Samples: 1}, actions)
	}
	return actions
}

// ofRing tells whether an answer or an end is of one of the ring's transfers. The numbers
// of inbound ones are their senders', who may choose any.
func (m *Merge) ofRing(e averaging.Event) bool {
	if e.Inbound {
		return m.ring.taking(e)
	}
	return e.Exchange > mergeIDs
}

// run lets the inner machine handle an event. That it has settled is kept back.
func (m *Merge) run(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	if event.Inbound && (event.Kind == averaging.Finished || event.Kind == averaging.Failed) && m.serving > 0 {
		m.serving--
	}
	m.scratch = m.inner.Handle(now, event, m.scratch[:0])
	for _, a := range m.scratch {
		switch {
		case a.Kind == averaging.Settled:
			m.stage = max(m.stage, emptying)
			continue
		case a.Kind == averaging.Accept:
			m.serving++
		}
		actions = append(actions, a)
	}
	return actions
}

// sum lets the ring handle an event. Its trainer is the end of the run.
func (m *Merge) sum(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	actions, done := m.succeed(now, event, actions)
	if done {
		return actions
	}
	m.scratch = m.ring.Handle(now, event, m.scratch[:0])
	m.scratch = m.ring.tidy(now, m.scratch)
	for _, a := range m.scratch {
		switch a.Kind {
		case averaging.Settled:
			continue
		case averaging.Proceed:
			m.stage, m.merged = afterMerge, now
			// What latecomers are given.
			actions = append(actions, averaging.Action{Kind: averaging.Pool, Weight: 1})
			a = averaging.Action{Kind: averaging.Settled}
		}
		actions = append(actions, a)
	}
	return actions
}

// linger ends the ring when nobody is expected any more.
func (m *Merge) linger(now time.Duration, actions []averaging.Action) []averaging.Action {
	if m.stage == afterMerge && !m.ring.over && now-m.merged >= lingers*m.deadline {
		return m.sum(now, averaging.Event{Kind: averaging.RunOver}, actions)
	}
	return actions
}
