package averaging

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Defaults of Config.
const (
	DefaultDeadline   = 30 * time.Second
	DefaultRetryAfter = 5 * time.Second
)

// Config sets up an ADPSGD machine. Self and Rand are required; the zero values
// of the others are useful.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Every is H, the number of local steps between two exchanges that the peer
	// initiates. 0 lets the measured link and step times decide.
	Every int
	// MinEvery and MaxEvery bound H when it is chosen automatically. Default: 1
	// and DefaultMaxEvery.
	MinEvery, MaxEvery int
	// CostShare bounds the processor time of exchanges, as a share of the
	// trainer's time, when H is chosen automatically. Default: DefaultCostShare.
	CostShare float64
	// Deadline bounds an exchange from proposal to end. Default: DefaultDeadline.
	Deadline time.Duration
	// RetryAfter is how long a partner that failed is passed over, unless the
	// view changes. Default: DefaultRetryAfter.
	RetryAfter time.Duration
	// Rand is where the random start of the partner cycle comes from. The machine
	// owns it.
	Rand *rand.Rand
}

func (c Config) validate() error {
	var faults []error
	if c.Self == "" {
		faults = append(faults, errors.New("Self is empty"))
	}
	if c.Rand == nil {
		faults = append(faults, errors.New("Rand is nil: give a seeded source"))
	}
	if c.Every < 0 || c.MinEvery < 0 || c.MaxEvery < 0 {
		faults = append(faults, fmt.Errorf("Every, MinEvery and MaxEvery are %d, %d and %d: none may be negative", c.Every, c.MinEvery, c.MaxEvery))
	}
	if c.MaxEvery > 0 && c.MinEvery > c.MaxEvery {
		faults = append(faults, fmt.Errorf("MinEvery %d exceeds MaxEvery %d", c.MinEvery, c.MaxEvery))
	}
	if !(c.CostShare >= 0 && c.CostShare <= 1) {
		faults = append(faults, fmt.Errorf("CostShare is %v: want a share from 0 to 1", c.CostShare))
	}
	if c.Deadline < 0 || c.RetryAfter < 0 {
		faults = append(faults, fmt.Errorf("Deadline %s and RetryAfter %s: neither may be negative", c.Deadline, c.RetryAfter))
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	c.MinEvery = max(c.MinEvery, 1)
	if c.MaxEvery == 0 {
		c.MaxEvery = max(DefaultMaxEvery, c.MinEvery)
	}
	if c.CostShare == 0 {
		c.CostShare = DefaultCostShare
	}
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = DefaultRetryAfter
	}
	return c
}

// ADPSGD is asynchronous decentralized parallel SGD (Lian et al., 2018) with
// additive commits: the trainer is never stopped; an active peer initiates one
// exchange at a time, every H local steps, taking its links in cyclic order; a
// passive peer serves one at a time and refuses others at once. Only actives
// wait, and none holds a reservation while it does, so no cycle of waiting
// peers can form.
type ADPSGD struct {
	config   Config
	role     topology.Role
	partners []partner // in link order
	cursor   int       // index of the partner to ask next
	tries    int       // partners asked in this round
	owed     bool      // a round has begun in which nobody has accepted yet
	steps    int       // local steps since the last round began
	lastID   ExchangeID
	out, in  exchange
	met      topology.PeerID // the partner of the last outbound exchange completed
	pace     pace
	over     bool
	parting  int // partners still to be asked after the run is over
	settled  bool
}

// partner is a neighbour and the moment until which it is passed over.
type partner struct {
	id          topology.PeerID
	barredUntil time.Duration
}

// forever bars a partner until the view changes.
const forever = time.Duration(1<<63 - 1)

// exchange is one in flight; the zero value is none.
type exchange struct {
	id      ExchangeID
	peer    topology.PeerID
	began   time.Duration
	running bool
}

func (x exchange) is(e Event) bool {
	return x.running && x.id == e.Exchange && x.peer == e.Peer
}

// NewADPSGD makes a machine that knows no view yet and so talks to nobody. It
// reports all faults of the configuration at once.
func NewADPSGD(config Config) (*ADPSGD, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("AD-PSGD machine: %w", err)
	}
	config = config.withDefaults()
	return &ADPSGD{config: config}, nil
}

// Every is the present H.
func (m *ADPSGD) Every() int {
	if m.config.Every > 0 {
		return m.config.Every
	}
	return m.pace.every(m.config.CostShare, m.config.MinEvery, m.config.MaxEvery)
}

// Handle implements Machine.
func (m *ADPSGD) Handle(now time.Duration, event Event, actions []Action) []Action {
	switch event.Kind {
	case StepDone:
		m.steps++
		m.pace.stepped(now)
		actions = append(actions, Action{Kind: Proceed})
	case ViewChanged:
		m.adopt(event.Overlay)
	case Proposed:
		actions = m.answer(now, event, actions)
	case Accepted:
		if m.out.is(event) {
			m.owed, m.tries = false, 0
		}
	case Refused:
		m.refused(now, event)
	case Finished:
		m.finished(now, event)
	case Failed:
		m.failed(now, event)
	case TimerFired:
		actions = m.expired(now, event, actions)
	case PeerLost:
		actions = m.lost(now, event.Peer, actions)
	case RunOver:
		m.depart()
	}
	return m.initiate(now, actions)
}

// adopt takes the links of a new view. An exchange in flight goes on: whether
// its partner lives shows on the stream sooner than in gossip.
func (m *ADPSGD) adopt(overlay *topology.Overlay) {
	neighbours := overlay.Neighbours(m.config.Self)
	self, _ := overlay.View().Lookup(m.config.Self)
	m.role = self.Role
	m.partners = m.partners[:0]
	for _, id := range neighbours {
		m.partners = append(m.partners, partner{id: id})
	}
	m.tries = 0
	m.cursor = 0
	if len(m.partners) > 0 {
		m.cursor = m.config.Rand.IntN(len(m.partners))
	}
	if m.over {
		m.parting = min(m.parting, len(m.partners))
	}
}

// answer accepts or refuses an inbound exchange, at once. A proposer outside
// the view is served: its record may be still on its way here.
func (m *ADPSGD) answer(now time.Duration, event Event, actions []Action) []Action {
	reply := Action{Kind: Refuse, Peer: event.Peer, Exchange: event.Exchange, Inbound: true}
	switch {
	case m.role != topology.Passive:
		reply.Reason = WrongRole
	case m.in.running:
		reply.Reason = Busy
	default:
		reply.Kind = Accept
		m.in = exchange{id: event.Exchange, peer: event.Peer, began: now, running: true}
		deadline := Action{Kind: SetTimer, Timer: InboundDeadline, Exchange: event.Exchange, Peer: event.Peer, After: m.config.Deadline}
		return append(actions, reply, deadline)
	}
	return append(actions, reply)
}

func (m *ADPSGD) refused(now time.Duration, event Event) {
	if !m.out.is(event) {
		return
	}
	m.out = exchange{}
	switch event.Reason {
	case Unfit:
		m.bar(event.Peer, forever)
	case Closing:
		m.bar(event.Peer, now+m.config.RetryAfter)
	}
}

func (m *ADPSGD) finished(now time.Duration, event Event) {
	if event.Inbound {
		if m.in.is(event) {
			m.in = exchange{}
		}
		return
	}
	if m.out.is(event) {
		m.pace.exchanged(now-m.out.began, event.Cost)
		m.out, m.owed, m.tries, m.met = exchange{}, false, 0, event.Peer
	}
}

func (m *ADPSGD) failed(now time.Duration, event Event) {
	if event.Inbound {
		if m.in.is(event) {
			m.in = exchange{}
		}
		return
	}
	if m.out.is(event) {
		m.out = exchange{}
		m.bar(event.Peer, now+m.config.RetryAfter)
	}
}

func (m *ADPSGD) expired(now time.Duration, event Event, actions []Action) []Action {
	switch event.Timer {
	case OutboundDeadline:
		if m.out.running && m.out.id == event.Exchange {
			return m.lost(now, m.out.peer, actions)
		}
	case InboundDeadline:
		if m.in.running && m.in.id == event.Exchange && m.in.peer == event.Peer {
			actions = append(actions, Action{Kind: Abort, Peer: m.in.peer, Exchange: m.in.id, Inbound: true})
			m.in = exchange{}
		}
	}
	return actions
}

// lost breaks off whatever runs with a peer and passes it over for a while.
func (m *ADPSGD) lost(now time.Duration, peer topology.PeerID, actions []Action) []Action {
	if m.out.running && m.out.peer == peer {
		actions = append(actions, Action{Kind: Abort, Peer: peer, Exchange: m.out.id})
		m.out = exchange{}
	}
	if m.in.running && m.in.peer == peer {
		actions = append(actions, Action{Kind: Abort, Peer: peer, Exchange: m.in.id, Inbound: true})
		m.in = exchange{}
	}
	m.bar(peer, now+m.config.RetryAfter)
	return actions
}

func (m *ADPSGD) bar(peer topology.PeerID, until time.Duration) {
	for i := range m.partners {
		if m.partners[i].id == peer {
			m.partners[i].barredUntil = max(m.partners[i].barredUntil, until)
		}
	}
}
