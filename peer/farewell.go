package peer

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// A peer that leaves lets the exchanges in flight end, and then settles what broke off
// with those who are still there: it asks about the slices that it has in doubt, and
// stays for the questions of those who may have some with it.

const (
	// farewellEvery is the time between two attempts to settle.
	farewellEvery = 200 * time.Millisecond
	// farewellTries is after how many attempts a partner that does not answer is left
	// alone. What is in doubt with it is lost.
	farewellTries = 3
	// questionTime is within what time after an exchange broke off its partner asks.
	questionTime = 2 * time.Second
)

// settleUp settles what is in doubt with the members present, within a time.
func (p *Peer) settleUp(limit time.Duration) {
	ctx, cancel := context.WithTimeout(p.running, limit)
	defer cancel()
	ticker := time.NewTicker(farewellEvery)
	defer ticker.Stop()
	tries := make(map[seam.PeerID]int)
	for ctx.Err() == nil {
		p.sides.ledger.Expire(p.now()) // it finds out since when exchanges are over
		asked := p.askAll(ctx, tries)
		if asked == 0 && p.sides.ledger.Unasked(p.now(), questionTime) == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if waiting, _ := p.sides.ledger.InDoubt(); waiting > 0 {
		p.log.Info("leaving with slices in doubt; the partners do not answer", zap.Int("slices", waiting))
	}
}

// askAll asks all partners with whom something is in doubt, at once, and returns how
// many there were to ask.
func (p *Peer) askAll(ctx context.Context, tries map[seam.PeerID]int) (asked int) {
	var all sync.WaitGroup
	for _, partner := range p.sides.ledger.Partners() {
		id := seam.PeerID(partner)
		if tries[id] >= farewellTries || !p.flock.here(id) {
			continue
		}
		tries[id]++
		asked++
		all.Go(func() {
			if err := p.inquire(ctx, id); err != nil {
				p.log.Debug("a partner did not answer about a broken exchange", zap.String("peer", partner), zap.Error(err))
			}
		})
	}
	all.Wait()
	return asked
}

// settled waits until no exchange is under way.
func (u *underway) settled() {
	for {
		u.mu.Lock()
		left := make(chan struct{})
		if len(u.all) == 0 {
			u.mu.Unlock()
			return
		}
		u.left = left
		u.mu.Unlock()
		<-left
	}
}

// isClosing tells whether Close has begun.
func (p *Peer) isClosing() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}
