package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// JoinPatience is how long the first Step waits for anybody to answer before the
// peer trains alone.
const JoinPatience = 3 * time.Second

// Bounds of the attempts to join.
const (
	joinTimeout   = 10 * time.Second // for one address
	firstJoinWait = 100 * time.Millisecond
	maxJoinWait   = 5 * time.Second
	// patienceLook is the time between two looks, after JoinPatience, at whether somebody
	// is still being spoken to.
	patienceLook = 250 * time.Millisecond
	// A refusal by a process whose peer may be only starting is asked again every
	// perhapsWait, and believed after perhapsPatience.
	perhapsWait     = 250 * time.Millisecond
	perhapsPatience = 2 * time.Second
	// joinReminder is how many fruitless rounds pass between two warnings.
	joinReminder = 6
)

// The phases of an arrival.
const (
	seeking  uint32 = iota // no member has answered yet
	fetching               // the flock's model is on its way
	here                   // the trainer may train and others may exchange
)

// arrival is how far a peer has come into its run.
type arrival struct {
	mu       sync.Mutex // held while phase and gate change
	phase    atomic.Uint32
	gate     chan struct{} // closed while the phase is here
	reached  atomic.Bool   // a member has let this peer in, or none was asked
	speaking atomic.Int32  // to processes that have answered and may let this peer in
	alone    atomic.Bool   // training has begun because nobody answered
	replaced replaced
	barred   chan struct{} // closed when every address has refused for good
	once     sync.Once     // closes barred
	fault    error         // why; set before barred is closed
	news     chan struct{} // capacity 1: the membership has changed
}

func newArrival() arrival {
	return arrival{gate: make(chan struct{}), barred: make(chan struct{}), news: make(chan struct{}, 1)}
}

func (a *arrival) open() bool { return a.phase.Load() == here }

func (a *arrival) has() bool { return a.reached.Load() }

// advance goes from one phase to the next, unless another goroutine has gone
// elsewhere from there.
func (a *arrival) advance(from, to uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase.Load() != from {
		return false
	}
	a.phase.Store(to)
	switch {
	case to == here:
		close(a.gate)
	case from == here:
		a.gate = make(chan struct{})
	}
	return true
}

// entrance is closed once the phase is here.
func (a *arrival) entrance() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gate
}

// hold keeps the trainer waiting for the flock's model: before its first step, or between
// two if it began because nobody answered. It returns the phase to go back to.
func (a *arrival) hold() (from uint32, held bool) {
	if a.advance(seeking, fetching) {
		return seeking, true
	}
	return here, a.alone.Load() && a.advance(here, fetching)
}

// arrive waits for joining, at most JoinPatience if nobody answers. Whoever has answered
// is waited for as long as the conversation lasts.
func (p *Peer) arrive(ctx context.Context) error {
	patience := time.NewTimer(JoinPatience)
	defer patience.Stop()
	for {
		select {
		case <-p.arrival.entrance():
			return nil
		case <-p.arrival.barred:
			return p.arrival.fault
		case <-p.closing:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("joining run %q: %w", p.config.Run, ctx.Err())
		case <-patience.C:
			if p.arrival.speaking.Load() == 0 && p.arrival.advance(seeking, here) {
				p.arrival.alone.Store(true)
				p.log.Warn("no member answers: training alone, and trying further", zap.Strings("join", p.config.Join))
			}
			patience.Reset(patienceLook)
		}
	}
}

// join reaches the addresses to join, again and again until each has answered, and
// whenever this peer is alone after that.
func (p *Peer) join() {
	if len(p.config.Join) == 0 {
		p.arrival.reached.Store(true)
		p.arrival.advance(seeking, here)
		return
	}
	pending := append([]string(nil), p.config.Join...)
	wait, began := firstJoinWait, time.Now()
	for round := 0; ; round++ {
		var refused error
		pending, refused = p.tryEach(pending, round, time.Since(began) >= perhapsPatience)
		if len(pending) == 0 {
			p.concludeJoin(refused)
			p.rejoin()
			return
		}
		if refused != nil {
			wait = min(wait, perhapsWait)
		}
		select {
		case <-p.running.Done():
			return
		case <-p.closing:
			return
		case <-time.After(wait):
			wait = min(2*wait, maxJoinWait)
		}
	}
}

// concludeJoin ends joining when no address is left to ask: barred if all that
// answered have refused; alone, for now, if all were this peer's own.
func (p *Peer) concludeJoin(refused error) {
	if p.arrival.has() {
		return
	}
	if refused != nil {
		p.bar(refused)
		return
	}
	p.arrival.reached.Store(true)
	p.arrival.advance(seeking, here)
}

// bar ends an arrival that nobody will have.
func (p *Peer) bar(refused error) {
	p.arrival.once.Do(func() {
		p.arrival.fault = fmt.Errorf("joining run %q: %w", p.config.Run, refused)
		close(p.arrival.barred)
	})
}

// tryEach asks all addresses at once, so that one that is silent delays no other.
// It returns those to be asked again, with a refusal if there was one. A refusal
// that may pass is final only if believe says so.
func (p *Peer) tryEach(addresses []string, round int, believe bool) (again []string, refused error) {
	faults := make([]error, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() { faults[i] = p.contact(address) })
	}
	asked.Wait()
	for i, address := range addresses {
		err := faults[i]
		var final *RefusedError
		switch {
		case err == nil:
			continue
		case errors.As(err, &final):
			refused = err
			if believe || !final.perhaps {
				p.log.Error("refused by the peer to join", zap.String("address", address), zap.Error(err))
				continue
			}
		case round%joinReminder == 0 && !p.arrival.has() && p.running.Err() == nil:
			p.log.Warn("cannot join yet; trying further. Check that a peer of this run listens there",
				zap.String("address", address), zap.Error(err))
		}
		again = append(again, address)
	}
	return again, refused
}

// contact joins by one address.
func (p *Peer) contact(address string) error {
	ctx, cancel := context.WithTimeout(p.running, joinTimeout)
	defer cancel()
	id, err := p.transport.Connect(ctx, address)
	if errors.Is(err, seam.ErrSelf) || err == nil && id == p.Self() {
		return nil // all peers may be given one list of addresses
	}
	if err != nil {
		return err
	}
	p.arrival.speaking.Add(1)
	defer p.arrival.speaking.Add(-1)
	return p.enter(ctx, id)
}

// enter joins by a member, and has the flock's model copied if there is need.
func (p *Peer) enter(ctx context.Context, id seam.PeerID) error {
	welcome, err := p.hello(ctx, id)
	if err != nil {
		return err
	}
	var from uint32
	held := false
	if welcome.FlockSteps > 0 {
		from, held = p.arrival.hold() // now, so that nobody exchanges with an old model
	}
	if err := p.membership.Join(ctx, id); err != nil {
		if held {
			p.arrival.advance(fetching, from)
		}
		return fmt.Errorf("joining the membership through %s: %w", id, err)
	}
	if err := p.control.ask(ctx, id); err != nil {
		p.log.Warn("could not ask what the operator has said; trying others later", zap.String("peer", string(id)), zap.Error(err))
	}
	p.arrival.reached.Store(true)
	p.notify(notice{joined: true})
	p.log.Info("joined", zap.String("through", string(id)), zap.Uint64("flock_steps", welcome.FlockSteps))
	p.catchUp(id, welcome, from, held)
	return nil
}

// catchUp brings a newcomer up to a flock that has trained already, and opens the
// way to training. Who trained alone, because nobody answered in time, is a newcomer too
// if its model is behind.
func (p *Peer) catchUp(donor seam.PeerID, welcome wire.Welcome, from uint32, held bool) {
	if !held && !p.trained(welcome) {
		p.arrival.advance(seeking, here)
		return
	}
	if !held {
		if from, held = p.arrival.hold(); !held {
			return // training has begun and goes on, or another contact sees to it
		}
	}
	late := from == here
	p.arrival.alone.Store(false)
	if !late || p.behind(welcome) {
		if err := p.settleIn(donor, p.words(donor, welcome), late); err != nil {
			p.bar(err)
			return
		}
	}
	p.arrival.advance(fetching, here)
}
