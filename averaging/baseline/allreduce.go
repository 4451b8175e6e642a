package baseline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// AllReduce is synchronous SGD over a ring: in each round all members sum their
// gradients by reduce-scatter and all-gather and make the same step of the mean, each by
// itself, so that their models stay the same byte for byte. It implements
// averaging.GradientMachine.
//
// One member leads: it gives each its place in the ring once all are ready, and lets all
// update once all have the sum. So a death at any moment leaves those who live with the
// same number of updates. It is no server: no gradient goes to it that would not.
//
//   - A member that dies, parts, or is not ready within the deadline is left out: the
//     attempt breaks off, and the others begin another, each from its own gradient.
//   - If two members live and cannot reach each other, the one that cannot be sent to is
//     left out after three attempts of a round.
//   - A gradient that others would refuse, since training has diverged, counts as none, and
//     its trainer is told. A member that cannot send what the ring has summed, as where the
//     codec holds no such numbers, is left out as one that cannot be sent to.
//   - The leader's successor is the next in the view's order. Nothing is lost.
//   - Who hears later than others that the run is over makes its last rounds with those
//     who are left, and all who live end with the model of the last. One that cannot get it
//     within two deadlines ends with what it has.
//   - A newcomer, or who was left out, gets the parameters from the leader before the next
//     update, loses its gradient, and is in the round after. It knows nothing of the
//     past gradients that the others' momentum remembers: so in its first round all forget
//     them (Action.Forget), and all have one model again. A momentum that only some had
//     would set it apart for good.
type AllReduce struct {
	office
	phase   phase
	merges  bool // it is of parameters, for Merge
	ring    ring
	early   []topology.PeerID    // refused since this peer was not ready for them
	held    []averaging.Transfer // refused by the next member since it was not
	called  time.Duration        // when the next member said that it is, 0 before
	floor   uint64               // of the attempts, the last that the leader has told of
	endedAs float64              // what was agreed on for that update
	ended   uint64               // the attempt of the last update
	moved   time.Duration        // of the last progress in the ring
	leadership
}

// phase is where a member is in its round.
type phase uint8

const (
	computing phase = iota
	ready           // has a gradient and waits for a place
	clearing        // has a place and waits for what it aborted to be over
	ringing         // sends and takes
	summed          // has the sum and waits for the others
	updating
	resting // the run is over here; as it is told, see office.resting
	// phaseInitial is told with a phase by who has the parameters with which all begin.
	phaseInitial = 1 << 3
)

// NewAllReduce makes a machine that knows no view yet. It reports all faults of the
// configuration at once.
func NewAllReduce(config Config) (*AllReduce, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("AllReduce machine: %w", err)
	}
	m := &AllReduce{}
	m.config = config.withDefaults()
	m.self = config.Self
	m.duties = m
	return m, nil
}

// AveragesGradients implements averaging.GradientMachine.
func (m *AllReduce) AveragesGradients() {}

// Handle implements averaging.Machine.
func (m *AllReduce) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	m.core.begin(now, actions)
	switch event.Kind {
	case averaging.GradientDone:
		m.gradient(event)
	case averaging.StepDone: // a trainer of models: it is nothing that can be summed
		m.do(averaging.Action{Kind: averaging.Proceed})
	case averaging.ViewChanged:
		m.viewed(event.Overlay)
	case averaging.Proposed:
		m.refuse(event, averaging.Unfit)
	case averaging.Offered:
		m.offered(event)
	case averaging.Refused:
		m.refused(event)
	case averaging.Finished:
		m.finished(event)
	case averaging.Failed:
		m.failed(event)
	case averaging.TimerFired:
		if m.ticked(event) {
			m.impatient()
		}
	case averaging.PeerLost:
		m.lost(event.Peer)
	case averaging.Quarantined:
		m.lost(event.Peer)
	case averaging.Told:
		m.spoke(event.Peer, now)
		m.told(event.Peer, event.Word)
	case averaging.Updated:
		m.updated()
	case averaging.RunOver:
		m.over, m.overAt = true, now
	}
	m.part()
	m.lead()
	m.arm(m.concerned() || m.leads() || len(m.out) > 0 || m.farewells > 0, m.interval())
	return m.end()
}

func (m *AllReduce) gradient(e averaging.Event) {
	if m.over {
		m.do(averaging.Action{Kind: averaging.Proceed})
		return
	}
	m.begun(e)
	m.phase = ready
	switch {
	case m.leader == "":
		m.seek()
	case !m.leads():
		if m.config.Batch > 0 {
			m.tell(m.leader, word(wordSpeed, m.round, m.lineage, m.speed.value))
		}
		m.report()
	}
}

// followed implements duties.
func (m *AllReduce) followed() {
	m.floor = 0
	if m.phase == clearing || m.phase == ringing {
		m.abort("")
		m.phase = ready
	}
}

// report implements duties.
func (m *AllReduce) report() {
	p := uint64(m.phase)
	if m.resting {
		p = uint64(resting)
	}
	if m.initial {
		p |= phaseInitial
	}
	m.tell(m.leader, word(wordStatus, m.round, m.lineage, packed(m.ring.attempt, p, statusBits)))
}

func (m *AllReduce) viewed(overlay *topology.Overlay) {
	m.adopt(overlay)
	for _, a := range slices.Clone(m.members) {
		if !m.member(a.id) {
			m.lost(a.id)
		}
	}
	if m.leader != "" && !m.leads() && !m.member(m.leader) {
		m.orphaned()
	}
	if m.concerned() {
		m.seek()
	}
}

// lost goes on without a peer.
func (m *AllReduce) lost(id topology.PeerID) {
	m.pass(id)
	sending := m.ringing() && m.ring.next == id
	m.abort(id)
	m.dismiss(id)
	switch {
	case id == m.leader:
		m.orphaned()
	case sending && !m.leads():
		m.broken(id)
	case m.asking:
		m.seek()
	}
}

func (m *AllReduce) ringing() bool {
	return m.phase == clearing || m.phase == ringing || m.phase == summed
}

// told handles a word.
func (m *AllReduce) told(from topology.PeerID, w averaging.Word) {
	switch {
	case !m.heeds(from, w):
	case m.elected(from, w):
	case w.Kind == wordParting:
		m.gone(from)
	case w.Kind == wordStatus:
		m.status(from, w)
	case w.Kind == wordSpeed:
		m.speeds(from, w.Value)
	case w.Kind == wordBroken:
		m.accused(from, w)
	case w.Kind == wordAgain:
		m.again(from, w.Round)
	case from != m.leader:
	case w.Kind == wordPlace:
		m.placed(w)
	case w.Kind == wordRegroup:
		m.regrouped(w.Round)
	case w.Kind == wordCommit && m.phase == summed && w.Round == m.ring.attempt:
		m.lineage = w.View
		m.update(w.Value)
	}
}

// gone goes on without a peer for which the run is over.
func (m *AllReduce) gone(id topology.PeerID) {
	m.pass(id)
	m.dismiss(id)
	switch {
	case id == m.leader && m.resting:
		m.parted = true
	case id == m.leader:
		m.orphaned()
	case m.asking:
		m.seek()
	}
}

// impatient speaks again where there is no answer, and breaks off what takes too long.
func (m *AllReduce) impatient() {
	if m.patience() && m.phase != updating {
		m.report()
	}
	if f, found := m.stuck(); found {
		m.abortOut(f.peer)
		if m.gives(f.transfer) {
			m.dismiss(f.peer)
		} else {
			m.broken(f.peer)
		}
	}
	if m.phase == ringing && len(m.held) > 0 {
		m.again(m.ring.next, m.ring.attempt)
	}
	if m.phase == ringing && m.now-m.moved >= m.config.Deadline {
		m.broken("")
	}
	if m.leads() {
		m.attend()
	}
}

// update makes the step of the round, as the leader says: at which learning rate, and
// whether with momentum.
func (m *AllReduce) update(as float64) {
	m.phase, m.ended, m.endedAs = updating, m.ring.attempt, as
	if m.merges {
		m.round++ // who hears of it meanwhile is to wait for the result
		m.do(averaging.Action{Kind: averaging.Adopt})
		return
	}
	const least = 1e-300 // at the very beginning too, all make the step at one rate
	progress, forget := as, as < 0
	if forget {
		progress = -1 - as
	}
	m.do(averaging.Action{Kind: averaging.Update, Progress: max(progress, least), Forget: forget})
}

func (m *AllReduce) updated() {
	if m.phase != updating {
		return
	}
	if !m.merges {
		m.round++
	}
	m.phase = computing
	m.proceed()
}

// part rests, once the trainer is in no attempt: a gradient for which none has begun is
// not worth one of its own. It departs when there is nothing to come.
func (m *AllReduce) part() {
	if m.over && m.phase == ready {
		m.proceed()
	}
	if !m.over || m.waiting || m.settled || m.phase == updating {
		return
	}
	if !m.resting && !m.merges {
		m.phase = computing
		m.abort("")
		m.rest()
	}
	if m.merges || m.rested() && len(m.in) == 0 || m.alike() {
		m.phase = computing
		m.depart()
	}
}
