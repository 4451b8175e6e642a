// Package memnet is a network in memory: it implements transport.Transport and
// transport.Membership between peers of one process, with delay, bandwidth, loss,
// cut links and crashes. It works in real time and, because everything that
// waits waits on channels and timers, inside a testing/synctest bubble in
// virtual time, where its figures are exact.
//
// The model is one ordered connection per pair of peers and lane, like yamux on
// TCP: the streams on it share its bandwidth first come first served, and what is
// lost is sent again and holds up what follows it. Lanes are paths of their own:
// none takes bandwidth from another. Headers cost nothing, and
// window updates travel in no time. Every peer can reach every other one by its
// id; learned addresses are not needed and ignored.
//
// Start with New, make peers with Network.Transport, bend the links with
// SetLink, Cut, Partition and Crash, and break streams at an exact byte with
// CutAfter and StallAfter. Package peertest wraps this for tests of
// whole peers; package p2pnet is the transport for real networks.
package memnet

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// DefaultWindow is the number of bytes a stream holds in flight and unread, per
// direction, before its writer blocks.
const DefaultWindow = 256 << 10

// Config describes a network. The zero value is a network without delay, limit
// or loss.
type Config struct {
	// Seed makes the identities and the losses.
	Seed uint64
	// Link is the link between any two peers, until SetLink changes it.
	Link Link
	// Window bounds the bytes of a stream's direction in flight and unread. It
	// caps a stream's throughput at Window per Link.Delay. 0 is DefaultWindow.
	Window int
	// Idle is how long a connection counts in Transport.Connections after its last
	// stream has ended: a real transport keeps it a while. 0 is not at all.
	Idle time.Duration
}

// Network joins transports in memory. Safe for concurrent use.
type Network struct {
	seed   uint64
	link   Link
	window int
	idle   time.Duration
	epoch  time.Time

	mu     sync.Mutex
	names  map[string]*Transport // open transports
	peers  map[transport.PeerID]*Transport
	cables map[pair]*cable
	runs   map[string]*registry

	topics topics
}

// pair is an unordered pair of peers: low < high.
type pair struct{ low, high transport.PeerID }

func pairOf(a, b transport.PeerID) pair {
	if b < a {
		a, b = b, a
	}
	return pair{low: a, high: b}
}

// New returns an empty network. Its links count time from now on, so in a
// synctest bubble it must be made inside the bubble.
func New(cfg Config) *Network {
	if cfg.Window <= 0 {
		cfg.Window = DefaultWindow
	}
	return &Network{
		seed:   cfg.Seed,
		link:   cfg.Link,
		window: cfg.Window,
		idle:   cfg.Idle,
		epoch:  time.Now(),
		names:  make(map[string]*Transport),
		peers:  make(map[transport.PeerID]*Transport),
		cables: make(map[pair]*cable),
		runs:   make(map[string]*registry),
		topics: topics{table: make(map[seat]*Topic)},
	}
}

// Transport adds a peer that listens at the address "mem:NAME". Its key follows
// from the network's seed and the name, so a peer that crashed or closed comes
// back under its old identity by asking for the same name again. A name that is
// in use is an error.
func (n *Network) Transport(name string) (*Transport, error) { return n.Duplicate(name, name) }

// Duplicate adds a peer with the key that another name stands for, as when one key is copied to
// two machines. Streams to the identity reach the one that was added last; both can open
// their own.
func (n *Network) Duplicate(name, of string) (*Transport, error) {
	if name == "" || strings.ContainsAny(name, " /:") {
		return nil, fmt.Errorf("memnet: %q is no name: use letters, digits and dashes", name)
	}
	t := newTransport(n, name, of)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.names[name]; taken {
		return nil, fmt.Errorf("memnet: a peer named %q is already on the network", name)
	}
	n.names[name] = t
	n.peers[t.Self()] = t
	return t, nil
}

// SetLink replaces the link between two peers, on every path. Bytes already written keep the
// arrival times they were given.
func (n *Network) SetLink(a, b transport.PeerID, l Link) { n.cable(a, b).setLink(l) }

// Cut stops every byte between two peers, silently, as a pulled cable does:
// reads block until their deadline, writes until the window is full, opens until
// their context ends. Bytes that were under way are held back.
func (n *Network) Cut(a, b transport.PeerID) {
	n.cable(a, b).setCut(true)
	n.changed()
}

// Heal undoes Cut. What was held back is sent again from now on.
func (n *Network) Heal(a, b transport.PeerID) {
	n.cable(a, b).setCut(false)
	n.changed()
}

// Partition cuts every link between peers of different groups. Links inside a
// group, and of peers that are in no group, stay as they are.
func (n *Network) Partition(groups ...[]transport.PeerID) {
	for i, group := range groups {
		for _, other := range groups[i+1:] {
			for _, a := range group {
				for _, b := range other {
					n.cable(a, b).setCut(true)
				}
			}
		}
	}
	n.changed()
}

// HealAll heals every cut link.
func (n *Network) HealAll() {
	n.mu.Lock()
	cables := slices.Collect(maps.Values(n.cables))
	n.mu.Unlock()
	for _, c := range cables {
		c.setCut(false)
	}
	n.changed()
}

// Crash removes a peer as kill -9 does: its streams are reset, opens to it fail
// at once, and its name and identity are free for a next life. It does not wait
// for the peer's handlers; the crashed Transport should still be closed.
func (n *Network) Crash(peer transport.PeerID) {
	n.mu.Lock()
	t := n.peers[peer]
	n.mu.Unlock()
	if t != nil {
		t.stop()
	}
}

// CutAfter breaks every stream between two peers once that many more bytes have gone
// from one to the other: 0 breaks them now. The other reads all of them and then fails
// with ErrReset; the one that sent them fails at once. Streams that are opened
// afterwards are whole. Bytes count when they are written, those of all streams and
// lanes together. It replaces a CutAfter or StallAfter of the same direction that has
// yet to strike.
func (n *Network) CutAfter(from, to transport.PeerID, bytes int64) {
	n.cable(from, to).limit(from, bytes, breaks)
}

// StallAfter stalls every stream from one peer to another, those opened later too, once
// that many more bytes have gone that way: 0 stalls them now. What follows these bytes,
// the end of a stream and its reset included, is held back until Release. Streams can
// still be opened. It counts, and replaces, as CutAfter does.
func (n *Network) StallAfter(from, to transport.PeerID, bytes int64) {
	n.cable(from, to).limit(from, bytes, stalls)
}

// Release ends every stall from one peer to another, and calls off a StallAfter or
// CutAfter that has yet to strike. What was held back is sent from now on.
func (n *Network) Release(from, to transport.PeerID) {
	c := n.cable(from, to)
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.faults[c.side(from)]
	f.stalled, f.then = false, nothing
	for _, s := range c.streams {
		s.ends[c.side(from)].release(c.net.now())
	}
}

func (n *Network) remove(t *Transport) {
	n.mu.Lock()
	if n.peers[t.Self()] == t {
		delete(n.peers, t.Self())
	}
	if n.names[t.name] == t {
		delete(n.names, t.name)
	}
	n.mu.Unlock()
	n.changed()
}

func (n *Network) lookup(peer transport.PeerID) *Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[peer]
}

func (n *Network) lookupName(name string) *Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[name]
}

// cable returns the connection between two peers, which outlives both.
func (n *Network) cable(a, b transport.PeerID) *cable {
	key := pairOf(a, b)
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.cables[key]
	if c == nil {
		c = newCable(n, key)
		n.cables[key] = c
	}
	return c
}

// now is the time since the network was made; streams keep time in it.
func (n *Network) now() time.Duration { return time.Since(n.epoch) }

// random returns the generator of the losses from one peer to another on one
// lane: its draws do not depend on what others do.
func (n *Network) random(from, to transport.PeerID, lane int) *rand.Rand {
	parts := []string{string(from), string(to)}
	if lane > 0 {
		parts = append(parts, strconv.Itoa(lane))
	}
	sum := n.hash("loss", parts...)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

func (n *Network) hash(use string, parts ...string) [sha256.Size]byte {
	data := binary.LittleEndian.AppendUint64([]byte("murmuration memnet "+use+"\x00"), n.seed)
	for _, part := range parts {
		data = append(append(data, part...), 0)
	}
	return sha256.Sum256(data)
}

// Membership adds a peer to a run. A peer takes part in a run once at a time.
func (n *Network) Membership(t *Transport, run string) (*Membership, error) {
	if len(run) > transport.MaxRunName {
		return nil, fmt.Errorf("memnet: the run's name has %d bytes, at most %d are allowed", len(run), transport.MaxRunName)
	}
	if n.lookup(t.Self()) != t {
		return nil, fmt.Errorf("memnet: membership of run %q: %w", run, transport.ErrClosed)
	}
	r := n.registry(run)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.members[t.Self()]; old != nil && old.transport == t {
		return nil, fmt.Errorf("memnet: %s takes part in run %q already", t.name, run)
	}
	m := &Membership{
		transport: t,
		run:       run,
		registry:  r,
		changed:   make(chan struct{}, 1),
		joined:    make(map[transport.PeerID]struct{}),
	}
	r.members[t.Self()] = m
	return m, nil
}

func (n *Network) registry(run string) *registry {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.runs[run]
	if r == nil {
		r = &registry{members: make(map[transport.PeerID]*Membership), highest: make(map[transport.PeerID]uint64), last: make(map[transport.PeerID]transport.Record)}
		n.runs[run] = r
	}
	return r
}

// changed tells every member of every run to look again.
func (n *Network) changed() {
	n.mu.Lock()
	runs := slices.Collect(maps.Values(n.runs))
	n.mu.Unlock()
	for _, r := range runs {
		r.mu.Lock()
		r.signal()
		r.mu.Unlock()
	}
}
