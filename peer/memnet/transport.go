package memnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// addressPrefix begins the address of a peer; its name follows.
	addressPrefix = "mem:"
	// OpenTimeout bounds the opening of a stream across a cut link if its context
	// does not.
	OpenTimeout = 15 * time.Second
	// MaxStreams is the number of open streams that a peer accepts in total.
	MaxStreams = 4096
)

// route is what an inbound stream is for.
type route struct {
	protocol transport.Protocol
	run      string
}

// connection is a path to another peer.
type connection struct {
	peer transport.PeerID
	lane int
}

// registration is one handler and the streams it is busy with.
type registration struct {
	handler transport.Handler
	running sync.WaitGroup
}

// Transport implements transport.Transport for one peer of a Network.
type Transport struct {
	identity
	net   *Network
	name  string
	block atomic.Pointer[string]
	done  chan struct{} // closed when it stops

	mu       sync.Mutex
	stopped  bool
	routes   map[route]*registration
	streams  map[*end]struct{}
	kept     map[connection]time.Time // when its last stream ended, for so long as it counts
	boxes    map[string]*postbox      // by run
	handlers sync.WaitGroup
}

var _ transport.Transport = (*Transport)(nil)

func newTransport(n *Network, name, key string) *Transport {
	seed := n.hash("key", key)
	return &Transport{
		identity: newIdentity(seed[:]),
		net:      n,
		name:     name,
		done:     make(chan struct{}),
		routes:   make(map[route]*registration),
		streams:  make(map[*end]struct{}),
		kept:     make(map[connection]time.Time),
	}
}

// SetBlock says from which block of addresses the peer comes, for Block at others. It is ""
// before.
func (t *Transport) SetBlock(block string) { t.block.Store(&block) }

// Block implements transport.Transport.
func (t *Transport) Block(peer transport.PeerID) string {
	if remote := t.net.lookup(peer); remote != nil {
		if block := remote.block.Load(); block != nil {
			return *block
		}
	}
	return ""
}

// Addresses implements transport.Listener.
func (t *Transport) Addresses() []string { return []string{addressPrefix + t.name} }

// JoinAddresses implements transport.Listener.
func (t *Transport) JoinAddresses() []string { return t.Addresses() }

// Sealed implements transport.Transport: tests alter what streams carry.
func (t *Transport) Sealed() bool { return false }

// Refused implements transport.Transport: refusals are not counted.
func (t *Transport) Refused() map[string]uint64 { return nil }

// Learn implements transport.Dialer. Peers are found by their id, so it does nothing.
func (t *Transport) Learn(transport.PeerID, []string) {}

// Connect implements transport.Dialer. It takes a round trip. A name that nobody has
// fails at once with transport.ErrUnreachable; one's own address is answered too.
func (t *Transport) Connect(ctx context.Context, address string) (transport.PeerID, error) {
	name, ok := strings.CutPrefix(address, addressPrefix)
	if !ok {
		return "", fmt.Errorf("memnet: connect to %q: not of the form %sNAME", address, addressPrefix)
	}
	remote := t.net.lookupName(name)
	if remote == nil {
		return "", fmt.Errorf("memnet: connect to %q: %w", address, transport.ErrUnreachable)
	}
	if remote == t {
		return t.Self(), nil
	}
	if remote.Self() == t.Self() {
		return "", fmt.Errorf("memnet: connect to %q: %w", address, transport.ErrDuplicate)
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	c := t.net.cable(t.Self(), remote.Self())
	for range 2 {
		if err := t.travel(ctx, c); err != nil {
			return "", fmt.Errorf("memnet: connect to %q: %w", address, err)
		}
	}
	return remote.Self(), nil
}

// Open implements transport.Dialer. It takes a round trip, after which a refusal is
// known, so none surfaces later. A peer that is not on the network fails at once
// with transport.ErrUnreachable, one across a cut link when the context ends or
// OpenTimeout has passed.
func (t *Transport) Open(ctx context.Context, peer transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	s, err := t.open(ctx, peer, route{protocol: protocol, run: run}, 0)
	if err != nil {
		return nil, fmt.Errorf("memnet: open %s for run %q to %s: %w", protocol, run, peer.Short(), err)
	}
	return s, nil
}

// OpenLane implements transport.Dialer, with the times and errors of Open. A lane
// is a path of its own, with the link's whole bandwidth; both peers' streams of
// one number share it. There is no connection to make or to close: a path without
// streams is none.
func (t *Transport) OpenLane(ctx context.Context, peer transport.PeerID, protocol transport.Protocol, run string, lane int) (transport.Stream, error) {
	if lane < 1 || lane > transport.MaxLane {
		return nil, fmt.Errorf("memnet: open lane %d to %s: %w", lane, peer.Short(), transport.ErrLane)
	}
	s, err := t.open(ctx, peer, route{protocol: protocol, run: run}, lane)
	if err != nil {
		return nil, fmt.Errorf("memnet: open lane %d for %s of run %q to %s: %w", lane, protocol, run, peer.Short(), err)
	}
	return s, nil
}

func (t *Transport) open(ctx context.Context, peer transport.PeerID, to route, lane int) (*end, error) {
	remote := t.net.lookup(peer)
	switch {
	case t.isStopped():
		return nil, transport.ErrClosed
	case peer == t.Self():
		return nil, errors.New("that is the local peer itself")
	case remote == nil:
		return nil, transport.ErrUnreachable
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	c := t.net.cable(t.Self(), peer)
	if err := t.travel(ctx, c); err != nil {
		return nil, err
	}
	near, far := newStream(c, t, remote, lane)
	if err := t.adopt(near); err != nil {
		far.Reset()
		near.Reset()
		return nil, err
	}
	err := remote.accept(far, to)
	if err != nil {
		far.Reset()
	}
	if lost := t.travel(ctx, c); lost != nil {
		err = lost
	}
	if err != nil {
		near.Reset()
		return nil, err
	}
	return near, nil
}

// travel waits until a byte sent now would have reached the other side.
func (t *Transport) travel(ctx context.Context, c *cable) error {
	for {
		c.mu.Lock()
		cut, healed, delay := c.cut, c.healed, c.link.Delay
		c.mu.Unlock()
		if cut {
			if err := t.await(ctx, healed, never); err != nil {
				return err
			}
			continue
		}
		if delay > 0 {
			if err := t.await(ctx, nil, delay); err != nil {
				return err
			}
		}
		if !c.isCut() {
			return nil
		}
	}
}

// await waits for an event or for a time to pass, whichever is first.
func (t *Transport) await(ctx context.Context, event <-chan struct{}, wait time.Duration) error {
	var passed <-chan time.Time
	if wait != never {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-event:
		return nil
	case <-passed:
		return nil
	case <-t.done:
		return transport.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", transport.ErrUnreachable, ctx.Err())
	}
}

func (t *Transport) adopt(e *end) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return transport.ErrClosed
	}
	t.streams[e] = struct{}{}
	return nil
}

func (t *Transport) accept(e *end, to route) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return transport.ErrUnreachable
	}
	r := t.routes[to]
	if r == nil {
		return t.refusal(to)
	}
	if len(t.streams) >= MaxStreams {
		return fmt.Errorf("the other process has %d streams open, the most it takes", MaxStreams)
	}
	t.streams[e] = struct{}{}
	r.running.Add(1)
	t.handlers.Add(1)
	go func() {
		defer t.handlers.Done()
		defer r.running.Done()
		r.handler(e)
	}()
	return nil
}

// refusal tells a run that is unknown from a protocol that this run does not
// speak.
func (t *Transport) refusal(to route) error {
	for known := range t.routes {
		if known.run == to.run {
			return transport.ErrUnknownProtocol
		}
	}
	return transport.ErrUnknownRun
}

// Handle implements transport.Listener.
func (t *Transport) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	at := route{protocol: protocol, run: run}
	r := &registration{handler: handler}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil, fmt.Errorf("memnet: handle %s for run %q: %w", protocol, run, transport.ErrClosed)
	}
	if t.routes[at] != nil {
		return nil, fmt.Errorf("memnet: %s for run %q has a handler already", protocol, run)
	}
	t.routes[at] = r
	return func() {
		t.mu.Lock()
		if t.routes[at] == r {
			delete(t.routes, at)
		}
		t.mu.Unlock()
		r.running.Wait()
	}, nil
}

// Connections implements transport.Transport: the number of paths, lanes counted one by
// one, on which at least one stream is open at this end, or was within Config.Idle.
func (t *Transport) Connections() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := make(map[connection]struct{})
	for e := range t.streams {
		open[connection{e.remote, e.stream.lane}] = struct{}{}
	}
	for c, since := range t.kept {
		if time.Since(since) >= t.net.idle {
			delete(t.kept, c)
			continue
		}
		open[c] = struct{}{}
	}
	return len(open)
}

func (t *Transport) forget(e *end) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, e)
	if t.net.idle > 0 && !t.stopped {
		t.kept[connection{e.remote, e.stream.lane}] = time.Now()
	}
}

func (t *Transport) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// stop leaves the network and resets every stream, without waiting.
func (t *Transport) stop() {
	t.mu.Lock()
	if t.stopped {
		t.mu.Unlock()
		return
	}
	t.stopped = true
	close(t.done)
	open := slices.Collect(maps.Keys(t.streams))
	t.mu.Unlock()
	t.net.remove(t)
	for _, e := range open {
		e.Reset()
	}
}

// Close implements transport.Transport: it resets every stream, waits for the
// handlers and frees the name. A handler must not call it.
func (t *Transport) Close() error {
	t.stop()
	t.handlers.Wait()
	return nil
}
