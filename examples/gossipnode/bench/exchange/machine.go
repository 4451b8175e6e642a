package exchange

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
)

// impatient is the default machine of peers, with a simulated trainer that takes a step as soon as an exchange has
// ended: so exchanges follow each other without a pause. It proposes again at once if the partner is busy.
type impatient struct {
	averaging.Machine
	// remaining is how many further exchanges the machine begins by itself.
	remaining atomic.Int64
	refused   atomic.Int64
	// flying tells whether an exchange is proposed or running.
	flying atomic.Bool
	start  atomic.Pointer[beginning]
	armed  atomic.Bool
}

// beginning is the time of a proposal.
type beginning struct {
	at  time.Time
	cpu float64 // processor seconds used before it
}

func (m *impatient) build(config averaging.Config) (averaging.Machine, error) {
	inner, err := averaging.NewADPSGD(config)
	m.Machine = inner
	return m, err
}

// arm records the beginning of the next proposal, and allows that many further exchanges.
func (m *impatient) arm(remaining int) {
	m.remaining.Store(int64(remaining))
	m.armed.Store(true)
}

// Handle implements averaging.Machine.
func (m *impatient) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	ours := len(actions)
	actions = m.Machine.Handle(now, event, actions)
	if event.Inbound {
		return actions
	}
	next := false
	switch event.Kind {
	case averaging.Refused:
		m.refused.Add(1)
		next = true
	case averaging.Finished:
		next = m.remaining.Add(-1) >= 0
	}
	switch event.Kind {
	case averaging.Refused, averaging.Finished, averaging.Failed:
		m.flying.Store(false)
	}
	if next && !proposes(actions[ours:]) {
		done := len(actions)
		actions = m.Machine.Handle(now, averaging.Event{Kind: averaging.StepDone}, actions)
		// There is no trainer that waits for Proceed.
		kept := slices.DeleteFunc(actions[done:], func(a averaging.Action) bool { return a.Kind == averaging.Proceed })
		actions = actions[:done+len(kept)]
	}
	if proposes(actions[ours:]) {
		m.flying.Store(true)
		if m.armed.CompareAndSwap(true, false) {
			m.start.Store(&beginning{at: time.Now(), cpu: host.ProcessorSeconds()})
		}
	}
	return actions
}

func proposes(actions []averaging.Action) bool {
	return slices.ContainsFunc(actions, func(a averaging.Action) bool { return a.Kind == averaging.Propose })
}
