package averaging

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// ADPSGD is asynchronous decentralized parallel SGD (Lian et al., 2018) with
// additive commits: the trainer is never stopped; an active peer initiates one
// exchange at a time, every H local steps, taking its links in cyclic order; a
// passive peer serves Config.MaxInbound at a time and refuses others at once. Only
// actives wait, and none holds a reservation while it does, so no cycle of waiting
// peers can form.
//
// Where members say at which sites they are, a delegate has one exchange more at a time with other sites, at a pace
// of its own (topology.Overlay.Apart): those that take long do not hold up those inside a site.
type ADPSGD struct {
	config         Config
	inside, across neighbourhood
	lastID         ExchangeID
	settled        bool
}

// NewADPSGD makes a machine that knows no view yet and so proposes nothing. It reports all
// faults of the configuration at once.
func NewADPSGD(config Config) (*ADPSGD, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("AD-PSGD machine: %w", err)
	}
	m := &ADPSGD{config: config.withDefaults()}
	m.inside = neighbourhood{config: m.config, beside: &m.across, lastID: &m.lastID, accounts: newAccounts()}
	m.across = neighbourhood{config: m.config, beside: &m.inside, lastID: &m.lastID, accounts: newAccounts(), across: true}
	m.inside.timers.outbound, m.inside.timers.inbound = OutboundDeadline, InboundDeadline
	m.across.timers.outbound, m.across.timers.inbound = AcrossOutbound, AcrossInbound
	m.apportion()
	return m, nil
}

// Every is the present H inside the site.
func (m *ADPSGD) Every() int { return m.inside.every() }

// SetPace replaces the pace from now on; what has been measured stays. Call it on the
// goroutine that calls Handle.
func (m *ADPSGD) SetPace(pace Pace) error {
	if err := pace.Validate(); err != nil {
		return fmt.Errorf("another pace: %w", err)
	}
	m.config.Pace = pace
	m.apportion()
	return nil
}

// Handle implements Machine.
func (m *ADPSGD) Handle(now time.Duration, event Event, actions []Action) []Action {
	if event.Kind == StepDone {
		actions = append(actions, Action{Kind: Proceed})
	}
	if event.Kind == Proposed {
		actions = m.of(event.Peer).handle(now, event, actions)
	} else { // each takes what concerns it: exchanges have their numbers in common, and timers are told apart
		actions = m.across.handle(now, event, m.inside.handle(now, event, actions))
	}
	if event.Kind == ViewChanged {
		m.apportion()
	}
	if both := m.inside.settled && m.across.settled; both && !m.settled {
		m.settled = true
		actions = append(actions, Action{Kind: Settled})
	}
	return actions
}

// of is the part of the machine that deals with a peer.
func (m *ADPSGD) of(peer topology.PeerID) *neighbourhood {
	if overlay := m.across.overlay; overlay != nil && overlay.Apart(m.config.Self, peer) {
		return &m.across
	}
	return &m.inside
}

// apportion gives both parts their paces. Exchanges across are whole and come one by one; how far the model has
// moved is known since the last exchange inside only. If there are any, both have half of the bytes.
func (m *ADPSGD) apportion() {
	inside, across := m.config.Pace, m.config.Pace
	across.Burst, across.Partial = 0, false
	if across.Drift > 0 {
		across.Drift, across.Every = 0, 0
	}
	if len(m.across.partners) > 0 {
		inside.BytesPerHour /= 2
		across.BytesPerHour /= 2
	}
	m.inside.setPace(inside)
	m.across.setPace(across)
}
