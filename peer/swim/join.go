package swim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// joinAtOnce is the number of peers that a Join contacts at the same time.
	joinAtOnce = 8
	// joinGrace is how long Join waits for the rest once one peer has answered.
	joinGrace = time.Second
)

// Join implements seam.Membership. All peers are contacted at once; when one has
// answered, the others have a second more, and go on being contacted after Join
// returned. The local peer's own id is skipped.
func (m *Membership) Join(ctx context.Context, peers ...seam.PeerID) error {
	asked := make(map[seam.PeerID]struct{}, len(peers))
	for _, peer := range peers {
		if !validPeer(peer) {
			return fmt.Errorf("swim: join: %q is no peer id", peer)
		}
		if peer != m.transport.Self() {
			asked[peer] = struct{}{}
		}
	}
	answers := make(chan error, len(asked))
	slots := make(chan struct{}, joinAtOnce)
	for peer := range asked {
		m.book.addSeed(peer)
		err := m.begin(func() {
			select {
			case slots <- struct{}{}:
				answers <- m.contact(peer)
				<-slots
			case <-m.stopping:
				answers <- seam.ErrClosed
			}
		})
		if err != nil {
			return fmt.Errorf("swim: join: %w", err)
		}
	}
	return m.awaitAnswers(ctx, answers, len(asked))
}

// begin runs f on a goroutine that Close waits for.
func (m *Membership) begin(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return seam.ErrClosed
	}
	m.wg.Go(f)
	return nil
}

func (m *Membership) awaitAnswers(ctx context.Context, answers <-chan error, expected int) error {
	var faults []error
	var grace <-chan time.Time
	for answered := 0; answered+len(faults) < expected; {
		select {
		case err := <-answers:
			if err != nil {
				faults = append(faults, err)
				continue
			}
			answered++
			if grace == nil {
				timer := time.NewTimer(joinGrace)
				defer timer.Stop()
				grace = timer.C
			}
		case <-grace:
			return nil
		case <-ctx.Done():
			if grace != nil {
				return nil
			}
			return fmt.Errorf("swim: join: %w", errors.Join(append(faults, ctx.Err())...))
		}
	}
	if grace == nil && len(faults) > 0 {
		return fmt.Errorf("swim: join: %w", errors.Join(faults...))
	}
	return nil
}

// contact exchanges states with a peer; it takes a few times syncTimeout at most.
func (m *Membership) contact(peer seam.PeerID) error {
	m.carrier.watch(peer)
	_, err := m.list.Join([]string{joinAddress(peer)})
	cause := m.carrier.fault(peer)
	switch {
	case err == nil:
		return nil
	case cause != nil:
		return fmt.Errorf("%s: %w", peer.Short(), cause)
	}
	return fmt.Errorf("%s: %w", peer.Short(), err)
}

// rejoinAtOnce is the number of lost peers that are contacted each time. In a flock
// that has lost many, most of them for good, those behind a partition would else have
// their turn late.
const rejoinAtOnce = 4

// rejoin returns to peers that are not believed alive, a few each time: memberlist
// itself forgets them, and a partition would last for ever.
func (m *Membership) rejoin() {
	defer m.wg.Done()
	ticker := time.NewTicker(m.rejoinEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-m.stopping:
			return
		}
		var asked sync.WaitGroup
		for _, peer := range m.book.lost(time.Now(), rejoinAtOnce) {
			asked.Go(func() {
				if err := m.contact(peer); err != nil {
					m.log.Debug("a lost member does not answer", zap.String("peer", string(peer)), zap.Error(err))
				}
			})
		}
		asked.Wait()
	}
}
