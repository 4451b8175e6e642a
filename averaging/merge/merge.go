// Package merge gives a flock one model when its run is over: the same bytes for everybody.
package merge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Machine runs another machine, whose peers' models differ, and when the run is over gives
// all of them the mean of their models, with the same bytes for everybody, before it
// says Settled.
//
// Exchanges cannot do that: what both sides add is rounded at each. So the parameters are
// summed around a ring, in which each number is summed once, by one member, and handed on
// as it is. It moves 2(n-1)/n models a peer, where exchanging partial sums with partners
// at distance 2^k would move log2 n.
//
// The first member in the view's order that is there coordinates: it lists the
// participants, gives each its place between two others, and says when all have the sum.
//
//   - The participants are those who are done with the run within the deadline of the
//     first, and live. A death breaks the attempt off, and the others make another, from
//     the parameters that they had.
//   - Who has the result gives it to any member that asks and has it not: to one that is
//     done later, its own model not counted, and to those whose coordinator died while it
//     told the members to adopt. Whoever coordinates next asks all before it begins: so of
//     those who live and can reach each other all end with one model, in whatever moment
//     whoever dies. It is taken in beside the parameters, and becomes them when it is whole.
//   - From the moment in which a peer takes part, it refuses exchanges. What its trainer
//     does to the parameters after that is lost, or sets it apart: the runtime is to
//     apply no step once it has reported RunOver.
type Machine struct {
	*collective.Summing
	members  collective.Members
	inner    collective.Machine
	scratch  []collective.Action
	serving  int // inbound exchanges of the inner machine that are not over
	weight   float64
	stage    stage
	since    time.Duration     // when this peer was done with the run
	leader   topology.PeerID   // who coordinates
	heard    time.Duration     // when it spoke last
	training []topology.PeerID // have said that the run is not over for them
	adopted  uint64            // the attempt of the result
}

type stage uint8

const (
	inRun    stage = iota
	emptying       // the inner machine has settled, and still serves exchanges
	merging
	adopting
	merged
)

// Kinds of words, beside those of sums around a ring.
const (
	// wordHere asks whether the listener is there, and for the result if it has one.
	wordHere uint8 = iota + 2
	// wordRunning answers that and a status: the run is not over for the speaker.
	wordRunning
)

// firstID is far above the numbers of the inner machine's exchanges, which counts from 1:
// those of the outbound transfers are higher.
const firstID averaging.ExchangeID = 1 << 40

// New makes a machine that runs inner and merges at the end. Words, offers and the timer
// averaging.RoundDeadline are the merge's alone: so inner can be AD-PSGD, or another machine
// that does without them. It reports all faults at once.
func New(config Config, inner averaging.Machine) (*Machine, error) {
	faults := config.faults()
	m := &Machine{weight: config.Weight, members: collective.Members{Self: config.Self}}
	if inner == nil {
		faults = append(faults, errors.New("there is no machine to run"))
	} else if m.inner = collective.Of(inner); m.inner.Traits().Words || m.inner.Traits().Gradients {
		faults = append(faults, errors.New("this machine has words and a timer of its own, and would take the merge's: run AD-PSGD"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("final merge: %w", errors.Join(faults...))
	}
	if config.Deadline == 0 {
		config.Deadline = averaging.DefaultDeadline
	}
	flights := &collective.Flights{Self: config.Self, Deadline: config.Deadline, LastID: firstID}
	m.Summing = collective.NewSumming(flights, &m.members, m)
	return m, nil
}

// Traits implements collective.Machine: the algorithm is that of the machine inside.
func (m *Machine) Traits() collective.Traits {
	t := m.inner.Traits()
	t.Pools, t.Words = true, true
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
		}
		m.choose()
	case averaging.PeerLost, averaging.Quarantined:
		m.Lose(e.Peer)
		m.choose()
	case averaging.Proposed:
		if m.stage >= emptying {
			m.Refuse(e, averaging.Closing)
		}
	case averaging.TimerFired:
		if m.Ticked(e) {
			m.impatient()
		}
	case averaging.Refused, averaging.Finished, averaging.Failed:
		m.landing(e)
	case collective.Offered:
		m.offered(e)
	case collective.Told:
		if m.members.Has(e.Peer) {
			m.told(e.Peer, e.Word)
		}
	case collective.Updated:
		m.updated()
	}
	if m.stage == emptying && m.serving == 0 {
		m.enter()
	}
	m.coordinate()
	m.Arm(m.stage == merging || len(m.Out) > 0, m.Slice())
	return m.End()
}

// isInners tells whether the inner machine is to hear of an event. The numbers of inbound
// transfers are their senders', who may choose any.
func (m *Machine) isInners(e collective.Event) bool {
	switch e.Kind {
	case collective.Told, collective.Offered, collective.Updated:
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

// run lets the inner machine handle an event. That it has settled is kept back.
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

// enter begins to merge.
func (m *Machine) enter() {
	m.stage, m.since = merging, m.Now
	m.choose()
	if m.Leads() {
		m.ask()
	}
}

// choose finds out who coordinates: the first member that is there. To another this peer
// says at once that it is.
func (m *Machine) choose() {
	first := m.members.First()
	if m.stage != merging || first == m.leader {
		return
	}
	m.leader, m.heard = first, m.Now
	m.Restart()
	if !m.Leads() {
		m.Report()
	}
}

// Coordinator implements collective.Summer.
func (m *Machine) Coordinator() topology.PeerID { return m.leader }

// Ready implements collective.Summer.
func (m *Machine) Ready() bool { return m.stage == merging && !m.taking() }

// Load implements collective.Summer.
func (m *Machine) Load() {
	m.Do(collective.Action{Action: averaging.Action{Kind: collective.Pool}, Weight: m.weight})
}

// Report implements collective.Summer.
func (m *Machine) Report() {
	m.Tell(m.leader, collective.Word{Kind: collective.WordStatus, Round: m.Attempt(), Value: float64(m.Stage)})
}

// Commit implements collective.Summer.
func (m *Machine) Commit(float64) { m.adopt(m.Attempt()) }

// Unable implements collective.Summer: it leaves that to the next.
func (m *Machine) Unable() {
	m.members.Pass(m.Self)
	m.choose()
}

// ask asks the members that have not come whether they are there.
func (m *Machine) ask() {
	for id := range m.members.All {
		if p := m.Participant(id); p.Where == collective.Absent && !m.Barred(p) {
			m.Tell(id, collective.Word{Kind: wordHere})
		}
	}
}

// told handles a word.
func (m *Machine) told(from topology.PeerID, w collective.Word) {
	if from == m.leader {
		m.heard = m.Now
	}
	if w.Kind == wordRunning {
		if !slices.Contains(m.training, from) {
			m.training = append(m.training, from)
		}
		return
	}
	m.training = slices.DeleteFunc(m.training, func(id topology.PeerID) bool { return id == from })
	if m.members.Spoke(from) {
		m.choose()
	}
	switch {
	case w.Kind == collective.WordStatus || w.Kind == wordHere:
		m.asked(from, w)
	case m.stage != merging:
	case w.Kind == collective.WordCommit: // by whomever: who has that sum has what all have
		m.Agreed(w)
	default:
		m.Heard(from, w)
	}
}

// asked answers one that is done with its run and has no result, as far as it says.
func (m *Machine) asked(from topology.PeerID, w collective.Word) {
	status := w.Kind == collective.WordStatus
	switch {
	case m.stage < merging:
		m.Tell(from, collective.Word{Kind: wordRunning})
	case m.stage == merged:
		if !status || !m.Concluded(from, w) {
			m.give(from)
		}
	case status && m.Leads():
		if p := m.Participant(from); m.Attend(from, w, false) && !m.Barred(p) {
			p.Where = collective.Present
		}
	case m.stage == merging && m.leader == from:
		m.Report()
	default:
		m.Tell(from, collective.Word{Kind: collective.WordHeard})
	}
}

// coordinate does what is due: it places all that are there, once these are all or the
// deadline has passed, and lets all adopt the sum. Nobody is waited for who is lost, nor for
// longer than the deadline who is in its run.
func (m *Machine) coordinate() {
	if m.Complete() {
		m.Conclude(0)
	}
	if m.stage != merging || !m.Leads() || m.Running || m.taking() {
		return
	}
	late := m.Now-m.since >= m.Deadline
	all := m.members.Has(m.Self)
	for id := range m.members.Others {
		p := m.Participant(id)
		waived := late && slices.Contains(m.training, id) || m.Barred(p)
		all = all && (waived || p.Where != collective.Absent)
	}
	if all || m.Now-m.Opened >= m.Deadline {
		m.Form()
	}
}

// isResult tells whether a transfer is of what all adopt. A ring's are of two parts at least.
func isResult(t collective.Transfer) bool {
	return t.From == collective.Sum && t.Into == collective.Sum && !t.Add && t.Parts == 1
}

// offered answers what another wants to send. A result is worth more than an attempt.
func (m *Machine) offered(e collective.Event) {
	switch {
	case !m.members.Has(e.Peer):
		m.Refuse(e, averaging.Unfit)
	case m.stage == merged:
		m.Refuse(e, averaging.Closing)
	case !isResult(e.Transfer):
		m.Offered(e)
	case m.stage != merging:
		m.Refuse(e, averaging.Round)
	default:
		m.GiveUp("")
		if len(m.In) > 0 { // what was aborted may still change the sum; it comes again
			m.Refuse(e, averaging.Round)
			return
		}
		m.Accept(e, 1)
	}
}

// landing is the end of a transfer.
func (m *Machine) landing(e collective.Event) {
	if f, found := m.Landing(e, isResult); found && e.Inbound && e.Kind == averaging.Finished && m.stage == merging {
		m.adopt(f.Transfer.Round)
	}
}

// adopt makes the sum the parameters.
func (m *Machine) adopt(attempt uint64) {
	m.stage, m.adopted = adopting, attempt
	m.Ask(collective.Adopt)
}

// updated has the result. It is put into the sum again, for those who come later.
func (m *Machine) updated() {
	if m.stage != adopting {
		return
	}
	m.stage = merged
	m.Leave()
	m.Do(collective.Action{Action: averaging.Action{Kind: collective.Pool}, Weight: 1})
	m.Ask(averaging.Settled)
}

// give hands the result to one that has none.
func (m *Machine) give(to topology.PeerID) {
	if !m.SendingTo(to, collective.Sum) {
		result := collective.Transfer{From: collective.Sum, Into: collective.Sum, Parts: 1, Round: m.adopted}
		m.Send(to, result, true)
	}
}

// impatient speaks again where there is no answer, and breaks off what takes too long.
func (m *Machine) impatient() {
	m.Impatient(isResult)
	if m.stage != merging {
		return
	}
	switch late := m.Now-m.since >= m.Deadline; {
	case m.Leads():
		m.ask()
	case m.Now-m.heard >= m.Deadline, late && slices.Contains(m.training, m.leader):
		m.AbortIn(m.leader) // a result that it has begun to give
		m.members.Pass(m.leader)
		m.choose()
	default:
		m.Report()
	}
}

// taking tells whether a result is on its way here.
func (m *Machine) taking() bool {
	return slices.ContainsFunc(m.In, func(f collective.Flight) bool { return !f.Aborted && isResult(f.Transfer) })
}
