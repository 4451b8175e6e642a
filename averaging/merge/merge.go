// Package merge gives a flock one model when its run is over: the same bytes for everybody.
package merge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Machine runs another machine, whose peers' models differ. When the run is over it gives
// all peers the mean of their models, with the same bytes for everybody, and then settles.
//
// Exchanges cannot do that, since each side rounds what it adds. So the parameters are summed like the numbers of
// tables (package internal/sums): each number is summed once, by one member, and passed on unchanged, in 2 log2 n
// rounds. Each peer sends two models on average, and at most three.
//
//   - The participants are the live members that finish the run within the deadline after
//     the first. A death breaks an attempt off, and the others make another, from the
//     parameters that they had.
//   - A member that has the result gives it to any member that asks for it: one that finished
//     later, whose own model does not count, or one that could not take part in the sum. So all
//     live members that can reach each other end with one model, whoever dies at whatever moment.
//     The result is received beside the parameters, and replaces them when it is complete.
//   - From the moment when a peer takes part, it refuses exchanges. Later steps of its
//     trainer would be lost, or make its model differ: the runtime must apply no step once
//     it has reported RunOver.
type Machine struct {
	*collective.Summing
	members collective.Members
	inner   collective.Machine
	scratch []collective.Action
	serving int // inbound exchanges of the inner machine that are not over
	weight  float64
	stage   stage
	sums    int             // that this peer has called
	asked   topology.PeerID // for the result, last
	since   time.Duration   // when this peer began to ask
	answers map[topology.PeerID]answer
	adopted uint64 // the attempt of the result
}

type stage uint8

const (
	inRun    stage = iota
	emptying       // the inner machine has settled, and still serves exchanges
	merging
	asking // for the result that others have
	adopting
	merged
)

const (
	// messageAsk asks for the result.
	messageAsk uint8 = 2
	// messageNone answers that the sender has no result either, and is in no sum that may give one.
	messageNone uint8 = 3
)

// answer is the last answer of a member to a request for the result.
type answer struct {
	at   time.Duration
	none bool // it has none
}

// firstID separates the numbers of outbound transfers, which are higher, from those of the
// inner machine's exchanges, which count from 1.
const firstID averaging.ExchangeID = 1 << 40

// New makes a machine that runs inner and merges at the end. Only the merge uses messages,
// offers and the timer averaging.RoundDeadline: so inner can be AD-PSGD, or another machine
// without these. New reports all faults at once.
func New(config Config, inner averaging.Machine) (*Machine, error) {
	faults := config.faults()
	m := &Machine{weight: config.Weight, members: collective.Members{Self: config.Self}}
	if inner == nil {
		faults = append(faults, errors.New("there is no machine to run"))
	} else if m.inner = collective.Of(inner); m.inner.Traits().Messages || m.inner.Traits().Gradients {
		faults = append(faults, errors.New("this machine has words and a timer of its own, and would take the merge's: run AD-PSGD"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("final merge: %w", errors.Join(faults...))
	}
	config.Deadline = cmp.Or(config.Deadline, averaging.DefaultDeadline)
	flights := &collective.Flights{Self: config.Self, Deadline: config.Deadline, LastID: firstID}
	m.Summing = collective.NewSumming(flights, &m.members, m, topology.Exponential)
	return m, nil
}

// Traits implements collective.Machine: the algorithm is that of the inner machine.
func (m *Machine) Traits() collective.Traits {
	t := m.inner.Traits()
	t.Pools, t.Messages, t.Size = true, true, m.Summing
	return t
}

// Handle implements averaging.Machine.
func (m *Machine) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	return collective.Handle(m, now, event, actions)
}

// Decide implements collective.Machine.
func (m *Machine) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	if m.isInners(e) {
		actions = m.run(now, e, actions)
	}
	m.Begin(now, actions)
	switch e.Kind {
	case averaging.ViewChanged:
		for _, id := range m.members.See(e.Overlay.View()) {
			m.Lose(id)
			delete(m.answers, id)
		}
	case averaging.PeerLost, averaging.Quarantined:
		m.Lose(e.Peer)
	case averaging.Proposed:
		if m.stage >= emptying {
			m.Refuse(e, averaging.Closing)
		}
	case averaging.TimerFired:
		if m.Ticked(e) {
			m.Tick()
			m.ask()
			m.anew()
		}
	case averaging.Refused, averaging.Finished, averaging.Failed:
		m.landing(e)
	case collective.Offered:
		m.offered(e)
	case collective.Received:
		if m.members.Has(e.Peer) {
			m.received(e.Peer, e.Message)
		}
	case collective.Updated:
		m.updated()
	}
	if m.stage == emptying && m.serving == 0 {
		m.stage = merging
	}
	if m.stage == merging && !m.Under() { // after a sum that failed for all comes another
		m.call()
	}
	m.Arm(m.stage == merging || m.stage == asking || m.Busy() || len(m.Out) > 0, m.Slice())
	return m.End()
}

// isInners tells whether an event is for the inner machine. The numbers of inbound
// transfers are chosen by their senders, and may be any.
func (m *Machine) isInners(e collective.Event) bool {
	switch e.Kind {
	case collective.Received, collective.Offered, collective.Updated:
		return false
	case averaging.Proposed:
		return m.stage < emptying
	case averaging.Accepted, averaging.Refused, averaging.Finished, averaging.Failed:
		if e.Inbound {
			return !m.Taking(e)
		}
		return e.Exchange <= firstID
	}
	return true
}

// run lets the inner machine handle an event. Its Settled is held back.
func (m *Machine) run(now time.Duration, event collective.Event, actions []collective.Action) []collective.Action {
	if event.Inbound && (event.Kind == averaging.Finished || event.Kind == averaging.Failed) && m.serving > 0 {
		m.serving--
	}
	m.scratch = m.inner.Decide(now, event, m.scratch[:0])
	for _, a := range m.scratch {
		switch a.Kind {
		case averaging.Settled:
			m.stage = max(m.stage, emptying)
			continue
		case averaging.Accept:
			m.serving++
		}
		actions = append(actions, a)
	}
	return actions
}

// call begins a sum of all that have finished the run. After a sum that failed for all it has another name.
func (m *Machine) call() {
	m.sums++
	m.Call(fmt.Sprintf("merge %d", m.sums), m.Deadline, 0)
}

// Load implements collective.Summer.
func (m *Machine) Load(collective.Transfer) {
	m.Do(collective.Action{Action: averaging.Action{Kind: collective.Pool}, Weight: m.weight})
}

// Summed implements collective.Summer.
func (m *Machine) Summed(r collective.Summed) {
	switch {
	case r.Err == nil:
		m.adopt(r.Attempt)
	case r.LeftOut:
		m.stage, m.since, m.answers = asking, m.Now, make(map[topology.PeerID]answer)
		m.ask()
	}
}

// ask asks the next member for the result.
func (m *Machine) ask() {
	if m.stage != asking || len(m.In) > 0 {
		return
	}
	others := slices.Collect(m.members.Others)
	if len(others) > 0 {
		m.asked = others[(slices.Index(others, m.asked)+1)%len(others)]
		m.Tell(m.asked, collective.Message{Kind: messageAsk})
	}
}

// anew begins another sum with the members that are left, if nobody can give this peer the result: all have said so,
// or have not answered in the time to ask all and to wait for the last.
func (m *Machine) anew() {
	if m.stage != asking || len(m.In) > 0 {
		return
	}
	others := slices.Collect(m.members.Others)
	pass := m.Deadline + time.Duration(len(others))*m.Slice()
	may := func(id topology.PeerID) bool {
		a, answered := m.answers[id]
		fresh := answered && m.Now-a.at < pass
		return fresh && !a.none || !fresh && m.Now-m.since < pass
	}
	if !slices.ContainsFunc(others, may) {
		m.stage = merging
	}
}

// answered notes a member's answer about the result.
func (m *Machine) answered(from topology.PeerID, none bool) {
	if m.stage == asking {
		m.answers[from] = answer{at: m.Now, none: none}
	}
}

// isAsked answers a member that asks for the result, and so has none.
func (m *Machine) isAsked(from topology.PeerID) {
	switch m.answered(from, true); m.stage {
	case merged:
		m.give(from)
	case merging, adopting:
		m.Tell(from, collective.Message{Kind: collective.MessageAck})
	default:
		m.Tell(from, collective.Message{Kind: messageNone})
	}
}

// received handles a message.
func (m *Machine) received(from topology.PeerID, w collective.Message) {
	m.members.Spoke(from, m.Now)
	switch {
	case m.Receive(from, w):
	case w.Kind == messageAsk:
		m.isAsked(from)
	case w.Kind == messageNone, w.Kind == collective.MessageAck:
		m.answered(from, w.Kind == messageNone)
	}
}

// isResult tells whether a transfer carries the result. A transfer of a chunk of a sum has at least two parts.
func isResult(t collective.Transfer) bool {
	return t.From == collective.Sum && t.Into == collective.Sum && !t.Add && t.Parts == 1
}

// offered answers the offer of a transfer.
func (m *Machine) offered(e collective.Event) {
	result := isResult(e.Transfer)
	switch {
	case !m.members.Has(e.Peer):
		m.Refuse(e, averaging.Unfit)
	case m.stage == merged:
		m.Refuse(e, averaging.Closing)
	case !result:
		m.Offered(e)
	case m.stage != asking || len(m.In) > 0: // an aborted transfer may still change the sum
		m.Refuse(e, averaging.Round)
	default:
		m.Accept(e, 1)
	}
	if result && m.members.Has(e.Peer) {
		m.answered(e.Peer, false)
	}
}

// landing handles the end of a transfer.
func (m *Machine) landing(e collective.Event) {
	if f, found := m.Landing(e); found && e.Inbound && e.Kind == averaging.Finished && m.stage == asking {
		m.adopt(f.Transfer.Round)
	}
}

// adopt makes the sum the parameters.
func (m *Machine) adopt(attempt uint64) {
	m.stage, m.adopted = adopting, attempt
	m.Has(attempt)
	m.Ask(collective.Adopt)
}

// updated is called when the result is in the parameters. It is copied into the sum again, for members that come
// later.
func (m *Machine) updated() {
	if m.stage != adopting {
		return
	}
	m.stage = merged
	m.Do(collective.Action{Action: averaging.Action{Kind: collective.Pool}, Weight: 1})
	m.Ask(averaging.Settled)
}

// give sends the result to a member that has none.
func (m *Machine) give(to topology.PeerID) {
	if !m.SendingTo(to, collective.Sum) {
		result := collective.Transfer{From: collective.Sum, Into: collective.Sum, Parts: 1, Round: m.adopted}
		m.Send(to, result, true)
	}
}
