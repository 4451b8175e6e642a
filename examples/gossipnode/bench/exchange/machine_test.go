package exchange

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// obedient is a machine that proposes whenever a step is done, unless it has an
// exchange under way.
type obedient struct{ flying bool }

func (m *obedient) Handle(_ time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	switch e.Kind {
	case averaging.StepDone:
		actions = append(actions, averaging.Action{Kind: averaging.Proceed})
		if !m.flying {
			m.flying = true
			actions = append(actions, averaging.Action{Kind: averaging.Propose})
		}
	case averaging.Finished, averaging.Refused, averaging.Failed:
		m.flying = false
	}
	return actions
}

// TestImpatient shows that as many exchanges follow a step as were asked for, that
// refusals do not count as one, and that only the real step lets the trainer go on.
func TestImpatient(t *testing.T) {
	m := &impatient{Machine: &obedient{}}
	handle := func(kind averaging.EventKind) (proposed, proceed int) {
		for _, a := range m.Handle(0, averaging.Event{Kind: kind}, nil) {
			switch a.Kind {
			case averaging.Propose:
				proposed++
			case averaging.Proceed:
				proceed++
			}
		}
		return proposed, proceed
	}
	m.arm(2)
	for i, c := range []struct {
		kind              averaging.EventKind
		proposed, proceed int
		flying            bool
	}{
		{averaging.StepDone, 1, 1, true},
		{averaging.Accepted, 0, 0, true},
		{averaging.Finished, 1, 0, true},
		{averaging.Refused, 1, 0, true},
		{averaging.Finished, 1, 0, true},
		{averaging.Finished, 0, 0, false},
		{averaging.StepDone, 1, 1, true},
		{averaging.Failed, 0, 0, false},
	} {
		proposed, proceed := handle(c.kind)
		if proposed != c.proposed || proceed != c.proceed || m.flying.Load() != c.flying {
			t.Errorf("event %d: %d proposals, %d times proceed, flying %v; want %+v", i, proposed, proceed, m.flying.Load(), c)
		}
	}
	if m.start.Load() == nil || m.refused.Load() != 1 {
		t.Errorf("beginning %v, %d refused", m.start.Load(), m.refused.Load())
	}
	inbound := m.Handle(0, averaging.Event{Kind: averaging.Finished, Inbound: true}, nil)
	if len(inbound) > 0 {
		t.Errorf("an inbound exchange is followed by %v", inbound)
	}
}
