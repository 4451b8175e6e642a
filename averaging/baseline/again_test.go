package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// TestATrainerThatAsksAgainKeepsItsSum: where one was cancelled and asks again when all have the sum, or make the step of it, its
// peer makes that step too, and has the parameters of the next round.
func TestATrainerThatAsksAgainKeepsItsSum(t *testing.T) {
	for _, when := range []memberState{summed, updating} {
		d, m := drivenCoordinator(t, true)
		version := m.version
		updates, proceeds := 0, 0
		handle := func(e collective.Event) {
			for _, a := range d.handle(e) {
				switch a.Kind {
				case collective.Update:
					updates++
				case averaging.Proceed:
					proceeds++
				}
			}
		}
		asksAgain := func() {
			handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
		}
		handle(collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: "a"}, Message: isAt(unknownVersion)}) // b begins to copy to a
		copying := m.Out[0]
		m.Begin(d.now, nil)
		m.sum.Cancel()
		m.Summed(collective.Summed{Attempt: 1 << 16, Value: 0.5})
		m.End()
		if when == summed {
			asksAgain()
		}
		handle(collective.Event{Event: averaging.Event{Kind: averaging.Finished, Peer: "a", Exchange: copying.ID}})
		if when == updating {
			asksAgain()
		}
		handle(collective.Event{Event: averaging.Event{Kind: collective.Updated}})
		if updates != 1 || proceeds != 1 || m.version != version+1 {
			t.Errorf("in state %d: %d updates, %d times on, version %d after %d", when, updates, proceeds, m.version, version)
		}
	}
}
