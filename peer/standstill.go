package peer

import "time"

// pulseEvery is how often a peer sees that its process runs. What is late by less than
// that is the scheduler's.
const pulseEvery = 500 * time.Millisecond

// pulse notices from beats that came late that the process stood still: it was stopped, or
// had no processor. A trainer that computes a gradient just then cannot tell that from a
// gradient that takes long.
type pulse struct{ last time.Time }

// beat notes a beat and returns for how long the process stood still before it, 0 if it
// did not.
func (p *pulse) beat(now time.Time) (stood time.Duration) {
	if late := now.Sub(p.last) - pulseEvery; !p.last.IsZero() && late >= pulseEvery {
		stood = late
	}
	p.last = now
	return stood
}

// watchPulse counts the time for which the process stood still as one for which the trainer
// was kept from its work, once it has begun and while there is any.
func (p *Peer) watchPulse() {
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	for beats := (pulse{time.Now()}); ; {
		select {
		case <-p.running.Done():
			return
		case <-ticker.C:
			stood := beats.beat(time.Now())
			if p.counters.steps.Load() > p.counters.resumed && !p.counters.over.Load() {
				p.counters.hold(stood)
			}
		}
	}
}
