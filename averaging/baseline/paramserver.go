package baseline

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// ParamServer is training by a parameter server, which is one of the peers and trains
// too. A worker sends its gradient to the server, which adds it to what it has, makes an
// update when its Gate says so, and sends the parameters back to those that may go on.
//
// Where each push makes an update by itself, it makes an n-th of a step, n being the number
// of workers: a round of pushes is then a step at the rate of the run, as with BSP. More
// would diverge sooner the more workers there are, since gradients that are stale by n
// updates act like momentum (Mitliagkas et al., 2016). The server's own trainer is at most
// one push ahead of the fastest worker.
//
//   - A push that breaks off counts as far as it has come, and is not repeated where the
//     server has begun to take it in: so none ever counts twice.
//   - A gradient that others would refuse, since training has diverged, counts as none, the
//     server's own too, and its trainer is told.
//   - When a worker dies, parts, or keeps others waiting for the deadline, it is left out;
//     when it comes again, or comes late, it gets the parameters and loses its gradient.
//   - When the server dies the run halts: every trainer's step fails with
//     averaging.NoCoordinator.
//   - Whom a slow worker keeps waiting, its gate says.
//   - When the run is over for the server, it serves until it is for all workers; then it
//     gives all its parameters, with which all end. A worker that cannot get them within
//     two deadlines ends with what it has.
type ParamServer struct {
	coordination
	gate    Gate
	clock   uint64 // pushes that have been answered by parameters
	stage   stage
	unsent  bool // the push is to be sent, or sent again
	samples int  // of the gradient
	met     bool // the server knows this peer
	astray  bool // the server does not know this peer: any parameters of it will do
	service
	dividing int // Config.Batch
}

// stage is where a worker is in its iteration.
type stage uint8

const (
	training stage = iota
	pushing        // sends its gradient
	pulling        // waits for the parameters
	resting        // the run is over here; it is told, and never set
)

// NewParamServer makes a machine that knows no view yet. It reports all faults of the
// configuration at once. The gate must be of this machine alone.
func NewParamServer(config Config, gate Gate) (*ParamServer, error) {
	err := config.validate()
	if gate == nil {
		err = errors.Join(err, errors.New("the gate is nil: give BSP, ASP, SSP or DSSP"))
	}
	if err != nil {
		return nil, fmt.Errorf("parameter server machine: %w", err)
	}
	m := &ParamServer{gate: gate, dividing: config.Batch}
	m.Flights, m.role, m.service.m = config.flights(), m, m
	m.self, m.named = config.Self, config.Server
	return m, nil
}

// Traits implements collective.Machine. Whatever their gates, it is the server's that
// counts.
func (m *ParamServer) Traits() collective.Traits {
	return collective.Traits{Algorithm: collective.ParamServer, Gradients: true, Words: true}
}

// Handle implements averaging.Machine.
func (m *ParamServer) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	return collective.Handle(m, now, event, actions)
}

// Decide implements collective.Machine.
func (m *ParamServer) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	m.Begin(now, actions)
	if !m.handle(e) {
		m.event(e)
	}
	m.part()
	m.serve()
	m.arm()
	return m.End()
}

func (m *ParamServer) event(e collective.Event) {
	switch e.Kind {
	case collective.GradientDone:
		if m.gradient(e) {
			m.stage, m.unsent, m.samples = pushing, true, e.Samples
			m.introduce()
		}
	case averaging.ViewChanged:
		m.adopt(e.Overlay.View())
		for _, w := range slices.Clone(m.staff) {
			if w.id != m.Self && !m.order.Has(w.id) {
				m.lose(w.id)
			}
		}
	case collective.Offered:
		m.offered(e)
	case averaging.Accepted:
		m.Accepted(e)
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

// introduce pushes to a server that knows this peer, and makes it known to another.
func (m *ParamServer) introduce() {
	switch {
	case m.coordinator == "":
		m.seek()
	case m.leads():
		m.contribute()
	case m.met:
		m.push()
	default:
		m.report()
	}
}

// push sends the gradient.
func (m *ParamServer) push() {
	if m.stage != pushing || !m.unsent || m.leads() || m.coordinator == "" {
		return
	}
	m.unsent = false
	m.Tell(m.coordinator, word(wordSamples, m.clock+1, m.reign, float64(m.samples)))
	if m.dividing > 0 {
		m.Tell(m.coordinator, word(wordSpeed, m.clock+1, m.reign, m.speed.value))
	}
	m.Send(m.coordinator, collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1, Round: m.clock + 1}, false)
}

// report implements role.
func (m *ParamServer) report() {
	clock, s := m.clock, m.stage
	switch {
	case (m.over || m.ended) && !m.waiting:
		s = resting
	case s == pulling:
		clock++
	}
	m.Tell(m.coordinator, word(wordStatus, clock, m.reign, collective.Pack(0, uint64(s), statusBits)))
}

// followed implements role: the new server has nothing of this peer's push.
func (m *ParamServer) followed() {
	m.Abort("")
	m.astray, m.met = false, false
	if m.waiting {
		m.stage, m.unsent = pushing, true
	}
}

// lose goes on without a peer.
func (m *ParamServer) lose(id topology.PeerID) {
	switch {
	case m.leads():
		m.pass(id)
		m.dismiss(id)
	case id == m.coordinator:
		m.lost()
	default:
		m.Abort(id)
	}
}

// told handles a word.
func (m *ParamServer) told(from topology.PeerID, w collective.Word) {
	if m.hear(from, w) {
		return
	}
	i := m.hired(from)
	switch {
	case w.Kind == wordParting:
		m.lose(from)
	case w.Kind == wordHeard && from == m.coordinator:
		m.met = true
		if !m.astray {
			m.push()
		}
	case w.Kind == wordStatus && !m.leads():
		m.point(from, w)
	case w.Kind == wordStatus:
		m.status(from, w)
	case !m.leads() || i < 0:
	case w.Kind == wordSamples && w.Value >= 1 && w.Value <= MaxBatch:
		m.staff[i].samples = int(w.Value)
	case w.Kind == wordSpeed:
		m.staff[i].speed = w.Value
	}
}

// landing is the end of a transfer.
func (m *ParamServer) landing(e collective.Event) {
	f, found := m.Landed(e)
	switch {
	case !found:
	case e.Inbound && f.Transfer.From == collective.Parameters:
		if e.Kind == averaging.Finished && !f.Aborted && f.Peer == m.coordinator && m.concerned() {
			m.pulled(f.Transfer)
		}
	case e.Inbound:
		m.received(f)
	case f.Transfer.From == collective.Parameters:
		m.served(f, e)
	case f.Peer == m.coordinator && m.stage == pushing && f.Transfer.Round == m.clock+1:
		m.pushed(f, e)
	}
}

// pushed is the end of the own push.
func (m *ParamServer) pushed(f collective.Flight, e collective.Event) {
	m.astray = e.Kind == averaging.Refused && e.Reason == averaging.Round
	unfit := e.Kind == averaging.Failed && e.Reason == averaging.Unfit // nor could it be sent later
	switch untaken := e.Kind == averaging.Refused || e.Kind == averaging.Failed && !f.Accepted; {
	case untaken && !m.astray && !unfit:
		m.unsent = true // again with the next tick
		return
	case e.Kind != averaging.Finished:
		m.stage = pulling
		m.report() // else the server knows
	}
	m.stage = pulling
}

// offered answers what the server, or a worker, wants to send.
func (m *ParamServer) offered(e collective.Event) {
	t := e.Transfer
	switch {
	case m.settled:
		m.Refuse(e, averaging.Closing)
	case t.From == collective.Gradient && t.Into == collective.Sum && t.Add && t.Parts == 1:
		m.offeredPush(e)
	case copies(t) && e.Peer == m.coordinator && !m.leads() && m.concerned() && !m.TakingFrom(e.Peer) &&
		(t.Round >= ofTheEnd) == !m.waiting && (t.Round == m.clock+1 || m.astray || !m.waiting):
		m.mixed = true
		m.Accept(e, 1)
	default:
		m.Refuse(e, averaging.Round)
	}
}

// pulled has the parameters. With those of the end, this peer's part in the run is over.
func (m *ParamServer) pulled(t collective.Transfer) {
	m.reign, m.astray, m.met, m.unsent = m.current, false, true, false
	if t.Round >= ofTheEnd {
		m.round = t.Round - ofTheEnd
		if m.over {
			m.depart()
		}
		return
	}
	m.clock, m.stage = t.Round, training
	m.AbortOut(m.coordinator)
	m.proceed()
}

// impatient speaks again where there is no answer, and breaks off what takes too long.
func (m *ParamServer) impatient() {
	m.patient()
	if m.met && !m.astray && !m.halted {
		m.push()
	}
	for f, found := m.Stuck(); found; f, found = m.Stuck() {
		m.AbortOut(f.Peer)
		switch {
		case m.leads():
			m.dismiss(f.Peer)
		case f.Peer == m.coordinator && m.stage == pushing:
			m.stage = pulling
			m.report()
		}
	}
	for _, f := range m.In {
		if m.Now-f.Began >= m.Deadline {
			m.AbortIn(f.Peer)
		}
	}
	if m.leads() && !m.settled {
		m.urge()
	}
}
