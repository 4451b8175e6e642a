package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Control says whom a peer obeys and what it tells the others of itself. The zero
// value obeys nobody and tells nothing: it takes no part in the run's topic, which over
// libp2p costs about 50 KiB and six goroutines for each connection, both ends together.
type Control struct {
	// Operator is the id of who may pause, resume and stop the run and change its
	// schedule, the same for all peers; see Operator, the type. Empty is nobody:
	// control messages are then refused.
	Operator seam.PeerID
	// Settings say what this peer was started with (model, data set): what an
	// announcement of the operator says otherwise is logged.
	Settings map[string]string
	// Heard is called for each message of the operator that was not known before, one
	// call at a time. It should return soon, and must not call Close.
	Heard func(Command)
	// Digests is the least time between two digests that the peer publishes; in large
	// flocks it is longer (DigestShare). Default: DefaultDigests under an operator, else
	// none. Negative: none.
	Digests time.Duration
}

const (
	// DefaultDigests is Control.Digests of peers that have an operator.
	DefaultDigests = 5 * time.Second
	// DigestShare is the time between two digests for each member: all members
	// together publish no more than one in this time, however many they are.
	DigestShare = 500 * time.Millisecond
	// MaxDigests bounds the members whose digests are kept.
	MaxDigests = 1024

	// topicPrefix and the run's name are the topic of its control messages.
	topicPrefix = "murmuration/1/"
	// askEvery is the time between two members that are asked what the operator has
	// said: what gossip has lost is made good by it.
	askEvery = 10 * time.Second
)

func (c Control) validate() error {
	var faults []error
	if len(c.Operator) > wire.MaxAuthor {
		faults = append(faults, fmt.Errorf("Operator has %d bytes: give a peer id", len(c.Operator)))
	}
	if c.Digests > 0 && c.Digests < digestSpacing {
		faults = append(faults, fmt.Errorf("Digests is %s: want at least %s, or less than 0 for none", c.Digests, digestSpacing))
	}
	return errors.Join(faults...)
}

// control is what a peer knows of its operator's will and of the others' digests.
type control struct {
	peer   *Peer
	config Control
	log    *zap.Logger
	topic  seam.Topic // nil where the transport has none
	counts controlCounts
	force  atomic.Pointer[inForce]
	paused atomic.Bool
	ended  atomic.Pointer[string] // why the run was stopped

	samples atomic.Uint64 // that gradients were computed from
	word    sync.Once     // the first message that nobody here obeys is logged

	hearing sync.Mutex // held while Control.Heard runs

	mu       sync.Mutex
	standing standing
	gate     chan struct{} // closed when trainers may go on; nil while they may
	digests  map[seam.PeerID]Digest
	sent     digestSent
	asked    int // members asked so far
}

func newControl(p *Peer, config Config) *control {
	c := &control{
		peer: p, config: config.Network.Control, log: p.log,
		digests: make(map[seam.PeerID]Digest),
	}
	switch {
	case c.config.Digests == 0 && c.config.Operator == "":
		c.config.Digests = -1
	case c.config.Digests == 0:
		c.config.Digests = DefaultDigests
	}
	c.force.Store(&inForce{schedule: config.Schedule, work: config.Work, pace: config.Exchange.Pace, next: math.MaxUint64})
	return c
}

// start takes part in the run's topic. Where there is none, or it fails, members
// that are asked tell what the operator has said.
func (c *control) start() {
	if c.config.Operator == "" && c.config.Digests < 0 {
		return
	}
	if broadcaster, ok := c.peer.transport.(seam.Broadcaster); ok {
		topic, err := broadcaster.Topic(topicPrefix+c.peer.config.Run, nil, c.hear)
		if err != nil {
			c.log.Warn("no topic for control messages: they come from members that are asked, which is slower", zap.Error(err))
		} else {
			c.topic = topic
		}
	}
	c.peer.background.Go(c.run)
}

// run publishes digests and asks members, until the peer stops.
func (c *control) run() {
	if c.topic != nil {
		defer func() {
			if err := c.topic.Close(); err != nil {
				c.log.Debug("leaving the topic of control messages", zap.Error(err))
			}
		}()
	}
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	digest := time.NewTimer(c.firstDigest())
	defer digest.Stop()
	for {
		select {
		case <-c.peer.running.Done():
			return
		case <-digest.C:
			c.publishDigest()
			digest.Reset(c.digestEvery())
		case <-ask.C:
			if c.config.Operator != "" {
				c.askNext()
			}
		}
	}
}

// askNext asks one member after the other.
func (c *control) askNext() {
	members := c.peer.membership.Members()
	for range members {
		c.asked++
		member := members[c.asked%len(members)].Peer
		if member == c.peer.Self() {
			continue
		}
		ctx, cancel := context.WithTimeout(c.peer.running, c.peer.config.Exchange.Stall)
		defer cancel()
		if err := c.ask(ctx, member); err != nil {
			c.log.Debug("asking a member what the operator has said", zap.String("peer", string(member)), zap.Error(err))
		}
		return
	}
}

// publish spreads a message on the topic.
func (c *control) publish(message []byte) {
	if c.topic == nil {
		return
	}
	if err := c.topic.Publish(message); err != nil {
		c.log.Debug("publishing a control message", zap.Error(err))
	}
}

// pass waits while trainers are held.
func (c *control) pass(ctx context.Context) error {
	if !c.paused.Load() {
		return nil
	}
	for {
		c.mu.Lock()
		gate := c.gate
		c.mu.Unlock()
		if gate == nil {
			c.peer.trainer.rested()
			return nil
		}
		select {
		case <-gate:
		case <-c.peer.closing:
			return ErrClosed
		case <-c.peer.arrival.barred:
			return c.peer.arrival.fault
		case <-ctx.Done():
			return fmt.Errorf("the operator has paused the run: %w", ctx.Err())
		}
	}
}

// rested notes that the trainer was held on purpose: the time is none of a step.
func (t *trainer) rested() {
	t.last = time.Time{}
	t.resumed = time.Now()
}

// release lets everybody go on: the run is over.
func (c *control) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold()
}

// stopped tells whether the operator has ended the run.
func (c *control) stopped() bool { return c.ended.Load() != nil }

// runOver is ErrRunOver, with the reason if there is another than the work done.
func (c *control) runOver() error {
	why := c.ended.Load()
	switch {
	case why == nil:
		return ErrRunOver
	case *why == "":
		return fmt.Errorf("%w: the operator has stopped it", ErrRunOver)
	}
	return fmt.Errorf("%w: the operator has stopped it: %s", ErrRunOver, *why)
}

// inForce is what holds at a step of the flock.
type inForce struct {
	schedule Schedule
	work     Work
	pace     averaging.Pace
	next     uint64 // the flock's step at which something else does
}

// at is what holds at a step of the flock.
func (c *control) at(total uint64) *inForce {
	f := c.force.Load()
	if total < f.next {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settle(total)
}

// settle finds what holds at a step of the flock. The lock is held.
func (c *control) settle(total uint64) *inForce {
	f := c.standing.plan(total, c.begun())
	c.force.Store(&f)
	return &f
}

// begun is what holds without orders.
func (c *control) begun() inForce {
	return inForce{
		schedule: c.peer.config.Schedule, work: c.peer.config.Work, pace: c.peer.config.Exchange.Pace, next: math.MaxUint64,
	}
}

// reached is what holds where another peer says that the flock has done a share of its
// work. Own is this peer's count, which may differ a little.
func (c *control) reached(progress float64, own, participants uint64) inForce {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing.reached(progress, own, participants, c.begun())
}

// changePace gives the machine the pace that holds now, if it can be given one.
func (l *loop) changePace() {
	p := l.peer
	pace := p.control.at(p.flock.total(p.counters.steps.Load())).pace
	if pace == l.pace {
		return
	}
	l.pace = pace
	machine, ok := l.machine.(interface{ SetPace(averaging.Pace) error })
	if !ok {
		l.log.Warn("the operator sets another pace, which this machine does not take")
		return
	}
	if err := machine.SetPace(pace); err != nil {
		l.log.Warn("the operator sets a pace that cannot be", zap.Error(err))
	}
}
