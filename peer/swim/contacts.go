package swim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// joinAtOnce is the number of peers that a Join contacts at the same time.
	joinAtOnce = 8
	// joinGrace is how long Join waits for the rest once one peer has answered.
	joinGrace = time.Second
)

// contacts are the conversations that this peer begins: with peers to join, lost members,
// and strangers.
type contacts struct {
	self    transport.PeerID
	book    *book
	carrier *nodeTransport
	list    *memberlist.Memberlist
	every   time.Duration // between two attempts to reach a member that was lost
	log     *zap.Logger

	stopping chan struct{} // closed when Close begins
	wg       sync.WaitGroup
	mu       sync.Mutex
	closing  bool
}

// Join implements transport.Membership. All peers are contacted at once; when one has
// answered, the others have a second more, and go on being contacted after Join
// returned. The local peer's own id is skipped.
func (c *contacts) Join(ctx context.Context, peers ...transport.PeerID) error {
	asked := make(map[transport.PeerID]struct{}, len(peers))
	for _, peer := range peers {
		if !validPeer(peer) {
			return fmt.Errorf("swim: join: %q is no peer id", peer)
		}
		if peer != c.self {
			asked[peer] = struct{}{}
		}
	}
	answers := make(chan error, len(asked))
	slots := make(chan struct{}, joinAtOnce)
	for peer := range asked {
		c.book.addSeed(peer)
		err := c.begin(func() {
			select {
			case slots <- struct{}{}:
				answers <- c.contact(peer)
				<-slots
			case <-c.stopping:
				answers <- transport.ErrClosed
			}
		})
		if err != nil {
			return fmt.Errorf("swim: join: %w", err)
		}
	}
	return c.awaitAnswers(ctx, answers, len(asked))
}

// begin runs f on a goroutine that Close waits for.
func (c *contacts) begin(f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return transport.ErrClosed
	}
	c.wg.Go(f)
	return nil
}

func (c *contacts) awaitAnswers(ctx context.Context, answers <-chan error, expected int) error {
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
func (c *contacts) contact(peer transport.PeerID) error {
	c.carrier.watch(peer)
	_, err := c.list.Join([]string{joinAddress(peer)})
	if cause := c.carrier.fault(peer); err != nil {
		return fmt.Errorf("%s: %w", peer.Short(), cmp.Or(cause, err))
	}
	return nil
}

// rejoinAtOnce is the number of lost peers that are contacted each time. With fewer, in a
// flock that has lost many peers, most of them permanently, those behind a partition would
// wait long for their turn.
const rejoinAtOnce = 4

// rejoin contacts peers that are not alive, a few each time: memberlist itself forgets
// them, and a partition would last for ever.
func (c *contacts) rejoin() {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.stopping:
			return
		}
		var asked sync.WaitGroup
		for _, peer := range c.book.lost(time.Now(), rejoinAtOnce) {
			asked.Go(func() {
				if err := c.contact(peer); err != nil {
					c.log.Debug("a lost member does not answer", zap.String("peer", string(peer)), zap.Error(err))
				}
			})
		}
		asked.Wait()
	}
}

// Compare implements transport.Courier: it is a push and pull of memberlist's, and
// makes the peer no seed.
func (c *contacts) Compare(ctx context.Context, peer transport.PeerID) error {
	answer := make(chan error, 1)
	if err := c.begin(func() { answer <- c.contact(peer) }); err != nil {
		return fmt.Errorf("swim: compare: %w", err)
	}
	return c.awaitAnswers(ctx, answer, 1)
}

// meetEvery is the time between two checks for strangers to dial.
const meetEvery = time.Second

// meetStrangers dials members that are new, and calls renew once in meetEvery, until the
// membership closes.
func (c *contacts) meetStrangers(renew func()) {
	ticker := time.NewTicker(meetEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.book.strangers:
		case <-ticker.C:
			renew()
			if ask, ok := c.book.turnedAway(); ok {
				_ = c.begin(func() { _ = c.contact(ask) }) // it is asked again at the next push/pull
			}
		case <-c.stopping:
			return
		}
		for _, peer := range c.book.toMeet(time.Now()) {
			c.carrier.introduce(peer)
		}
	}
}
