package baseline

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// ParamServer is training by a parameter server, which is one of the peers and trains too.
// A worker sends its gradient to the server, which adds it to its sum, makes an update when
// its Gate says so, and sends the parameters back to the workers that may go on.
//
// If each push makes an update, that is an n-th of a step, with n workers: a round of
// pushes is then a step at the rate of the run, as with BSP. A larger step would diverge,
// the sooner the more workers there are, since gradients that are stale by n updates act
// like momentum (Mitliagkas et al., 2016). The server's own trainer is at most one push
// ahead of the fastest worker.
//
//   - A push that breaks off counts as far as it has come, and is not repeated if the
//     server has begun to take it: so no push counts twice.
//   - A gradient that others would refuse, because training has diverged, counts as none,
//     also the server's own, and its trainer gets an error.
//   - A worker that dies, leaves, or keeps others waiting for the deadline is left out.
//     When it returns, or comes late, it gets the parameters and loses its gradient.
//   - When the server dies, the worker with the newest parameters serves from then on, with
//     an optimizer that has no past gradients. What the others have pushed to the dead one is lost.
//   - A member that only serves (Config.ServeOnly) takes the place before those that train. It
//     pushes nothing, and gets the final parameters.
//   - The gate decides which workers wait for a slow one.
//   - A gradient that a program beside the training pushes (collective.Pushed) counts like one more worker's, for its
//     values: in lock-step in the next update, else in one of its own. Nobody waits for it.
//   - When the run is over for the server, it serves until the run is over for all
//     workers; then it gives all of them its final parameters. A worker that cannot get
//     them within two deadlines ends with those that it has.
type ParamServer struct {
	coordination
	service
	portion
	push
	gate  Gate
	clock uint64 // pushes that have been answered by parameters
	stage stage
	next  uint64 // version of the parameters that come next
}

// stage is where a worker is in its iteration.
type stage uint8

const (
	training stage = iota
	pushing        // sends its gradient
	pulling        // waits for the parameters
	resting        // the run is over here; only reported, never set
)

// NewParamServer makes a machine that knows no view yet. It reports all faults of the
// configuration at once. The gate must not be shared with another machine.
func NewParamServer(config Config, gate Gate) (*ParamServer, error) {
	err := config.validate()
	if gate == nil {
		err = errors.Join(err, errors.New("the gate is nil: give BSP, ASP, SSP or DSSP"))
	}
	if err != nil {
		return nil, fmt.Errorf("parameter server machine: %w", err)
	}
	m := &ParamServer{gate: gate, portion: portion{parts: 1}}
	m.begin(config, collective.ParamServer, m)
	m.named, m.serveOnly, m.service.m = config.Server, config.ServeOnly, m
	return m, nil
}

// Traits implements collective.Machine.
func (m *ParamServer) Traits() collective.Traits {
	t := m.coordination.Traits()
	t.Size, t.Server = &m.portion, m
	return t
}

// partly implements role: a worker begins to push while the rest of the gradient is computed. The first eighth waits for
// the whole, so that no push is complete, and answered, before its gradient is. So of a gradient that is ready all of it waits, and goes
// in fewer parts.
func (m *ParamServer) partly(from int) {
	if from == 0 {
		return
	}
	m.push.ready = m.portion.from(from) &^ 1
	m.pushParts()
}

// Parts implements collective.Server.
func (m *ParamServer) Parts() int { return 1 }

// Served implements collective.Server.
func (m *ParamServer) Served(int) (topology.PeerID, uint64) { return m.coordinator, m.version }

// Decide implements collective.Machine.
func (m *ParamServer) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	if e.Kind == collective.Pushed && m.leads() {
		m.outside.pushes, m.outside.samples = m.outside.pushes+1, m.outside.samples+e.Samples
	}
	return m.coordination.Decide(now, e, actions)
}

// ready implements role.
func (m *ParamServer) ready() {
	m.stage, m.push.ready = pushing, all
	switch {
	case m.leads():
		m.contribute()
	case m.samples == 0: // it takes part without a gradient
		m.stage = pulling
		m.Report()
	default:
		m.pushParts()
		m.pull()
	}
}

// placed implements role: the server goes on with what it has of a push.
func (m *ParamServer) placed() bool { return false }

// pushParts sends what can be sent of the gradient, and is not on its way, or gone.
func (m *ParamServer) pushParts() {
	if m.stage == pulling || !m.brings() || m.leads() || m.coordinator == "" || m.samples == 0 {
		return
	}
	for t, found := m.push.next(); found; t, found = m.push.next() {
		if m.push.sent == 0 {
			m.Tell(m.coordinator, message(messageSamples, m.clock+1, float64(m.samples)))
		}
		m.push.sent |= eighthsOf(t)
		t.Round = m.clock + 1
		m.Send(m.coordinator, t, false)
	}
}

// pull waits for the parameters once all of the gradient is gone.
func (m *ParamServer) pull() {
	if m.stage != pushing || m.push.gone != all {
		return
	}
	m.stage = pulling
	if m.push.broken { // otherwise the server knows
		m.Report()
	}
}

// Report implements role.
func (m *ParamServer) Report() {
	clock, s := m.clock, m.stage
	switch {
	case (m.over || m.ended || m.serveOnly) && !m.waiting:
		s = resting
	case s == pulling:
		clock++
	}
	m.Tell(m.coordinator, message(messageStatus, clock, float64(s)))
}

// newest implements role.
func (m *ParamServer) newest() uint64 { return m.version }

// followed implements role: the new server has nothing of this peer's push. A push that a server had taken before it
// died may be in the parameters that others have, and is not repeated.
func (m *ParamServer) followed() {
	m.clear()
	m.push.sent, m.push.gone = 0, 0
	if m.waiting && m.coordinator != "" && m.stage != pulling {
		m.stage = pushing
	}
	m.pushParts()
}

// lose implements role.
func (m *ParamServer) lose(id topology.PeerID) {
	switch {
	case m.leads():
		m.members.Pass(id)
		m.dismiss(id)
	case id == m.coordinator:
		m.lost()
	default:
		m.Abort(id)
	}
}

// receive implements role.
func (m *ParamServer) receive(from topology.PeerID, w collective.Message) {
	switch i := m.board.index(from); {
	case w.Kind == messageStatus:
		m.status(from, w)
	case w.Kind == messageVersion && from == m.coordinator:
		m.next = w.Round
	case w.Kind == messageSamples && i >= 0 && w.Value >= 1 && w.Value <= MaxBatch:
		m.board.workers[i].samples = int(w.Value)
	}
}

// landed implements role.
func (m *ParamServer) landed(e collective.Event) {
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
	case f.Peer == m.coordinator && m.stage != pulling && f.Transfer.Round == m.clock+1:
		m.pushed(f, e)
	}
}

// pushed handles the end of a part of this worker's push. A part that the server has not begun to take is repeated
// with the next tick, unless the server does not wait for it, or it cannot be sent later either.
func (m *ParamServer) pushed(f collective.Flight, e collective.Event) {
	switch {
	case e.Kind == averaging.Refused && e.Reason != averaging.Round,
		e.Kind == averaging.Failed && e.Reason != averaging.Unfit && !f.Accepted:
		m.push.sent &^= eighthsOf(f.Transfer)
		return
	}
	m.gone(f, e.Kind == averaging.Finished)
}

// gone notes that a part is at the server, or will not be.
func (m *ParamServer) gone(f collective.Flight, well bool) {
	m.push.gone |= eighthsOf(f.Transfer)
	m.push.broken = m.push.broken || !well
	m.pull()
}

// offered implements role: the server, or a worker, wants to send.
func (m *ParamServer) offered(e collective.Event) {
	t := e.Transfer
	switch {
	case m.settled:
		m.Refuse(e, averaging.Closing)
	case pushes(t):
		m.offeredPush(e)
	case copies(t) && e.Peer == m.coordinator && !m.leads() && m.concerned() && !m.TakingFrom(e.Peer) &&
		(m.waiting && t.Round == m.clock+1 || !m.waiting && t.Round >= ofTheEnd):
		m.Accept(e, 1)
	default:
		m.Refuse(e, averaging.Round)
	}
}

// pulled is called when the parameters are here. With the final ones, this peer's part in the run is over.
func (m *ParamServer) pulled(t collective.Transfer) {
	if t.Round >= ofTheEnd {
		if m.over {
			m.depart()
		}
		return
	}
	m.clock, m.stage, m.version, m.push = t.Round, training, max(m.version, m.next), push{}
	m.AbortOut(collective.With(m.coordinator))
	m.proceed()
}

// retransmit implements role.
func (m *ParamServer) retransmit() {
	if !m.halted {
		m.pushParts()
	}
	for f := range m.Overdue {
		switch {
		case m.leads():
			m.dismiss(f.Peer)
		case f.Peer == m.coordinator && f.Transfer.From == collective.Gradient && f.Transfer.Round == m.clock+1:
			m.gone(f, false)
		}
	}
	if m.leads() && !m.settled {
		m.urge()
	}
}

// due implements role.
func (m *ParamServer) due() {
	m.rest()
	m.serve()
}
