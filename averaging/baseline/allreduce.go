package baseline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// AllReduce is synchronous SGD over a ring: in each round all members sum their
// gradients by reduce-scatter and all-gather and make the same step of the mean, each by
// itself, so that their models stay the same byte for byte.
//
// One member coordinates: it gives each its place in the ring once all are ready, and lets
// all update once all have the sum. It is no server: no gradient goes to it that would not.
//
//   - When a worker dies, parts, or is not ready within the deadline, it is left out: the
//     attempt breaks off, and the others begin another, each from its own gradient.
//   - When the coordinator dies the run halts: every trainer's step fails with
//     averaging.NoCoordinator.
//   - If two members live and cannot reach each other, the one that cannot be sent to is
//     left out after three attempts of a round.
//   - A gradient that others would refuse, since training has diverged, counts as none, and
//     its trainer is told. A member that cannot send what the ring has summed, as where the
//     codec holds no such numbers, is left out as one that cannot be sent to.
//   - A slow worker or coordinator makes all as slow as it is.
//   - A newcomer, or who was left out, gets the parameters from the coordinator before the
//     next update, loses its gradient, and is in the round after. It knows nothing of the
//     past gradients that the others' momentum remembers: so in its first round all forget
//     them (Action.Forget), and all have one model again. A momentum that only some had
//     would set it apart for good.
//   - Peers hear at different moments that the run is over. The coordinator makes rounds
//     until it hears of it, and gives its parameters to those that have others: all end
//     with one model.
type AllReduce struct {
	coordination
	ring     collective.Ringer
	state    memberState
	floor    uint64  // of the attempts, the last that the coordinator has told of
	ended    uint64  // the attempt of the last update
	endedAs  float64 // what was agreed on for it
	rounds           // of the coordinator
	dividing int     // Config.Batch
}

// memberState is where a member is in its round.
type memberState uint8

const (
	computing memberState = iota
	ready                 // has a gradient; where it is in an attempt tells its ring
	updating
)

// Phases of a member, as it tells them.
const (
	phaseReady uint64 = iota
	phaseRinging
	phaseSummed
	phaseUpdating
	phaseDone             // the run is over for it
	phaseInitial = 1 << 3 // it has the parameters with which all begin
)

// NewAllReduce makes a machine that knows no view yet. It reports all faults of the
// configuration at once.
func NewAllReduce(config Config) (*AllReduce, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("AllReduce machine: %w", err)
	}
	m := &AllReduce{dividing: config.Batch}
	m.Flights, m.role, m.rounds.m, m.self = config.flights(), m, m, config.Self
	m.ring = collective.NewRinger(m.Flights, m, wordAgain)
	return m, nil
}

// Traits implements collective.Machine.
func (m *AllReduce) Traits() collective.Traits {
	return collective.Traits{Algorithm: collective.AllReduce, Gradients: true, Words: true}
}

// Handle implements averaging.Machine.
func (m *AllReduce) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	return collective.Handle(m, now, event, actions)
}

// Decide implements collective.Machine.
func (m *AllReduce) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	m.Begin(now, actions)
	if !m.handle(e) {
		m.event(e)
	}
	m.coordinate()
	m.part()
	m.arm()
	return m.End()
}

func (m *AllReduce) event(e collective.Event) {
	switch e.Kind {
	case collective.GradientDone:
		if m.gradient(e) {
			m.state = ready
			m.tellReady()
		}
	case averaging.ViewChanged:
		m.adopt(e.Overlay.View())
		for _, x := range slices.Clone(m.members) {
			if !m.order.Has(x.id) {
				m.lose(x.id)
			}
		}
	case collective.Offered:
		m.offered(e)
	case averaging.Refused, averaging.Finished, averaging.Failed:
		m.landing(e)
	case averaging.TimerFired:
		if m.Ticked(e) {
			m.impatient()
		}
	case averaging.PeerLost, averaging.Quarantined:
		m.lose(e.Peer)
	case collective.Told:
		m.told(e.Peer, e.Word)
	case collective.Updated:
		m.updated()
	}
}

// tellReady tells the coordinator that there is a gradient.
func (m *AllReduce) tellReady() {
	switch {
	case m.coordinator == "":
		m.seek()
	case !m.leads():
		if m.dividing > 0 {
			m.Tell(m.coordinator, word(wordSpeed, m.round, m.reign, m.speed.value))
		}
		m.report()
	}
}

// followed implements role.
func (m *AllReduce) followed() {
	m.ring.Leave()
	m.floor = 0
}

// report implements role.
func (m *AllReduce) report() {
	phase := phaseDone
	switch {
	case m.state == updating:
		phase = phaseUpdating
	case m.ring.Stage == collective.Summed:
		phase = phaseSummed
	case m.ring.Stage != collective.Idle:
		phase = phaseRinging
	case m.state == ready:
		phase = phaseReady
	}
	if m.initial {
		phase |= phaseInitial
	}
	m.Tell(m.coordinator, word(wordStatus, m.round, m.reign, collective.Pack(m.ring.Attempt(), phase, statusBits)))
}

// lose goes on without a peer.
func (m *AllReduce) lose(id topology.PeerID) {
	if id == m.coordinator {
		m.ring.Leave()
		m.lost()
		return
	}
	m.pass(id)
	m.ring.Lost(id)
	m.dismiss(id)
}

// told handles a word.
func (m *AllReduce) told(from topology.PeerID, w collective.Word) {
	if m.hear(from, w) {
		return
	}
	switch w.Kind {
	case wordParting:
		m.pass(from)
		m.dismiss(from)
	case wordStatus:
		if m.leads() && !m.settled && !m.halted {
			m.status(from, w)
		} else {
			m.point(from, w)
		}
	case wordSpeed:
		if m.leads() {
			m.attendant(from).speed = w.Value
		}
	case wordBroken:
		if m.leads() && m.running && w.Round == m.ring.Attempt() {
			m.accuse(from, m.order.Find(w.View))
		}
	case wordAgain:
		m.ring.Asked(from, w.Round)
	}
	if from != m.coordinator || m.leads() {
		return
	}
	switch w.Kind {
	case wordPlace:
		m.placed(w)
	case wordRegroup:
		if w.Round == m.ring.Attempt() && m.ring.Stage != collective.Idle {
			m.ring.Leave()
			m.report()
		}
	case wordCommit:
		if m.ring.Stage == collective.Summed && w.Round == m.ring.Attempt() {
			m.current = w.View
			m.update(w.Value)
		}
	}
}

// placed takes a place in the ring.
func (m *AllReduce) placed(w collective.Word) {
	at, ok := collective.PlaceOf(w)
	if !ok || m.state != ready || w.Round <= m.floor {
		return
	}
	next, previous := m.order.Find(at.Next), m.order.Find(at.Previous)
	if next == "" || previous == "" { // in a view that is not here yet; it is told again
		return
	}
	m.floor = w.Round
	m.ring.Join(w.Round, at, next, previous)
}

// Load implements collective.RingOwner.
func (m *AllReduce) Load() { m.Ask(collective.Load) }

// HasSum implements collective.RingOwner.
func (m *AllReduce) HasSum() {
	if !m.leads() {
		m.report()
	}
}

// Broken implements collective.RingOwner.
func (m *AllReduce) Broken(suspect topology.PeerID) {
	if m.leads() {
		m.accuse(m.Self, suspect)
		return
	}
	blamed := uint64(0)
	if suspect != "" {
		blamed = collective.Mark(suspect)
	}
	m.Tell(m.coordinator, word(wordBroken, m.ring.Attempt(), blamed, 0))
	m.ring.Leave()
	m.report()
}

// copies tells whether a transfer is one of the parameters, from the coordinator.
func copies(t collective.Transfer) bool {
	return t.From == collective.Parameters && t.Into == collective.Parameters && t.Parts == 1
}

// offered answers what another member, or the coordinator, wants to send.
func (m *AllReduce) offered(e collective.Event) {
	switch {
	case !m.order.Has(e.Peer):
		m.Refuse(e, averaging.Unfit)
	case m.settled:
		m.Refuse(e, averaging.Closing)
	case !copies(e.Transfer):
		m.ring.Offered(e)
	case e.Peer == m.coordinator && m.concerned() && m.state != updating && m.ring.Stage != collective.Ringing && len(m.In) == 0:
		m.ring.Leave()
		m.reign, m.mixed, m.initial = 0, true, false // neither the old parameters nor yet the others
		m.Accept(e, 1)
	default:
		m.Refuse(e, averaging.Round)
	}
}

// landing is the end of a transfer.
func (m *AllReduce) landing(e collective.Event) {
	f, found := m.ring.Landing(e, copies)
	switch {
	case !found:
	case e.Inbound && e.Kind == averaging.Finished && f.Peer == m.coordinator:
		m.round, m.reign = f.Transfer.Round, m.current
		m.state = computing
		m.proceed()
		if m.over {
			m.report()
		}
	case !e.Inbound:
		m.sent(f.Peer, e.Kind == averaging.Finished)
	}
}

// impatient speaks again where there is no answer, and breaks off what takes too long.
func (m *AllReduce) impatient() {
	m.patient()
	for f, found := m.Stuck(); found; f, found = m.Stuck() {
		if copies(f.Transfer) {
			m.AbortOut(f.Peer)
			m.dismiss(f.Peer)
		} else {
			m.ring.StuckWith(f)
		}
	}
	m.ring.Impatient()
	if m.leads() && !m.settled {
		m.attend()
	}
}

// update makes the step of the round, as the coordinator says: at which learning rate, and
// whether with momentum.
func (m *AllReduce) update(as float64) {
	m.state, m.ended, m.endedAs = updating, m.ring.Attempt(), as
	m.ring.Stage = collective.Idle
	const least = 1e-300 // at the very beginning too, all make the step at one rate
	progress, forget := as, as < 0
	if forget {
		progress = -1 - as
	}
	m.Do(collective.Action{
		Action:   averaging.Action{Kind: collective.Update},
		Progress: max(progress, least), Forget: forget,
	})
}

func (m *AllReduce) updated() {
	if m.state != updating {
		return
	}
	m.round++
	m.reign, m.state = m.current, computing
	m.proceed()
	if m.over && !m.leads() {
		m.report()
	}
}

// part lets the trainer end that is in no attempt: a gradient for which none has begun is
// not worth one of its own.
func (m *AllReduce) part() {
	if !m.over || m.settled || m.state == updating || m.ring.Stage != collective.Idle {
		return
	}
	if m.state == ready {
		m.state = computing
		m.proceed()
		if m.coordinator != "" && !m.leads() {
			m.report()
		}
	}
	if m.leads() && m.allAlike() {
		m.depart()
	}
	m.seek()
}
