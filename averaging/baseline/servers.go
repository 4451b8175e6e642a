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

// MaxServers bounds the parts of a model that are served by one server each.
const MaxServers = 64

// ParamServers is training by several parameter servers, each of which serves one part of the model, of about equally
// many values. A worker pushes the parts of its gradient to their servers, and goes on when it has all parts of the
// parameters. The servers know nothing of each other: what ParamServer says holds of each part, deaths included, and
// a bound of a Gate at each server. Two servers may differ in whom they have left out.
//
// A member may serve several parts, where there are fewer members or the others have died.
type ParamServers struct {
	parts    []*ParamServer
	lockstep bool    // the parts are kept in phase
	timers   []alarm // of the parts
	set      alarm   // that the runtime has
	ticks    averaging.ExchangeID
	gradient collective.Event // that the trainer has reported
	waiting  bool             // the trainer waits
	pending  []bool           // of the parts: it does not let the trainer go on yet
	skipped  []bool           // of the parts: it has taken part without this gradient
	actions  []collective.Action
	scratch  []collective.Action
}

// alarm is a timer that is set, if its tick is not 0.
type alarm struct {
	at   time.Duration
	tick averaging.ExchangeID
}

// NewParamServers makes a machine for as many parts as there are servers, 1 to MaxServers. A server is named by its id;
// where that is empty, the members serve in turn, in the order of the view. It reports all faults at once. The gate is
// asked at each server with that server's Board, and must not be shared with another machine.
func NewParamServers(config Config, servers []topology.PeerID, gate Gate) (*ParamServers, error) {
	var faults []error
	if n := len(servers); n < 1 || n > MaxServers {
		faults = append(faults, fmt.Errorf("%d servers: want 1 to %d", n, MaxServers))
	}
	if config.Server != "" {
		faults = append(faults, errors.New("Server is set: name the servers of the parts instead"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("parameter servers machine: %w", errors.Join(faults...))
	}
	m := &ParamServers{timers: make([]alarm, len(servers)), pending: make([]bool, len(servers)), skipped: make([]bool, len(servers))}
	for part, server := range servers {
		config.Server = server
		machine, err := NewParamServer(config, gate)
		if err != nil {
			return nil, err
		}
		machine.members.Turn = part
		machine.portion = portion{part: part, parts: len(servers)}
		m.parts = append(m.parts, machine)
		config.Batch, config.GlobalBatch = 0, 0 // one server divides the batch
	}
	m.lockstep = gate.Together() && len(servers) > 1
	return m, nil
}

// Traits implements collective.Machine.
func (m *ParamServers) Traits() collective.Traits {
	t := m.parts[0].Traits()
	t.Size, t.Server = m, m
	return t
}

// SetLength implements collective.Sized.
func (m *ParamServers) SetLength(values int, rounds bool) {
	for _, p := range m.parts {
		p.SetLength(values, rounds)
	}
}

// Parts implements collective.Server.
func (m *ParamServers) Parts() int { return len(m.parts) }

// Served implements collective.Server.
func (m *ParamServers) Served(part int) (topology.PeerID, uint64) { return m.parts[part].Served(0) }

// Handle implements averaging.Machine.
func (m *ParamServers) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	return collective.Handle(m, now, event, actions)
}

// Decide implements collective.Machine.
func (m *ParamServers) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	m.actions = actions
	switch part, one := m.addressed(&e); {
	case e.Kind == averaging.TimerFired:
		m.fired(now, e)
	case one && part < len(m.parts):
		m.tell(now, part, e)
	case !one:
		if e.Kind == averaging.StepDone || e.Kind == collective.GradientDone {
			m.gradient, m.waiting = e, true
			for part := range m.pending {
				m.pending[part], m.skipped[part] = true, false
			}
		}
		for part := range m.parts {
			m.tell(now, part, e)
		}
	}
	for part := m.behind(); part >= 0; part = m.behind() {
		none := m.gradient
		none.Samples, none.Initial = 0, false
		m.pending[part], m.skipped[part] = true, true
		m.tell(now, part, none)
	}
	m.arm(now)
	actions, m.actions = m.actions, nil
	return actions
}

// partBit is where a message's round has the number of the part, versionBit where that of a transfer of parameters has
// their version, in lock-step. With one part, both are those of ParamServer. A version of maxVersion or more is a
// liar's: an honest one that grew from it would reach the bits of another field.
const partBit, versionBit, maxVersion = 56, 32, 1 << 29

// addressed is the part that an event is about, and makes the event that of its machine; one is false if it is about
// all parts.
func (m *ParamServers) addressed(e *collective.Event) (part int, one bool) {
	n := averaging.ExchangeID(len(m.parts))
	switch e.Kind {
	case collective.Received:
		part, e.Message.Round = int(e.Message.Round>>partBit), e.Message.Round&(1<<partBit-1)
		if m.lockstep && e.Message.Kind == messageVersion || len(m.parts) > 1 && e.Message.Round >= 1<<(partBit-1) {
			part = len(m.parts) // nobody's
		}
		return part, true
	case collective.Updated, collective.Pushed:
		return e.Transfer.Part, true
	case averaging.Proposed, averaging.Accepted, averaging.Refused, averaging.Finished, averaging.Failed, collective.Offered:
		part, e.Exchange = int(e.Exchange%n), e.Exchange/n
		t := &e.Transfer
		within := t.Parts / int(n) // parts of that part
		if within*int(n) != t.Parts || within == 0 || t.Part/within != part {
			t.Parts = 0 // which its machine refuses
			return part, true
		}
		t.Part, t.Parts = t.Part%within, within
		if p := m.parts[part]; m.lockstep && copies(*t) && t.Round < ofTheEnd && e.Peer == p.coordinator {
			version := t.Round >> versionBit
			if t.Round &= 1<<versionBit - 1; version < maxVersion {
				p.next = version
			} else {
				t.Parts = 0
			}
		}
		return part, true
	}
	return 0, false
}

// tell tells a part's machine of an event, and passes its actions on.
func (m *ParamServers) tell(now time.Duration, part int, e collective.Event) {
	m.scratch = m.parts[part].Decide(now, e, m.scratch[:0])
	for _, a := range m.scratch {
		if m.relay(now, part, &a) {
			m.actions = append(m.actions, a)
		}
	}
}

// relay makes an action of a part's machine one of this machine, if it is to be carried out.
func (m *ParamServers) relay(now time.Duration, part int, a *collective.Action) bool {
	n := len(m.parts)
	switch a.Kind {
	case averaging.Proceed:
		m.pending[part], a.Batch = false, m.parts[0].batch
		return m.goesOn(now)
	case averaging.Halt:
		halts := m.waiting || m.parts[part].serveOnly
		m.waiting = false // what the others answer is too late
		return halts
	case averaging.Settled:
		return !slices.ContainsFunc(m.parts, func(p *ParamServer) bool { return !p.settled })
	case averaging.SetTimer:
		m.timers[part] = alarm{at: now + a.After, tick: a.Exchange}
		return false
	case averaging.Accept, averaging.Refuse, averaging.Abort:
		a.Exchange = a.Exchange*averaging.ExchangeID(n) + averaging.ExchangeID(part)
	case collective.Send:
		a.Exchange = a.Exchange*averaging.ExchangeID(n) + averaging.ExchangeID(part)
		if m.lockstep && copies(a.Transfer) && a.Transfer.Round < ofTheEnd {
			a.Transfer.Round |= m.parts[part].version << versionBit
		}
		a.Transfer.Part, a.Transfer.Parts = part*a.Transfer.Parts+a.Transfer.Part, n*a.Transfer.Parts
	case collective.Load, collective.Clear, collective.Update:
		a.Transfer.Part, a.Transfer.Parts = part, n
	case collective.Tell:
		if m.lockstep && a.Message.Kind == messageVersion {
			return false // its transfer says it
		}
		a.Message.Round |= uint64(part) << partBit
	case collective.Note:
		if n > 1 {
			fact := *a.Fact
			fact.Why = fmt.Sprintf("%s, which served part %d of %d", fact.Why, part+1, n)
			a.Fact = &fact
		}
	}
	return true
}

// goesOn tells whether the trainer may go on now, as all parts let it.
func (m *ParamServers) goesOn(now time.Duration) bool {
	if !m.waiting || slices.Contains(m.pending, true) || m.behind() >= 0 {
		return false
	}
	m.waiting = false
	m.parts[0].speed.began(now)
	return true
}

// behind is a part that lets the trainer go on with parameters that are older than another part's are, or will be when it
// does; -1 if there is none. In lock-step such a part takes part in its next update without a gradient, once for each: of
// a server that lies about its version others would never be done. Otherwise a server that has answered a gradient without
// taking it, as the successor of one that died does, would wait for the next of a worker that waits for another server,
// and that one for this worker's, again and again.
func (m *ParamServers) behind() int {
	least, newest := -1, uint64(0)
	for part, p := range m.parts {
		switch {
		case p.over || p.ended || p.halted || !m.waiting || !m.lockstep || m.gradient.Kind != collective.GradientDone:
			return -1
		case m.pending[part]:
			newest = max(newest, p.version+1)
			continue
		case m.skipped[part]:
		case least < 0 || p.version < m.parts[least].version:
			least = part
		}
		newest = max(newest, p.version)
	}
	if least < 0 || m.parts[least].version == newest {
		return -1
	}
	return least
}

// fired passes the timer on to the parts whose own have run out.
func (m *ParamServers) fired(now time.Duration, e collective.Event) {
	if m.set.tick == 0 || e.Exchange != m.set.tick {
		return
	}
	m.set = alarm{}
	for part, own := range m.timers {
		if own.tick != 0 && own.at <= now {
			m.timers[part] = alarm{}
			e.Exchange = own.tick
			m.tell(now, part, e)
		}
	}
}

// arm sets the timer to the earliest of the parts', unless it runs out sooner anyway.
func (m *ParamServers) arm(now time.Duration) {
	var first alarm
	for _, own := range m.timers {
		if own.tick != 0 && (first.tick == 0 || own.at < first.at) {
			first = own
		}
	}
	if first.tick == 0 || m.set.tick != 0 && m.set.at <= first.at {
		return
	}
	m.ticks++
	m.set = alarm{at: first.at, tick: m.ticks}
	m.actions = append(m.actions, collective.Action{Action: averaging.Action{
		Kind: averaging.SetTimer, Timer: averaging.RoundDeadline, Exchange: m.ticks, After: max(first.at-now, 0),
	}})
}
