package baseline

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// ParamServer is training by a parameter server, which is one of the peers and trains
// too. A worker sends its gradient to the server, which adds it to what it has, makes an
// update when its Gate says so, and sends the parameters back to those that may go on.
// It implements averaging.GradientMachine.
//
// Where each push makes an update by itself, it makes an n-th of a step, n being the number
// of workers: a round of pushes is then a step at the rate of the run, as with BSP. More
// would diverge sooner the more workers there are, since gradients that are stale by n
// updates act like momentum (Mitliagkas et al., 2016). The server's own trainer is at most
// one push ahead of the fastest worker.
//
//   - A push that breaks off counts with the parts of the gradient that have come, and is
//     not repeated where the server has begun to take it in: so none ever counts twice.
//   - A gradient that others would refuse, since training has diverged, counts as none, the
//     server's own too, and its trainer is told.
//   - A worker that dies, parts, or keeps others waiting for the deadline is left out; when
//     it comes again, it gets the parameters and loses its gradient.
//   - If the server dies, the next in the view's order serves from the copy that it has.
//     Lost are the updates since that copy, the gradients under way, and the server's
//     momentum. It waits for the workers of the old one, for the deadline at most. If it
//     was being sent parameters at that moment, its copy is partly those.
//   - If the server was named, nobody takes its place: after the deadline the trainers
//     fail with averaging.NoServer.
//   - When the run is over for the server, it serves until it is for all workers; then it
//     gives all its parameters, with which all end. A worker that cannot get them within
//     two deadlines ends with what it has.
type ParamServer struct {
	office
	gate     Gate
	clock    uint64 // pushes that have been answered by parameters
	stage    stage
	left     []int // parts to be pushed that are not under way
	pushing  int   // parts under way
	grant    grant
	met      bool // the server knows this peer
	astray   bool // the server does not know this peer: any parameters of it will do
	board    Board
	workers  []worker  // of the server: itself included while it trains
	sleepers []sleeper // of the server: workers for which the run is over
	due      []topology.PeerID
	busy     bool              // an update is being made
	updating []topology.PeerID // whose pushes it is of
	samples  int               // of the own gradient
	offer    uint64            // the server's lineage, as it said
}

// stage is where a worker is in its iteration.
type stage uint8

const (
	training stage = iota
	pushing        // sends its gradient
	pulling        // waits for the parameters
	sleeping       // the run is over here; as it is told, see office.resting
)

// grant is what a worker has of the parameters that answer a push.
type grant struct {
	clock uint64
	parts []bool
	count int
}

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
	m := &ParamServer{gate: gate}
	m.config = config.withDefaults()
	m.self, m.named = config.Self, config.Server
	m.duties = m
	return m, nil
}

// AveragesGradients implements averaging.GradientMachine.
func (m *ParamServer) AveragesGradients() {}

// Handle implements averaging.Machine.
func (m *ParamServer) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
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
	case averaging.Accepted:
		m.accepted(event)
	case averaging.Refused, averaging.Finished, averaging.Failed:
		m.landing(event)
	case averaging.TimerFired:
		if m.ticked(event) {
			m.impatient()
		}
	case averaging.PeerLost, averaging.Quarantined:
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
	m.serve()
	m.arm(m.concerned() || m.leads() || len(m.out) > 0 || m.farewells > 0, m.interval())
	return m.end()
}

func (m *ParamServer) gradient(e averaging.Event) {
	if m.over {
		m.do(averaging.Action{Kind: averaging.Proceed})
		return
	}
	m.begun(e)
	m.samples = e.Samples
	m.stage = pushing
	m.left, m.pushing = m.left[:0], 0
	for part := range m.config.Parts {
		m.left = append(m.left, part)
	}
	switch {
	case m.leader == "":
		m.seek()
	case m.leads():
		m.contribute(e.Samples)
	default:
		m.introduce()
	}
}

// introduce pushes to a server that knows this peer, and makes it known to another.
func (m *ParamServer) introduce() {
	if m.met {
		m.push()
	} else {
		m.report()
	}
}

// push sends the parts of the gradient that are left.
func (m *ParamServer) push() {
	if m.stage != pushing || m.leads() || m.leader == "" {
		return
	}
	if len(m.left) == m.config.Parts {
		m.tell(m.leader, word(wordSamples, m.clock+1, m.lineage, float64(m.samples)))
		if m.config.Batch > 0 {
			m.tell(m.leader, word(wordSpeed, m.clock+1, m.lineage, m.speed.value))
		}
	}
	for _, part := range m.left {
		m.pushing++
		m.send(m.leader, averaging.Transfer{
			From: averaging.Gradient, Into: averaging.Sum, Add: true,
			Part: part, Parts: m.config.Parts, Round: m.clock + 1,
		})
	}
	m.left = m.left[:0]
}

// report implements duties.
func (m *ParamServer) report() {
	if m.leads() {
		return
	}
	clock, s := m.clock, m.stage
	switch {
	case m.resting:
		s = sleeping
	case s == pulling:
		clock++
	}
	m.tell(m.leader, word(wordStatus, clock, m.lineage, packed(0, uint64(s), statusBits)))
}

// followed implements duties: the new server has nothing of this peer's push, and its
// parameters are others than those that the old one has sent in part.
func (m *ParamServer) followed() {
	m.abort("")
	m.astray, m.met, m.grant = false, false, grant{}
	if m.waiting {
		m.stage, m.pushing = pushing, 0
		m.left = m.left[:0]
		for part := range m.config.Parts {
			m.left = append(m.left, part)
		}
	}
}

// landing is the end of a transfer.
func (m *ParamServer) landing(e averaging.Event) {
	f, found := m.landed(e)
	switch {
	case !found:
	case e.Inbound && f.transfer.From == averaging.Parameters:
		m.pulled(f, e.Kind == averaging.Finished)
	case e.Inbound:
		m.received(f)
	case f.transfer.From == averaging.Parameters:
		m.served(f, e.Kind, e.Reason)
	case f.peer == m.leader && m.stage == pushing && f.transfer.Round == m.clock+1:
		m.pushed(f, e)
	}
}

// pushed is the end of a part of the own push.
func (m *ParamServer) pushed(f flight, e averaging.Event) {
	m.pushing--
	switch {
	case e.Kind == averaging.Refused && e.Reason == averaging.Round:
		m.astray = true
	case e.Reason == averaging.Unfit && e.Kind == averaging.Failed: // nor could it be sent later
	case e.Kind == averaging.Refused || e.Kind == averaging.Failed && !f.accepted:
		m.left = append(m.left, f.transfer.Part) // again with the next tick
	}
	if m.pushing == 0 && (m.astray || len(m.left) == 0) {
		m.stage = pulling
		if m.astray || e.Kind == averaging.Failed {
			m.report() // else the server knows
		}
	}
}

// offered answers what the server, or a worker, wants to send.
func (m *ParamServer) offered(e averaging.Event) {
	t := e.Transfer
	switch {
	case m.settled:
		m.refuse(e, averaging.Closing)
	case t.From == averaging.Gradient && t.Into == averaging.Sum && t.Add:
		m.offeredPush(e)
	case t.From == averaging.Parameters && t.Into == averaging.Parameters && !t.Add && m.expects(e.Peer, t):
		m.accept(e)
	default:
		m.refuse(e, averaging.Round)
	}
}

// expects tells whether parameters answer the push that this peer waits with, and makes
// room for them.
func (m *ParamServer) expects(from topology.PeerID, t averaging.Transfer) bool {
	if from != m.leader || m.leads() || !m.concerned() || !fits(t) {
		return false
	}
	if t.Round != m.clock+1 && !m.astray && !m.resting {
		return false
	}
	if m.grant.clock != t.Round || len(m.grant.parts) != t.Parts {
		m.grant = grant{clock: t.Round, parts: make([]bool, t.Parts)}
	}
	coming := slices.ContainsFunc(m.in, func(f flight) bool { return f.transfer.From == t.From && f.transfer.Part == t.Part })
	// At the end the server may not know that a part has come: then it comes again, the same.
	return (!m.grant.parts[t.Part] || m.resting) && !coming
}

// pulled counts a part of the parameters in. With the last, the trainer goes on.
func (m *ParamServer) pulled(f flight, well bool) {
	if !well || f.aborted || f.peer != m.leader || f.transfer.Round != m.grant.clock || f.transfer.Parts != len(m.grant.parts) || !m.concerned() {
		return
	}
	if m.grant.parts[f.transfer.Part] {
		return
	}
	m.grant.parts[f.transfer.Part] = true
	m.grant.count++
	if m.grant.count < len(m.grant.parts) {
		return
	}
	m.clock, m.round, m.lineage = m.grant.clock, m.grant.clock, m.offer
	m.grant, m.astray, m.met, m.stage, m.pushing = grant{}, false, true, training, 0
	m.abortOut(m.leader)
	m.proceed()
}
