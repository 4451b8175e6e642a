// Package swim finds the members of a run with hashicorp/memberlist: it
// implements seam.Membership with the SWIM protocol, carried by any seam.Transport, so
// a peer needs one port number and one identity, and every packet travels between
// authenticated peers.
//
// A member is known by its peer id, and counts once the local peer has met it: once
// there was an authenticated stream between the two, or it has answered a signed
// datagram with another. What it says of itself is a record signed by its key, which
// rides in memberlist's metadata and is verified before the member is believed. What
// others say of it, that it is dead, is not signed, though it may not go beyond what the
// member has signed; so take a missing member for a hint: probe a neighbour before giving
// it up.
//
// Up to WideAbove members packets travel by streams, and every member ends up connected
// to every other. A wider flock moves to datagrams, where the transport has them, and
// back when it shrinks: Config.Carrier. The book holds a few thousand. memberlist
// forgets a member that is gone for half a minute; this package goes on returning to it,
// so that partitions heal.
//
// Start with New. Package memnet has a Membership without timing for tests; the
// layout of a record is in record.go.
package swim

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// DefaultRejoinEvery is the default of Config.RejoinEvery.
const DefaultRejoinEvery = 10 * time.Second

// maxKeys bounds Config.Keys: each is tried on what the others do not decrypt.
const maxKeys = 8

// Config describes a Membership.
type Config struct {
	// Transport carries the protocol. It must have an Ed25519 identity, and stays
	// the caller's to close, after the Membership.
	Transport seam.Transport
	// Run is the run's name, 1 to seam.MaxRunName bytes.
	Run string
	// Carrier says what the membership travels by. Zero is Auto: streams, which make a
	// connection to every member, and datagrams in a flock of more than WideAbove, if
	// the transport is a seam.Packeter.
	Carrier Carrier
	// Keys encrypt all that is said, with the first, and decrypt with any: 16, 24 or
	// 32 bytes each (memberlist's keyring, AES-GCM), the same for all members. Nil is
	// none: over streams nobody can listen, over datagrams whoever is on the way
	// can read who the members are.
	Keys [][]byte
	// RejoinEvery is the time between two attempts to reach a member that was lost
	// or a peer given to Join that does not answer. 0 is DefaultRejoinEvery.
	RejoinEvery time.Duration
	// Admission decides who may be a member; nil takes everybody of the run.
	Admission seam.Admission
	// Log gets refused records and what memberlist has to say; nil is silent.
	Log *zap.Logger
}

func (c Config) validate() error {
	var faults []error
	if c.Transport == nil {
		faults = append(faults, errors.New("Transport is missing"))
	} else if !validPeer(c.Transport.Self()) {
		faults = append(faults, fmt.Errorf("the transport's id %q is longer than %d bytes, empty, or has a slash or space", c.Transport.Self(), maxPeerID))
	}
	if c.Run == "" || len(c.Run) > seam.MaxRunName {
		faults = append(faults, fmt.Errorf("Run has %d bytes, 1 to %d are allowed", len(c.Run), seam.MaxRunName))
	}
	for i, key := range c.Keys {
		if err := memberlist.ValidateKey(key); err != nil {
			faults = append(faults, fmt.Errorf("Keys[%d] has %d bytes, 16, 24 or 32 are allowed", i, len(key)))
		}
	}
	if len(c.Keys) > maxKeys {
		faults = append(faults, fmt.Errorf("Keys has %d, at most %d are tried", len(c.Keys), maxKeys))
	}
	if c.Carrier > Datagrams {
		faults = append(faults, fmt.Errorf("Carrier %d is none of Auto, Streams and Datagrams", c.Carrier))
	}
	if _, ok := c.Transport.(seam.Packeter); c.Carrier == Datagrams && c.Transport != nil && !ok {
		faults = append(faults, errors.New("Carrier is Datagrams, and the transport has none"))
	}
	if c.RejoinEvery < 0 {
		faults = append(faults, fmt.Errorf("RejoinEvery is %v, it cannot be negative", c.RejoinEvery))
	}
	return errors.Join(faults...)
}

// Membership implements seam.Membership. Until the first Announce the local peer
// looks on: it takes part in the protocol and sees the others, but is not among
// anybody's Members. So it may Join first, learn its HighestIncarnation, and
// announce the next one. Safe for concurrent use.
type Membership struct {
	transport   seam.Transport
	run         string
	life        uint64
	rejoinEvery time.Duration
	log         *zap.Logger

	book     *book
	carrier  *transport
	list     *memberlist.Memberlist
	unhandle func()

	dirty    chan struct{} // capacity 1: the book has changed
	changed  chan struct{} // capacity 1: what the caller hears of it
	stopping chan struct{} // closed when Close begins
	stopped  chan struct{} // closed when Close is done
	wg       sync.WaitGroup

	// announcing holds a token while nobody announces. A channel and not a mutex:
	// the holder waits for a timer, which synctest must be able to tell. Close
	// keeps the token.
	announcing chan struct{}
	said       statement // what was last said of this peer; guarded by the token
	untold     func()    // logs the counts of lines that were left out

	mu      sync.Mutex
	closing bool
}

var (
	_ seam.Membership = (*Membership)(nil)
	_ seam.Refuser    = (*Membership)(nil)
)

// New starts a membership that has joined nobody yet, as an onlooker.
func New(cfg Config) (*Membership, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	m := newMembership(cfg)
	if err := m.lookOn(); err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	sealed, err := newKeys(cfg.Keys)
	if err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	m.carrier.keys = sealed
	if err := m.carrier.wide.adapt(0); err != nil && cfg.Carrier == Datagrams {
		return nil, fmt.Errorf("swim: %w", err)
	} else if err != nil {
		m.log.Info("no datagrams can be taken: the membership stays with streams", zap.Error(err))
	}
	list, err := memberlist.Create(settings(m))
	if err != nil {
		m.carrier.wide.end()
		return nil, fmt.Errorf("swim: start memberlist: %w", err)
	}
	m.list = list
	m.wg.Add(3)
	go m.meetStrangers()
	go m.notify()
	go m.rejoin()
	unhandle, err := cfg.Transport.Handle(seam.ProtocolSwim, cfg.Run, m.carrier.handle)
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("swim: take streams for run %q: %w", cfg.Run, err)
	}
	m.unhandle = unhandle
	return m, nil
}

func newMembership(cfg Config) *Membership {
	m := &Membership{
		transport:   cfg.Transport,
		run:         cfg.Run,
		rejoinEvery: cfg.RejoinEvery,
		log:         cfg.Log,
		unhandle:    func() {},
		dirty:       make(chan struct{}, 1),
		changed:     make(chan struct{}, 1),
		stopping:    make(chan struct{}),
		stopped:     make(chan struct{}),
		announcing:  make(chan struct{}, 1),
	}
	if m.rejoinEvery == 0 {
		m.rejoinEvery = DefaultRejoinEvery
	}
	if m.log == nil {
		m.log = zap.NewNop()
	}
	m.log, m.untold = loglimit.Limit(m.log)
	var life [8]byte
	rand.Read(life[:]) // never fails
	m.life = binary.LittleEndian.Uint64(life[:])
	m.announcing <- struct{}{}
	m.book = newBook(cfg.Transport, cfg.Run, m.life, func() { signal(m.dirty) })
	if cfg.Admission != nil {
		m.book.admission = cfg.Admission
	}
	m.carrier = newTransport(cfg.Transport, cfg.Run, m.book, newStragglers(), newPackets(cfg.Transport, cfg.Run, cfg.Carrier, m.log))
	return m
}

// lookOn prepares what memberlist spreads until the first Announce.
func (m *Membership) lookOn() error {
	s := statement{life: m.life, ceiling: m.book.sign(), mark: m.book.admission.Mark()}
	s.Peer, s.Run = m.transport.Self(), m.run
	for _, address := range m.transport.Addresses() {
		if len(address) <= seam.MaxAddressSize && len(s.Addresses) < seam.MaxAddresses {
			s.Addresses = append(s.Addresses, address)
		}
	}
	meta, err := seal(m.transport, s)
	if err != nil {
		return err
	}
	m.said = s
	m.book.setOwn(s, meta)
	return nil
}

// signal makes a channel of capacity 1 ready.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
