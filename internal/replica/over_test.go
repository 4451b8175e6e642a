package replica

import "testing"

// TestOverMissesNothingThatComesBack: a part whose answer says that it has to be sent again
// is never overlooked, neither by who sends while the answer comes, nor by who receives while
// it is sent.
func TestOverMissesNothingThatComesBack(t *testing.T) {
	const rounds = 20_000
	for name, c := range map[string]struct {
		begin, change func(l *InitiatorLane)
		ended         func(l *InitiatorLane) bool
	}{
		"the answer comes": {
			func(l *InitiatorLane) { l.coded.Store(1) },
			func(l *InitiatorLane) { l.retransmits.push(inFlight{}); l.applied.Store(1) },
			func(l *InitiatorLane) bool { return l.applied.Load() == 1 },
		},
		"it is sent again": {
			func(l *InitiatorLane) { l.coded.Store(1); l.applied.Store(1); l.retransmits.push(inFlight{}) },
			func(l *InitiatorLane) { l.coded.Store(2); l.retransmits.pop() },
			func(l *InitiatorLane) bool { return l.retransmits.empty() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			lanes, done := make(chan *InitiatorLane), make(chan struct{})
			go func() {
				for l := range lanes {
					c.change(l)
					done <- struct{}{}
				}
			}()
			defer close(lanes)
			for range rounds {
				l := &InitiatorLane{}
				l.retransmits.begin(1)
				l.drained.Store(true)
				c.begin(l)
				lanes <- l
				missed := false
				for !c.ended(l) {
					missed = missed || l.Over()
				}
				missed = missed || l.Over()
				<-done
				if missed {
					t.Fatal("the lane is taken to be over")
				}
			}
		})
	}
}
