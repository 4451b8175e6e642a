package baseline

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// AllReduce is synchronous SGD: in each round all members sum their gradients by package
// internal/sums, and each makes the same step of the mean, so that all models stay the
// same, byte for byte.
//
// One member coordinates: it gives out the places in a sum once all are ready, and lets all update
// once all have the sum. It is no server: it gets no gradients beyond those of its own place.
//
//   - A worker that dies, leaves, or is not ready within the deadline is left out: the
//     attempt breaks off, and the others begin another, each from its own gradient.
//   - When the coordinator dies, the member with the newest parameters takes its place; the
//     others get its parameters where theirs are older.
//   - If two live members cannot reach each other, the next attempt gives them other partners; after five
//     failed attempts one of the two is left out.
//   - A gradient that others would refuse, because training has diverged, counts as none, and
//     its trainer gets an error. A member that cannot send its numbers, for example because the
//     codec cannot hold them, is left out; if the coordinator cannot, the run halts.
//   - A slow worker or coordinator makes all as slow as it is.
//   - A joiner, or a member that was left out, gets the parameters from the coordinator
//     before the next update, loses its gradient, and takes part in the next round. It
//     lacks the past gradients in the others' momentum, so in its first round all forget
//     them (Action.Forget), and all have one model again. With a different momentum its
//     model would differ permanently.
//   - Peers learn at different moments that the run is over. The coordinator makes rounds
//     until it learns it, and gives its parameters to peers that have others: all end with
//     one model.
type AllReduce struct {
	coordination
	local collective.Local // steps of DiLoCo
	sum   *collective.Summing
	state memberState
	moved bool                       // this peer's parameters are not those with which it began, or it is known that they are
	as    float64                    // how to make the update that is due
	said  map[topology.PeerID]uint64 // last status of each member, at the coordinator
	given map[topology.PeerID]uint64 // version of the parameters sent to each member since its last round
}

// memberState is where a member is in its round.
type memberState uint8

const (
	computing memberState = iota
	ready                 // has a gradient
	summed                // all have the sum; the update is to be made
	updating
)

// Bits of a member's status, in View, below the version of its parameters.
const (
	isReady    uint64 = 1 << iota // it has a gradient
	isDone                        // the run is over for it
	statusBits = iota
)

// level tells whether a participant has this peer's parameters, by its last status.
func (m *AllReduce) level(id topology.PeerID) bool { return m.said[id]>>statusBits == m.version }

// learns tells whether a participant is about to learn the outcome of the sum that it was in at its last status: that
// the sum counts, or was made without it. A copy in between would cost it a gradient, and all members their momentum.
func (m *AllReduce) learns(id topology.PeerID) bool {
	return m.says(id, isReady) && m.sum.Over(round(m.said[id]>>statusBits))
}

// says tells whether a participant's last status has one of the bits above.
func (m *AllReduce) says(id topology.PeerID, what uint64) bool { return m.said[id]&what != 0 }

// NewAllReduce makes a machine that knows no view yet. It reports all faults of the configuration at once.
func NewAllReduce(config Config) (*AllReduce, error) {
	err := config.validate()
	if config.Topology == topology.Star {
		err = errors.Join(err, errors.New("Topology is a star: a hub that adds up all gradients is what ParamServer with BSP is"))
	}
	if err != nil {
		return nil, fmt.Errorf("AllReduce machine: %w", err)
	}
	return newAllReduce(config, collective.AllReduce, collective.Local{}), nil
}

func newAllReduce(config Config, algorithm collective.Algorithm, local collective.Local) *AllReduce {
	m := &AllReduce{local: local}
	m.begin(config, algorithm, m)
	m.sum = collective.NewSumming(m.Flights, &m.members, m, config.Topology)
	return m
}

// Traits implements collective.Machine.
func (m *AllReduce) Traits() collective.Traits {
	t := m.coordination.Traits()
	t.Size, t.Local = m.sum, m.local
	return t
}

// partly implements role: the sum begins while the rest of the gradient is computed. The first value waits for the whole, so
// that no sum is complete before the gradients in it are.
func (m *AllReduce) partly(from int) { m.sum.Ready(max(from, 1)) }

// placed implements role.
func (m *AllReduce) placed() bool { return m.sum.Placed() }

// ready implements role. A trainer that was cancelled may call again while a step of its first gradient is due.
func (m *AllReduce) ready() {
	m.sum.Ready(0)
	m.state = max(m.state, ready)
	m.Report()
}

// begun implements role. Who has no gradient, and parameters of nobody else's, is told their version.
func (m *AllReduce) begun() {
	m.followed()
	if m.version == firstVersion && !m.moved && m.samples == 0 && m.state == ready {
		m.state = computing
		m.proceed()
	}
}

// followed implements role.
func (m *AllReduce) followed() {
	m.sum.Restart(m.coordinator)
	m.said, m.given = map[topology.PeerID]uint64{}, map[topology.PeerID]uint64{}
}

// newest implements role.
func (m *AllReduce) newest() uint64 {
	if m.state >= summed && m.version != unknownVersion {
		return m.version + 1
	}
	return m.version
}

// Report implements role.
func (m *AllReduce) Report() {
	said := m.version << statusBits
	switch {
	case m.state == ready:
		said |= isReady
	case m.state == computing && !m.sum.Placed():
		said |= isDone
	}
	m.Tell(m.coordinator, collective.Message{Kind: messageStatus, View: said})
}

// lose implements role.
func (m *AllReduce) lose(id topology.PeerID) {
	if id == m.coordinator {
		m.lost()
		return
	}
	delete(m.said, id)
	delete(m.given, id)
	m.sum.Lose(id)
}

// receive implements role.
func (m *AllReduce) receive(from topology.PeerID, w collective.Message) {
	switch {
	case m.sum.Receive(from, w):
	case w.Kind == messageStatus:
		m.Tell(from, message(collective.MessageAck, 0, 0))
		if m.said[from] = w.View; m.over && m.says(from, isReady) && !m.sum.Under() {
			m.Tell(from, message(messageEnd, 0, 0)) // it has not learned that
		}
	}
}

// round is the name of the sum that follows from parameters of a version.
func round(version uint64) string { return fmt.Sprintf("step %d", version) }

// join takes part in the sum of the round.
func (m *AllReduce) join() {
	if m.state > ready || !m.brings() || m.over || m.coordinator == "" || m.version == unknownVersion || m.sum.Under() {
		return
	}
	as := m.progress
	if m.copied {
		as = -1 - m.progress
	}
	for _, id := range slices.Sorted(maps.Keys(m.given)) { // otherwise it would always be a round behind
		m.sum.Expect(id)
	}
	m.sum.Call(round(m.version), m.Deadline, as)
}

// Load implements collective.Summer.
func (m *AllReduce) Load(t collective.Transfer) {
	load := collective.Action{Action: averaging.Action{Kind: collective.Load}, Add: t.Add, Forget: t.Add}
	if t.Add {
		load.Transfer = collective.Transfer{Part: t.Part, Parts: t.Parts}
	}
	m.Do(load)
}

// Summed implements collective.Summer. A peer that has no part in the others' sum needs their parameters.
func (m *AllReduce) Summed(r collective.Summed) {
	switch {
	case r.Err == nil:
		m.state, m.as = summed, r.Value
		if at, n := m.members.Place(); m.division.whole > 0 && at >= 0 {
			m.batch = inTurn(m.division.whole, at, n, m.version) // no message tells it, which might come late
		}
		if m.leads() {
			m.concluded(m.sum.Participants())
		}
	case !r.LeftOut: // it has failed for all: they make another sum of the same gradients
	case m.leads():
		m.fail()
	default:
		m.version, m.copied = unknownVersion, true
		m.Report()
	}
}

// concluded prepares the next round: statuses so far are about the old parameters, and a member that has had
// the parameters for a whole round but was not in it is no longer waited for.
func (m *AllReduce) concluded(participants []topology.PeerID) {
	if m.division.whole == 0 {
		m.divide(participants)
	}
	for _, id := range participants {
		delete(m.said, id)
		delete(m.given, id)
	}
	maps.DeleteFunc(m.given, func(_ topology.PeerID, version uint64) bool { return version < m.version })
}

// copies tells whether a transfer carries the coordinator's parameters.
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
		m.sum.Offered(e)
	case e.Peer == m.coordinator && m.concerned() && m.state < summed && !m.sum.Placed() && len(m.In) == 0:
		m.sum.Cancel()
		m.version, m.copied = unknownVersion, true // neither the old nor the new parameters
		m.Accept(e, 1)
	default:
		m.Refuse(e, averaging.Round)
	}
}

// landed implements role.
func (m *AllReduce) landed(e collective.Event) {
	f, found := m.sum.Landing(e)
	switch {
	case !found:
	case !e.Inbound: // the other peer asks again
		delete(m.said, f.Peer)
	case e.Kind == averaging.Finished && f.Peer == m.coordinator:
		m.version, m.state, m.moved = f.Transfer.Round, computing, true
		m.proceed()
		if m.over {
			m.Report()
		}
	}
}

// retransmit implements role: it also informs members that do not follow.
func (m *AllReduce) retransmit() {
	m.sum.Tick()
	if m.leads() && !m.settled {
		m.tellSome(m.claim(), func(id topology.PeerID) bool {
			_, said := m.said[id]
			return !said
		})
	}
}

// NoUpdate is the fact that a run of DiLoCo is over without an update.
const NoUpdate = "the run has ended before the first update, and the local steps are lost: with fewer steps from one update to the next (Outer.Every), or a longer run, there are some"

// due implements role.
func (m *AllReduce) due() {
	if m.goOn(); m.settled && !m.moved && m.local.Every > 0 {
		m.moved = true
		m.Note(NoUpdate, fmt.Sprintf("Every is %d", m.local.Every), m.Self)
	}
}

// goOn does what is due but for notes.
func (m *AllReduce) goOn() {
	if !m.brings() || m.halted || m.settled {
		m.sum.Cancel() // the gradient is gone
	}
	switch {
	case m.halted || m.settled:
		return
	case m.leads():
		m.coordinate()
	}
	m.join()
	copying := slices.ContainsFunc(m.Out, func(f collective.Flight) bool { return copies(f.Transfer) })
	if m.state == summed && !copying { // no transfer reads what the update would change
		m.update()
	}
	if m.state < summed {
		m.rest()
	}
}

// coordinate sends the parameters to members that need them, and does not wait for members that are done.
func (m *AllReduce) coordinate() {
	resting := m.over && m.state == computing && !m.sum.Under()
	for id := range m.members.Others {
		if m.sum.Silent(id) {
			delete(m.said, id)
			delete(m.given, id)
		}
		if _, said := m.said[id]; !said || m.state >= summed {
			continue
		}
		if m.says(id, isDone) {
			m.sum.Excuse(id)
		}
		if !m.level(id) && !m.learns(id) && (m.says(id, isReady) || resting) && !m.SendingTo(id, collective.Parameters) {
			m.given[id] = m.version
			m.sendParameters(id, m.version, true)
		}
	}
}

// update makes the step of the round. One number tells all members the progress of the run and whether to
// forget the momentum.
func (m *AllReduce) update() {
	m.state = updating
	const least = 1e-300 // so that all use one rate at the very beginning too
	progress, forget := m.as, m.as < 0
	if forget {
		progress = -1 - m.as
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
	if m.version != unknownVersion { // otherwise it follows another coordinator by now
		m.version, m.copied = m.version+1, false
	}
	m.state, m.moved = computing, true
	m.proceed()
	if m.over {
		m.Report()
	}
}

// rest lets a trainer end that is in no attempt: its last gradient is not worth an attempt
// of its own. The coordinator ends when all have its parameters.
func (m *AllReduce) rest() {
	if !m.over || m.sum.Placed() {
		return
	}
	if m.state == ready {
		m.sum.Cancel()
		m.state = computing
		m.proceed()
		m.Report()
	}
	if m.leads() && m.allAlike() {
		m.depart()
	}
	m.beginToSeek()
}

// allAlike tells whether all others have these parameters and are done, or have exceeded
// the deadline.
func (m *AllReduce) allAlike() bool {
	for id := range m.members.Others {
		if !m.says(id, isDone) || !m.level(id) {
			return m.Now-m.overAt >= m.Deadline
		}
	}
	return true
}
