package baseline

import (
	"fmt"
	"slices"

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
	ring  *collective.Summing
	state memberState
}

// memberState is where a member is in its round.
type memberState uint8

const (
	computing memberState = iota
	ready                 // has a gradient; where it is in an attempt tells its ring
	updating
)

// What a member says of itself, in View of its status, below the version of its parameters.
const (
	isReady    uint64 = 1 << iota // it has a gradient
	isDone                        // the run is over for it
	isCopied                      // it has its parameters from another, and has made no update since
	statusBits = iota
)

// level tells whether a participant has this peer's parameters, as it said.
func (m *AllReduce) level(p *collective.Participant) bool {
	return p.Last.View>>statusBits == m.version
}

// says tells whether a participant has said one of the above last.
func says(p *collective.Participant, what uint64) bool { return p.Last.View&what != 0 }

// NewAllReduce makes a machine that knows no view yet. It reports all faults of the
// configuration at once.
func NewAllReduce(config Config) (*AllReduce, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("AllReduce machine: %w", err)
	}
	m := &AllReduce{}
	m.begin(config, collective.AllReduce, m)
	m.ring = collective.NewSumming(m.Flights, &m.members, m)
	return m, nil
}

// ready implements role.
func (m *AllReduce) ready() {
	m.state, m.ring.Opened = ready, m.Now
	if m.coordinator != "" && !m.leads() {
		m.Report()
	}
}

// begun implements role.
func (m *AllReduce) begun() {
	m.followed()
	for id := range m.members.Others {
		m.ring.Participant(id)
	}
}

// followed implements role.
func (m *AllReduce) followed() { m.ring.Restart() }

// Report implements collective.Summer.
func (m *AllReduce) Report() {
	said := m.version << statusBits
	switch m.state {
	case ready:
		said |= isReady
	case computing:
		said |= isDone
	}
	if m.copied {
		said |= isCopied
	}
	m.Tell(m.coordinator, collective.Word{
		Kind: collective.WordStatus, Round: m.ring.Attempt(), View: said, Value: float64(m.ring.Stage),
	})
}

// lose implements role.
func (m *AllReduce) lose(id topology.PeerID) {
	if id == m.coordinator {
		m.lost()
		return
	}
	m.ring.Lose(id)
}

// told implements role.
func (m *AllReduce) told(from topology.PeerID, w collective.Word) {
	switch {
	case w.Kind != collective.WordStatus:
		m.ring.Heard(from, w)
	case w.View&(isReady|isDone) == 0: // it makes an update
		m.Tell(from, word(collective.WordHeard, 0, 0))
	case m.ring.Attend(from, w, w.View&isDone != 0) && w.View&isReady != 0 && m.over && !m.ring.Running:
		m.Tell(from, word(wordEnd, 0, 0)) // it has not heard of it
	}
}

// Ready implements collective.Summer.
func (m *AllReduce) Ready() bool { return m.state == ready && m.waiting }

// Load implements collective.Summer.
func (m *AllReduce) Load() { m.Ask(collective.Load) }

// Unable implements collective.Summer.
func (m *AllReduce) Unable() { m.fail() }

// copies tells whether a transfer is one of the parameters, from the coordinator.
func copies(t collective.Transfer) bool {
	return t.From == collective.Parameters && t.Into == collective.Parameters && t.Parts == 1
}

// offered implements role.
func (m *AllReduce) offered(e collective.Event) {
	switch {
	case !m.members.Has(e.Peer):
		m.Refuse(e, averaging.Unfit)
	case m.settled:
		m.Refuse(e, averaging.Closing)
	case !copies(e.Transfer):
		m.ring.Offered(e)
	case e.Peer == m.coordinator && m.concerned() &&
		m.state != updating && m.ring.Stage != collective.Ringing && len(m.In) == 0:
		m.ring.Leave()
		m.version, m.copied = unknownVersion, true // neither the old parameters nor yet the others
		m.Accept(e, 1)
	default:
		m.Refuse(e, averaging.Round)
	}
}

// landed implements role.
func (m *AllReduce) landed(e collective.Event) {
	f, found := m.ring.Landing(e, copies)
	switch {
	case !found:
	case !e.Inbound: // it comes back in its own time
		m.ring.Participant(f.Peer).Last = collective.Word{}
	case e.Kind == averaging.Finished && f.Peer == m.coordinator:
		m.version, m.state = f.Transfer.Round, computing
		m.proceed()
		if m.over {
			m.Report()
		}
	}
}

// impatient implements role: it also speaks to those who do not follow.
func (m *AllReduce) impatient() {
	m.ring.Impatient(copies)
	if m.leads() && !m.settled {
		m.announce(func(id topology.PeerID) bool {
			return !slices.ContainsFunc(m.ring.Participants, func(p collective.Participant) bool {
				return p.ID == id && !(m.over && p.Last.Kind == 0)
			})
		})
	}
}

// due implements role.
func (m *AllReduce) due() {
	switch {
	case m.halted || m.settled:
		m.ring.Restart()
		return
	case m.state == updating:
		return
	case m.leads():
		m.coordinate()
	}
	m.rest()
}

// coordinate begins and ends attempts, and sends the parameters to those who need them.
func (m *AllReduce) coordinate() {
	resting := m.over && m.state == computing && !m.ring.Running
	for i := range m.ring.Participants {
		switch p := &m.ring.Participants[i]; {
		case p.Last.Kind == 0 || p.Where != collective.Absent || m.ring.Barred(p):
		case m.level(p) && says(p, isReady):
			p.Where = collective.Present
		case !m.level(p) && (says(p, isReady) || resting) && !m.SendingTo(p.ID, collective.Parameters):
			m.sendParameters(p.ID, m.version, true)
		}
	}
	if m.state == ready && !m.ring.Running && !m.over {
		m.form()
	}
	copying := slices.ContainsFunc(m.Out, func(f collective.Flight) bool { return copies(f.Transfer) })
	if m.ring.Complete() && !copying { // nobody is being sent what the update would change
		m.commit()
	}
}

// form places all that are ready, once these are all or the deadline has passed.
func (m *AllReduce) form() {
	late := func(p collective.Participant) bool {
		return p.Where != collective.Present && !says(&p, isDone) && !m.ring.Barred(&p)
	}
	if slices.ContainsFunc(m.ring.Participants, late) && m.Now-m.ring.Opened < m.Deadline {
		return
	}
	m.ring.Participants = slices.DeleteFunc(m.ring.Participants, func(p collective.Participant) bool {
		return late(p) && !m.SendingTo(p.ID, collective.Parameters)
	})
	m.ring.Form()
}

// commit lets all update: at which progress of the run, and whether with momentum, they are
// told by one number.
func (m *AllReduce) commit() {
	workers, as := []topology.PeerID{m.Self}, m.progress
	for _, p := range m.ring.Participants {
		workers = append(workers, p.ID)
		if p.Where == collective.Holding && says(&p, isCopied) {
			as = -1 - m.progress
		}
	}
	m.divide(workers)
	m.ring.Conclude(as)
}

// Commit implements collective.Summer: it makes the step of the round.
func (m *AllReduce) Commit(as float64) {
	m.state = updating
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

// updated implements role.
func (m *AllReduce) updated() {
	if m.state != updating {
		return
	}
	if m.version != unknownVersion { // else it follows another coordinator meanwhile
		m.version, m.copied = m.version+1, false
	}
	m.state = computing
	m.proceed()
	if m.over && !m.leads() {
		m.Report()
	}
}

// rest lets the trainer end that is in no attempt: a gradient for which none has begun is
// not worth one of its own. The coordinator ends when all have its parameters.
func (m *AllReduce) rest() {
	if !m.over || m.ring.Stage != collective.Idle {
		return
	}
	if m.state == ready {
		m.state = computing
		m.proceed()
		if m.coordinator != "" && !m.leads() {
			m.Report()
		}
	}
	if m.leads() && m.allAlike() {
		m.depart()
	}
	m.seek()
}

// allAlike tells whether all others have these parameters and are done, or have had the
// deadline for it.
func (m *AllReduce) allAlike() bool {
	for id := range m.members.Others {
		if p := m.ring.Participant(id); !says(p, isDone) || !m.level(p) {
			return m.Now-m.overAt >= m.Deadline
		}
	}
	return true
}
