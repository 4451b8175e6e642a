package peer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// ErrNotAdmitted: this peer and another do not both let each other take part; see
// RefusedError, for the other's word, and StrangerError, for this peer's own.
var ErrNotAdmitted = seam.ErrNotAdmitted

const (
	// MinRunKey and MaxRunKey bound the bytes of a run's key. What a member shows of
	// it can be tried against guesses, so it must not be one that can be guessed.
	MinRunKey = 16
	MaxRunKey = 1024
	// DefaultLookEvery is the default of Admission.Every.
	DefaultLookEvery = 2 * time.Second

	// maxShown bounds the peers that are remembered to know the run's key, each for as
	// long as no more others have shown it since. Every stream, datagram and record of
	// one that goes by shows it again.
	maxShown = 1 << 13
)

// Admission says who may take part in a run. The zero value takes everybody who can
// reach a peer and knows the run's name; a peer with a list and a key asks for both.
// It holds for every protocol of the run, and for membership too unless
// Network.Membership replaces the default one, which then has to see to it itself.
type Admission struct {
	// Allow is a file of the ids of the peers that may take part, one a line; what
	// follows a # is a comment. It is read again when it changes: who is added may
	// join from then on, who is taken off is disconnected and no member any more. A
	// change with a fault is logged and ignored. Empty admits every id.
	Allow string
	// Key is a secret that all peers of the run share, MinRunKey to MaxRunKey bytes,
	// best random ones. It is never sent: a peer proves that it knows it. Nil asks
	// for none.
	Key []byte
	// Every is the time between two looks at Allow. Default: 2 s.
	Every time.Duration
}

func (a Admission) open() bool { return a.Allow == "" && a.Key == nil }

func (a Admission) validate() error {
	var faults []error
	if n := len(a.Key); a.Key != nil && (n < MinRunKey || n > MaxRunKey) {
		faults = append(faults, fmt.Errorf("Network.Admission.Key has %d bytes: want %d to %d", n, MinRunKey, MaxRunKey))
	}
	if a.Every < 0 {
		faults = append(faults, fmt.Errorf("Network.Admission.Every is %s: it cannot be negative", a.Every))
	}
	return errors.Join(faults...)
}

// StrangerError says that this peer does not let another take part, because its list
// does not name it. It is an ErrNotAdmitted.
type StrangerError struct {
	// Peer is the other one, List the file.
	Peer seam.PeerID
	List string
}

// Error names the peer, the list and what to do about it.
func (e *StrangerError) Error() string {
	return fmt.Sprintf("peer %s is not on the list %s: add a line with its id there if it is to take part", e.Peer, e.List)
}

// Unwrap makes the error an ErrNotAdmitted.
func (e *StrangerError) Unwrap() error { return ErrNotAdmitted }

// guard decides who takes part, for a peer that does not take everybody; nil takes
// everybody. Safe for concurrent use.
type guard struct {
	admission Admission
	run       string
	check     func(seam.PeerID) error // what is wrong with an id in the list
	log       *zap.Logger
	self      seam.PeerID // once identified
	mark      []byte      // the local peer's, once identified

	list    atomic.Pointer[allowed]
	shown   *lru.Cache[seam.PeerID, struct{}] // those that have shown that they know the key
	streams openStreams
}

var _ seam.Admission = (*guard)(nil)

// newGuard reads the list, if there is one. It returns nil if everybody is admitted.
func newGuard(config Config) (*guard, error) {
	admission := config.Network.Admission
	if admission.open() {
		return nil, nil
	}
	check := p2pnet.CheckPeer
	if config.Network.Transport != nil {
		check = func(seam.PeerID) error { return nil } // only it knows what its ids look like
	}
	if admission.Every == 0 {
		admission.Every = DefaultLookEvery
	}
	shown, err := lru.New[seam.PeerID, struct{}](maxShown)
	if err != nil {
		return nil, fmt.Errorf("making a table of %d peers: %w", maxShown, err)
	}
	g := &guard{admission: admission, run: config.Run, check: check, shown: shown, log: config.Log}
	if admission.Allow == "" {
		return g, nil
	}
	list, err := readAllowed(admission.Allow, check)
	if err != nil {
		return nil, err
	}
	g.list.Store(list)
	return g, nil
}

// over guards a transport; a nil guard leaves it as it is.
func (g *guard) over(transport seam.Transport) seam.Transport {
	if g == nil {
		return transport
	}
	g.identify(transport.Self())
	return &guarded{Transport: transport, guard: g}
}

// forMembers is the guard for the membership, nil if everybody is admitted.
func (g *guard) forMembers() seam.Admission {
	if g == nil {
		return nil
	}
	return g
}

// identify tells who the local peer is, before anything is asked but admitID.
func (g *guard) identify(self seam.PeerID) {
	g.self = self
	if g.keyed() {
		g.mark = g.markOf(self)
	}
	if list := g.list.Load(); list != nil && !list.has(self) {
		g.log.Warn("this peer's own id is not on its list: others with the same list do not let it take part",
			zap.String("peer", string(self)), zap.String("list", g.admission.Allow))
	}
}

// keyed tells whether the run has a key.
func (g *guard) keyed() bool { return g != nil && g.admission.Key != nil }

// admitID judges an identity by the list alone.
func (g *guard) admitID(id seam.PeerID) error {
	if g == nil {
		return nil
	}
	list := g.list.Load()
	if list == nil || list.has(id) {
		return nil
	}
	return &StrangerError{Peer: id, List: g.admission.Allow}
}

// Mark implements seam.Admission.
func (g *guard) Mark() []byte { return g.mark }

// Admit implements seam.Admission.
func (g *guard) Admit(id seam.PeerID, mark []byte) error {
	if err := g.admitID(id); err != nil {
		return err
	}
	if g.keyed() && !g.marks(id, mark) {
		return fmt.Errorf("peer %s does not show that it knows the run's key: give it the same one: %w", id, ErrNotAdmitted)
	}
	g.hasShown(id)
	return nil
}

// hasShown notes that a peer knows the run's key.
func (g *guard) hasShown(id seam.PeerID) { g.shown.Add(id, struct{}{}) }

// takesPart judges a peer where it can show nothing, by the list and by what it has shown
// elsewhere.
func (g *guard) takesPart(id seam.PeerID) error {
	if err := g.admitID(id); err != nil || !g.keyed() || id == g.self {
		return err
	}
	if _, ok := g.shown.Get(id); !ok {
		return fmt.Errorf("peer %s has not shown that it knows the run's key: %w", id, ErrNotAdmitted)
	}
	return nil
}

// members leaves out the records of those who are not admitted by now.
func (g *guard) members(records []seam.Record) []seam.Record {
	if g == nil {
		return records
	}
	kept := records[:0]
	for _, r := range records {
		if r.Peer == g.self || g.admitID(r.Peer) == nil {
			kept = append(kept, r)
		}
	}
	return kept
}
