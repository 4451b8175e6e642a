package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of copying a model. There is none on the whole time of a copy: on a slow
// link that is long, and each frame has its own.
const (
	// copyRetry is the wait before a donor that was busy, or went, is asked again.
	copyRetry = 500 * time.Millisecond
	// copyPatience is for how long no member may have answered before a newcomer
	// gives the flock's model up.
	copyPatience = 10 * time.Second
	// slowDonor: a donor that has owed the next slice for so long is asked beside others, not
	// instead: those that take their time together would keep the model from a newcomer.
	slowDonor = time.Second
	// copyReminder is the time between two warnings that all donors are busy.
	copyReminder = 30 * time.Second
)

// errNobody: no member that could give the flock's model answers.
var errNobody = errors.New("no member can give the flock's model")

// copying is a copy of the flock's model under way at a newcomer. It outlives its
// donors: what has been verified stays.
type copying struct {
	peer   *Peer
	pool   *slicePool
	values tensor.Vector
	seed   seam.PeerID // the member that let this peer in
	began  time.Time

	mu     sync.Mutex
	donors map[seam.PeerID]*prospect
	words  []uint64 // of the flock's steps, by those who were asked
	heard  time.Time
	latest error // why the last donor failed
	liars  int
}

// prospect is what a newcomer knows of a possible donor.
type prospect struct {
	drawing  bool
	since    time.Time // when that began
	banned   bool
	after    time.Time // when it may be asked again
	manifest wire.Manifest
}

// copyModel copies the flock's model from several members at once. Nothing is
// changed unless all has arrived and been verified. It is late if training has begun.
func (p *Peer) copyModel(seed seam.PeerID, words []uint64, late bool) error {
	c := &copying{
		peer: p, seed: seed, words: words, began: time.Now(), heard: time.Now(),
		values: make(tensor.Vector, p.replica.SharedLen()), donors: make(map[seam.PeerID]*prospect),
	}
	c.pool = newSlicePool(c.slices())
	if err := c.run(); err != nil {
		return err
	}
	if err := p.restore(c.values, late); err != nil {
		return fmt.Errorf("copying the flock's model: %w", err)
	}
	c.conclude()
	return nil
}

// slices is their number.
func (c *copying) slices() int { return slicesOf(len(c.values), c.peer.replica.SliceLen()) }

// at is the place of a slice.
func (c *copying) at(slice int) tensor.Vector {
	n := c.peer.replica.SliceLen()
	return c.values[slice*n : min((slice+1)*n, len(c.values))]
}

// run draws from donors until every slice is here.
func (c *copying) run() error {
	ctx, cancel := context.WithCancel(c.peer.exchanges)
	var drawing sync.WaitGroup
	defer drawing.Wait()
	defer cancel()
	ended := make(chan struct{}, 1)
	ticker := time.NewTicker(copyRetry)
	defer ticker.Stop()
	reminded := c.began
	for !c.pool.done() {
		for _, donor := range c.recruits() {
			drawing.Go(func() {
				c.part(ctx, donor, c.draw(ctx, donor))
				select {
				case ended <- struct{}{}:
				default: // one look at the donors does for several ends
				}
			})
		}
		select {
		case <-ended:
		case <-c.peer.arrival.news: // members that were not known may give too
		case <-ticker.C:
		case <-c.peer.running.Done():
			return ErrClosed
		case <-c.peer.closing:
			return ErrClosed
		}
		if err := c.hopeless(); err != nil {
			return err
		}
		if time.Since(reminded) > copyReminder {
			reminded = time.Now()
			c.peer.log.Warn("still copying the flock's model", zap.Int("slices_left", c.pool.remaining()), zap.NamedError("last", c.reason()))
		}
	}
	return nil
}

// recruits chooses the donors to ask next: as many as are missing.
func (c *copying) recruits() (chosen []seam.PeerID) {
	members := c.peer.membership.Members()
	c.mu.Lock()
	defer c.mu.Unlock()
	missing, most, now := c.peer.config.Network.State.Donors, MaxDonors, time.Now()
	for id, d := range c.donors {
		if d.drawing {
			most--
			if now.Sub(d.since) < slowDonor || !c.pool.waitsFor(id, now) {
				missing--
			}
		}
	}
	missing = min(missing, most)
	for _, id := range c.candidates(members) {
		if missing <= 0 {
			break
		}
		d := c.donors[id]
		if d == nil {
			d = &prospect{}
			c.donors[id] = d
		}
		if d.drawing || d.banned || now.Before(d.after) || c.peer.quarantine.left(id, now) > 0 {
			continue
		}
		d.drawing, d.since = true, now
		missing--
		chosen = append(chosen, id)
	}
	return chosen
}

// candidates are the members that have a model to give, and the one that let this
// peer in, in an order of this peer's own, so that newcomers spread over donors.
// The lock is held.
func (c *copying) candidates(members []seam.Record) []seam.PeerID {
	ids := []seam.PeerID{c.seed}
	for _, m := range members {
		if m.Peer != c.peer.Self() && m.Peer != c.seed && plus(m.Head, m.Steps) > 0 {
			ids = append(ids, m.Peer)
		}
	}
	self := fingerprint(c.peer.Self())
	slices.SortFunc(ids, func(a, b seam.PeerID) int {
		x, y := mixed(self^fingerprint(a)), mixed(self^fingerprint(b))
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return ids
}

// mixed spreads what differs between two numbers over all of their bits: a step of
// SplitMix64.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// met notes the manifest of a donor that has been checked.
func (c *copying) met(donor seam.PeerID, m wire.Manifest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.donors[donor].manifest = m
	c.heard = time.Now()
}

// part notes how a donor's part has ended: one that lied is reported and never asked
// again, and what it gave is asked of others.
func (c *copying) part(ctx context.Context, donor seam.PeerID, err error) {
	offence, banned := c.judge(donor, err)
	c.mu.Lock()
	d := c.donors[donor]
	d.drawing, d.banned, d.after = false, banned, time.Now().Add(copyRetry)
	if c.alive(err) {
		c.heard = time.Now()
	}
	if err != nil && ctx.Err() == nil {
		c.latest = fmt.Errorf("%s: %w", donor, err)
	}
	if offence {
		c.liars++
		d.manifest = wire.Manifest{}
	}
	c.mu.Unlock()
	switch {
	case err == nil || ctx.Err() != nil:
	case offence:
		c.pool.disown(donor)
		c.peer.condemn(donor, err)
	case banned:
		c.peer.log.Warn("a member's model cannot be copied; it is not asked again", zap.String("peer", string(donor)), zap.Error(err))
	default:
		c.peer.log.Info("a donor's part broke off; its slices are asked of others", zap.String("peer", string(donor)), zap.Error(err))
	}
}

// judge tells whether a donor did what no honest one does, and whether it is of no
// use any more.
func (c *copying) judge(donor seam.PeerID, err error) (offence, banned bool) {
	if fault, ok := errors.AsType[*DonorError](err); ok {
		return fault.lie(), true
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return false, r.Reason.Permanent()
	}
	reason, theirs := wire.ReasonFor(err)
	return theirs && reason == wire.ReasonProtocol, theirs
}

// alive tells whether an end shows that a donor will have something to give later:
// it was only busy.
func (c *copying) alive(err error) bool {
	if err == nil {
		return true
	}
	r, ok := errors.AsType[*refusal](err)
	return ok && (r.Reason == wire.ReasonBusy || r.Reason == wire.ReasonQuarantine)
}

// hopeless tells why a newcomer should wait no longer: errNobody if no member has
// answered for a long time, or all that did are newcomers themselves.
func (c *copying) hopeless() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	banned := false
	for _, d := range c.donors {
		if d.drawing && d.manifest.Values > 0 {
			return nil
		}
		banned = banned || d.banned
	}
	if time.Since(c.heard) < copyPatience {
		return nil
	}
	if banned {
		return fmt.Errorf("no member that answers has a state that can be used; join by another address: %w", c.latest)
	}
	if c.latest == nil {
		return errNobody
	}
	return fmt.Errorf("%w: %w", errNobody, c.latest)
}

func (c *copying) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// conclude takes over what the donors say of the state: the median of their steps,
// and of all words on the flock's.
func (c *copying) conclude() {
	p := c.peer
	given := c.pool.sources()
	c.mu.Lock()
	var ages []uint64
	for id := range given {
		ages = append(ages, c.donors[id].manifest.Steps)
	}
	for _, d := range c.donors {
		if d.manifest.Values > 0 {
			c.words = append(c.words, d.manifest.FlockSteps)
		}
	}
	liars := c.liars
	c.mu.Unlock()
	total := lowerMedian(c.words)
	p.ageTo(min(lowerMedian(ages), total, p.credibleAge())) // or a donor's lie would be told on in good faith
	p.flock.inherit(total, p.counters.resumed, p.Self(), p.membership.Members())
	took := time.Since(c.began)
	p.copied.Store(&StateStats{Donors: len(given), Slices: c.slices(), Took: took, Again: c.pool.again, Liars: liars})
	p.log.Info("copied the flock's model", zap.Int("donors", len(given)), zap.Int("values", len(c.values)),
		zap.Int("slices", c.slices()), zap.Uint64("asked_again", c.pool.again), zap.Duration("took", took),
		zap.Uint64("steps", p.age()), zap.Uint64("flock_steps", total))
}
