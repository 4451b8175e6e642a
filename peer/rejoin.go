package peer

import (
	"time"

	"go.uber.org/zap"
)

// rejoinEvery is the time between two visits of a peer that is alone to the addresses
// that it was given to join.
const rejoinEvery = 10 * time.Second

// rejoin returns to the addresses to join whenever this peer sees nobody. The
// membership returns to the members that it has met; an address may be that of
// another by then, under another identity.
func (p *Peer) rejoin() {
	ticker := time.NewTicker(rejoinEvery)
	defer ticker.Stop()
	for round := 1; ; round++ {
		select {
		case <-p.running.Done():
			return
		case <-p.closing:
			return
		case <-p.arrival.barred:
			return
		case <-ticker.C:
		}
		if present, _ := p.flock.members(); present > 1 || p.counters.over.Load() {
			continue
		}
		if again, _ := p.tryEach(p.config.Join, round, true); len(again) < len(p.config.Join) {
			p.log.Info("alone: went back to the addresses to join", zap.Int("answered", len(p.config.Join)-len(again)))
		}
	}
}
