package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// alarmed notes for which exchanges timers have fired.
type alarmed struct {
	collective.Machine
	fired []averaging.ExchangeID
}

func (a *alarmed) Decide(_ time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	a.fired = append(a.fired, e.Exchange)
	return actions
}

// TestReplacedTimersFireNoMore: of those of a kind the last, also of several that are due at one
// moment; the others happen in vain, and have cost no memory but their places in the queue.
func TestReplacedTimersFireNoMore(t *testing.T) {
	machine := &alarmed{}
	w := &World{}
	p := &peer{world: w}
	p.driver = driver{peer: p, machine: machine}
	set := func(kind averaging.TimerKind, id averaging.ExchangeID, after time.Duration) {
		p.driver.setTimer(averaging.Action{Kind: averaging.SetTimer, Timer: kind, Exchange: id, After: after})
	}
	set(averaging.OutboundDeadline, 1, time.Second)
	set(averaging.OutboundDeadline, 2, 3*time.Second)
	set(averaging.OutboundDeadline, 3, 2*time.Second)
	set(averaging.InboundDeadline, 4, 2*time.Second)
	set(averaging.OutboundDeadline, 5, 2*time.Second)
	if events := w.Run(4 * time.Second); events != 5 || !slices.Equal(machine.fired, []averaging.ExchangeID{4, 5}) {
		t.Errorf("%d events, timers of exchanges %d fire", events, machine.fired)
	}
	if allocs := testing.AllocsPerRun(100, func() { set(averaging.InboundDeadline, 6, time.Second); w.Run(w.Now() + time.Second) }); allocs > 0 {
		t.Errorf("a timer allocates %g times", allocs)
	}
}
