// Package copying copies the flock's model to a joiner from several members at once, slice
// by slice with hashes. A copy survives the loss of its state servers: verified slices
// stay. See docs/design/015.
package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of copying a model. The total time has no bound, since it is long on a slow link;
// each frame has one.
const (
	// Servers is from how many members a joiner copies at once.
	Donors = 3
	// maxDonors bounds them where some are slow.
	maxDonors = 8
	// retry is the wait before a state server that was busy, or has gone, is asked again.
	retry = 500 * time.Millisecond
	// timeout is how long a joiner waits without an answer of any member before it gives up
	// the flock's model.
	timeout = 10 * time.Second
	// slowDonor: after a state server has owed the next slice for so long, another server is asked too, in
	// addition to the usual number: otherwise several slow servers together could keep the model from a joiner.
	slowDonor = time.Second
	// reminder is the time between two warnings that a copy is still under way.
	reminder = 30 * time.Second
)

// ErrNobody: no member that could give the flock's model answers.
var ErrNobody = errors.New("no member can give the flock's model")

// errNotReached: a state server could not be dialled within Config.Stall.
var errNotReached = fmt.Errorf("it could not be reached in time: %w", context.DeadlineExceeded)

// Config is what is copied, and what the copy needs from its peer.
type Config struct {
	Run    string
	Layout [wire.HashSize]byte
	// Values are how many values the model shares, in slices of SliceLen.
	Values, SliceLen int
	Stall            time.Duration // bounds the dialling of a state server
	Identity         transport.Identity
	Membership       transport.Membership
	Gives            func(transport.Record) bool // whether a member trains the same parameters
	News             <-chan struct{}             // signals that the members may have changed
	// Requests opens a stream to a peer with Converse, and closes it after talk, or resets it if talk
	// fails.
	Requests interface {
		Converse(ctx context.Context, to transport.PeerID, protocol transport.Protocol, talk func(*framed.Stream) error) error
	}
	Quarantine Quarantine
	Log        *zap.Logger
}

// Quarantine is the peers in quarantine.
type Quarantine interface {
	// Quarantined is how much longer a peer stays in quarantine, 0 if it is not.
	Quarantined(transport.PeerID) time.Duration
	// Add puts a server that lied into quarantine.
	Add(server transport.PeerID, cause error)
}

// Copied is a copied model, and what its state servers say about it.
type Copied struct {
	Values tensor.Vector
	Stats  stats.State
	// Ages are the ages of the state servers' models in steps, FlockSteps the flock's steps
	// as reported by those that answered.
	Ages, FlockSteps []uint64
}

// copying is a copy under way.
type copying struct {
	Config
	pool   *pool
	values tensor.Vector
	seed   transport.PeerID // the member that admitted this peer
	began  time.Time

	mu        sync.Mutex
	servers   map[transport.PeerID]*prospect
	manifests time.Time
	latest    error // why the last state server failed
	faulty    int
}

// prospect is what a joiner knows about a possible state server.
type prospect struct {
	drawing  bool
	since    time.Time // when that began
	banned   bool
	after    time.Time // when it may be asked again
	manifest wire.Manifest
}

// Copy copies the flock's model from several members at once, including the one that
// admitted this peer. It ends early with ctx.
func Copy(ctx context.Context, config Config, seed transport.PeerID) (*Copied, error) {
	c := &copying{
		Config: config, seed: seed, began: time.Now(), manifests: time.Now(),
		values: make(tensor.Vector, config.Values), servers: make(map[transport.PeerID]*prospect),
	}
	c.pool = newPool((c.Values + c.SliceLen - 1) / c.SliceLen)
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	return c.copied(), nil
}

// run copies from state servers until every slice is here. The lie of the last state server may show only
// at its end, when all slices were here: then its slices are missing again.
func (c *copying) run(ctx context.Context) error {
	for {
		if err := c.gather(ctx); err != nil || c.pool.done() {
			return err
		}
	}
}

// gather copies from state servers until every slice is here, and lets them end.
func (c *copying) gather(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	defer drawing.Wait()
	defer cancel()
	ended := make(chan struct{}, 1)
	ticker := time.NewTicker(retry)
	defer ticker.Stop()
	reminded := c.began
	for !c.pool.done() {
		for _, server := range c.recruits() {
			drawing.Go(func() {
				c.part(ctx, server, c.draw(ctx, server))
				select {
				case ended <- struct{}{}:
				default: // one check of the state servers is enough for several ends
				}
			})
		}
		select {
		case <-ended:
		case <-c.News: // new members may be state servers too
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.hopeless(); err != nil {
			return err
		}
		if time.Since(reminded) > reminder {
			reminded = time.Now()
			c.Log.Warn("still copying the flock's model", zap.Int("slices_left", c.pool.remaining()), zap.NamedError("last", c.reason()))
		}
	}
	return nil
}

// members are those that can give the parameters.
func (c *copying) members() []transport.Record {
	return slices.DeleteFunc(c.Membership.Members(), func(r transport.Record) bool { return !c.Gives(r) })
}

// recruits chooses as many further state servers as are needed.
func (c *copying) recruits() (chosen []transport.PeerID) {
	members := c.members()
	c.mu.Lock()
	defer c.mu.Unlock()
	missing, most, now := Donors, maxDonors, time.Now()
	for id, d := range c.servers {
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
		d := c.servers[id]
		if d == nil {
			d = &prospect{}
			c.servers[id] = d
		}
		if d.drawing || d.banned || now.Before(d.after) || c.Quarantine.Quarantined(id) > 0 {
			continue
		}
		d.drawing, d.since = true, now
		missing--
		chosen = append(chosen, id)
	}
	return chosen
}

// candidates are the members that have a model to give, and the one that admitted this
// peer, in an order that differs between joiners, so that they spread over state servers.
func (c *copying) candidates(members []transport.Record) []transport.PeerID {
	self := c.Identity.Self()
	ids := []transport.PeerID{c.seed}
	for _, m := range members {
		if m.Peer != self && m.Peer != c.seed && m.Age() > 0 {
			ids = append(ids, m.Peer)
		}
	}
	lot := func(id transport.PeerID) uint64 { return (id + self).Fingerprint() }
	slices.SortFunc(ids, func(a, b transport.PeerID) int { return cmp.Compare(lot(a), lot(b)) })
	return ids
}

// window is how many slices may be under way from one state server: for a small state few
// enough that every state server sends some.
func (c *copying) window() int {
	share := len(c.pool.slices) / (2 * Donors)
	return max(min(windowBytes/(tensor.ValueSize*c.SliceLen), share, wire.MaxWanted), 2)
}

// met notes the manifest of a state server that has been checked.
func (c *copying) met(server transport.PeerID, m wire.Manifest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[server].manifest = m
	c.manifests = time.Now()
}

// draw copies slices from one state server until none is left, or the server fails. Received
// slices are kept in any case.
func (c *copying) draw(ctx context.Context, server transport.PeerID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dialling := time.AfterFunc(c.Stall, func() { cancel(errNotReached) })
	err := c.Requests.Converse(ctx, server, transport.ProtocolState, func(stream *framed.Stream) error {
		dialling.Stop()
		src := source{copying: c, stream: stream}
		if err := src.meet(server); err != nil {
			return err
		}
		c.met(server, src.manifest)
		return src.fetch(ctx)
	})
	if err != nil && context.Cause(ctx) == errNotReached {
		return errNotReached
	}
	return err
}

// recordOf is the incarnation in a member's record, and the age of its model; zeros if
// there is no record.
func (c *copying) recordOf(id transport.PeerID) (life, age uint64) {
	for _, m := range c.members() {
		if m.Peer == id {
			return m.Incarnation, m.Age()
		}
	}
	return 0, 0
}

// part handles the end of a state server: one that lied is reported and never asked again,
// and its slices are asked of others.
func (c *copying) part(ctx context.Context, server transport.PeerID, err error) {
	lied, banned, alive := judge(err)
	if lied {
		c.pool.disown(server) // first, so that its slices no longer count
	}
	c.mu.Lock()
	d := c.servers[server]
	d.drawing, d.banned, d.after = false, banned, time.Now().Add(retry)
	if alive {
		c.manifests = time.Now()
	}
	if err != nil && ctx.Err() == nil {
		c.latest = fmt.Errorf("%s: %w", server, err)
	}
	if lied {
		c.faulty++
		d.manifest = wire.Manifest{}
	}
	c.mu.Unlock()
	switch {
	case lied:
		c.Quarantine.Add(server, err)
	case err == nil || ctx.Err() != nil:
	case banned:
		c.Log.Warn("a member's model cannot be copied; it is not asked again", zap.String("peer", string(server)), zap.Error(err))
	default:
		c.Log.Info("a donor's part broke off; its slices are asked of others", zap.String("peer", string(server)), zap.Error(err))
	}
}

// judge tells, from the error of a state server, whether it lied, whether it is not to be asked
// again (banned), and whether it may give slices later because it was only busy (alive).
func judge(err error) (lied, banned, alive bool) {
	if err == nil {
		return false, false, true
	}
	if fault, ok := errors.AsType[*ServerError](err); ok {
		return fault.Fault.lie(), true, false
	}
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		return false, r.Reason.Permanent(), r.Reason == wire.ReasonBusy || r.Reason == wire.ReasonQuarantine
	}
	reason, theirs := wire.ReasonFor(err)
	return theirs && reason == wire.ReasonProtocol, theirs, false
}

// hopeless returns why a joiner should give up: ErrNobody if no member has answered for a
// long time, or all that did are joiners themselves.
func (c *copying) hopeless() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	banned := false
	for _, d := range c.servers {
		if d.drawing && d.manifest.Values > 0 {
			return nil
		}
		banned = banned || d.banned
	}
	if time.Since(c.manifests) < timeout {
		return nil
	}
	if banned {
		return fmt.Errorf("no member that answers has a state that can be used; join by another address: %w", c.latest)
	}
	if c.latest == nil {
		return ErrNobody
	}
	return fmt.Errorf("%w: %w", ErrNobody, c.latest)
}

// reason is the error of the last state server that failed.
func (c *copying) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// copied is the result, once every slice is here.
func (c *copying) copied() *Copied {
	given, retransmitted := c.pool.result()
	c.mu.Lock()
	defer c.mu.Unlock()
	result := &Copied{Values: c.values, Stats: stats.State{
		Servers: len(given), Slices: len(c.pool.slices), Took: time.Since(c.began), Retransmitted: retransmitted, Faulty: c.faulty,
	}}
	for id := range given {
		result.Ages = append(result.Ages, c.servers[id].manifest.Steps)
	}
	for _, d := range c.servers {
		if d.manifest.Values > 0 {
			result.FlockSteps = append(result.FlockSteps, d.manifest.FlockSteps)
		}
	}
	return result
}
