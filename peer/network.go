package peer

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Network says of which run a node is, how it is reached and reaches others. Run is required.
type Network struct {
	// Run names what the members do together: 1 to 64 bytes of text.
	Run string
	// Join lists addresses of members: full multiaddrs with a peer id, or
	// host:port. Empty for the first member of a run. The node keeps trying those
	// that do not answer; one that nobody could dial is an error of Join.
	Join []string
	// Description says what the run is, beside its name, in the order of the fields' names: see package
	// description. A node that joins is compared with what the members say. Where models or
	// work would suffer, it is barred with a *description.MismatchError; other differences are
	// logged. Default: whatever the members say, unchecked.
	Description []description.Field
	// Sums says with whom Sum, Max and Gather sum.
	Sums Sums
	// Log receives what an operator should know. Default: nothing is logged.
	Log *zap.Logger
	// Identity is the peer's private key. Default: one that lasts as long as the process.
	Identity ed25519.PrivateKey
	// Listen are the multiaddrs or host:port pairs to listen on. Default: a free
	// TCP port on every interface.
	Listen []string
	// KnownPeers is the file in which identities learned from host:port joins are
	// remembered, and beside it, with .partners appended, partners with whom exchanges
	// went well: a peer that starts anew looks for these too. Default: they are
	// remembered in memory.
	KnownPeers string
	// Partners are looked for too, at most MaxPartners: for callers who keep them themselves.
	Partners []Partner
	// Reach says whether others can dial this peer. Default: they can until it finds out otherwise.
	Reach Reach
	// Relay is for peers that others cannot dial but through a relay, and for those that
	// are one.
	Relay p2pnet.Relay
	// Carrier is what news of members travels by. Default: streams, and datagrams in
	// a flock of more than swim.WideAbove, which spare a connection to every member.
	Carrier swim.Carrier
	// GossipKeys encrypt news of members, with the first, and decrypt it with any: 16, 24 or 32
	// bytes each, the same for all peers. Default: none; streams are encrypted in any case.
	// It is no admission: see Admission.RunKey for that.
	GossipKeys [][]byte
	// Admission says who may take part. Default: everybody.
	Admission Admission
	// Control says whom the peer obeys, and what it tells others of itself.
	Control control.Config
	// Transport replaces the default one, on libp2p, as one of p2pnet.New does that has other
	// limits. The peer does not close it; several peers of different runs may share one. Identity,
	// Listen and Relay are then unused.
	Transport transport.Transport
	// Membership replaces the default one, on memberlist over Transport. The peer
	// closes it. Carrier and GossipKeys are then unused.
	Membership transport.Membership

	fixed fixed
}

// fixed is what nobody sets but tests.
type fixed struct {
	stall time.Duration
	build string // control.Version
}

// stall bounds the wait for the next frame of another member, and for its answer. One that has
// answered quickly is waited for less long: for 2.5 s, unless its link or its machine is so slow that
// it needs more.
const stall = 5 * time.Second

// faults are all that is wrong.
func (n Network) faults() (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := wire.CheckRun(n.Run); err != nil {
		fault("Run: %w", err)
	}
	if err := n.described().Validate(); err != nil {
		fault("Description: %w", err)
	}
	for _, address := range n.Join {
		if err := p2pnet.CheckJoin(address); err != nil && n.Transport == nil {
			fault("Join: %w", err)
		}
	}
	if n.Identity != nil && len(n.Identity) != ed25519.PrivateKeySize {
		fault("Network.Identity has %d bytes: want an Ed25519 private key of %d", len(n.Identity), ed25519.PrivateKeySize)
	}
	if most := len(n.Partners); most > MaxPartners {
		fault("Network.Partners has %d: want at most %d", most, MaxPartners)
	}
	for _, p := range n.Partners {
		if err := p.validate(); err != nil {
			faults = append(faults, err)
		}
	}
	if n.Reach > Unreachable {
		fault("Network.Reach is %d: want FindReach, Reachable or Unreachable", n.Reach)
	}
	for _, err := range []error{n.Admission.validate(), n.Sums.validate()} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if err := n.Control.Validate(); err != nil {
		fault("Network.Control: %w", err)
	}
	return faults
}

// guard decides who takes part; it is nil if everybody does.
func (n Network) guard() (*admit.Guard, error) {
	check := p2pnet.CheckPeer
	if n.Transport != nil {
		check = nil // only it knows what its ids look like
	}
	return admit.New(admit.Config{Run: n.Run, List: n.Admission.Allow, CheckID: check, Key: n.Admission.RunKey, Log: n.Log})
}

func (n Network) withDefaults() Network {
	if n.Log == nil {
		n.Log = zap.NewNop()
	}
	n.fixed = fixed{cmp.Or(n.fixed.stall, stall), cmp.Or(n.fixed.build, control.Version())}
	n.Sums.Timeout = cmp.Or(n.Sums.Timeout, DefaultTimeout)
	return n
}

// described is what this node says that the run is.
func (n Network) described() description.Description {
	return description.Description{Run: n.Run, Fields: n.Description}
}

// Reach says whether others can dial a peer.
type Reach uint8

const (
	// FindReach is a peer that others can dial until it finds out otherwise: until a relay of its run, by
	// libp2p's AutoNAT, has tried and failed, and nobody has dialled it from a public address. On a network
	// of private addresses nobody tries.
	FindReach Reach = iota
	// Reachable: others can dial it, whatever a relay finds.
	Reachable
	// Unreachable: they cannot, since it is behind a NAT or a firewall that lets nobody in. Such a peer is
	// active: it begins its exchanges itself, and others meet it through its relay, if it has one.
	Unreachable
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
	// RunKey is a secret that all peers of the run share, transport.MinRunKey to transport.MaxRunKey
	// bytes, best random ones. It is never sent: a peer proves that it knows it. Nil
	// asks for none.
	RunKey []byte
}

func (a Admission) validate() error {
	if n := len(a.RunKey); a.RunKey != nil && (n < transport.MinRunKey || n > transport.MaxRunKey) {
		return fmt.Errorf("Network.Admission.RunKey has %d bytes: want %d to %d", n, transport.MinRunKey, transport.MaxRunKey)
	}
	return nil
}

// inquiries is how often Inquire says hello: the quickest answer tells the round
// trip, since the first may find both ends busy with the connection.
const inquiries = 3

// Inquiry is what a member says to one that asks whether it could join.
type Inquiry struct {
	// Peer is who answers at the address.
	Peer transport.PeerID
	// RoundTrip is the time from a hello to its answer, the quickest of a few.
	RoundTrip time.Duration
	// FlockSteps is the member's estimate of all members' steps together.
	FlockSteps uint64
	// Description is what the member says that the run is, and Signer who signed that; it
	// is empty if the member does not tell. It is there even where another layout is refused.
	Description description.Description
	Signer      transport.PeerID
	// Signed is the description as it was signed, to be passed on (Checkpoint.Describing).
	Signed description.Signed
	// Awaits is what a process answers that waits for the run itself (Admission.Await); 0 if
	// it does not.
	Awaits uint64
}

// Inquire reaches a process at a join address and asks, as a peer that joins with this
// admission does, whether it would be let into a run with a model of this layout hash.
// It joins nothing, and nobody hears of it. A refusal is a *transport.RefusedError; what was
// found out by then is in the Inquiry all the same.
func (a Admission) Inquire(ctx context.Context, tr transport.Transport, address, run string, layout [32]byte) (found Inquiry, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("inquiring at %s: %w", address, err)
		}
	}()
	if err := wire.CheckRun(run); err != nil {
		return found, err
	}
	guard, err := a.guard(tr, run)
	if err != nil {
		return found, err
	}
	tr = guard.Over(tr)
	self := flock.New(tr.Self())
	self.SetLayout(layout)
	asker := arrival.Greeter{Requests: requests.New(run, tr, stall, counters.New(), zap.NewNop()), Guard: guard, Flock: self}
	if found.Peer, err = tr.Connect(ctx, address); err != nil {
		return found, err
	}
	for range inquiries {
		began := time.Now()
		welcome, said, err := asker.Ask(ctx, found.Peer)
		if waits, ok := errors.AsType[*wire.Refusal](err); ok {
			found.Awaits = waits.Awaits
		}
		if _, refused := errors.AsType[*transport.RefusedError](err); err != nil && !refused {
			return found, err
		}
		if said.Known() {
			var faulty error
			if found.Description, faulty = said.Open(tr, run); faulty != nil {
				return found, faulty
			}
			found.Signer, found.Signed = said.Signer, said
		}
		if took := time.Since(began); found.RoundTrip == 0 || took < found.RoundTrip {
			found.RoundTrip = took
		}
		if err != nil {
			return found, err
		}
		found.FlockSteps = welcome.FlockSteps
	}
	return found, nil
}

// maxGreeted is how many hellos Await answers at once.
const maxGreeted = 64

// Await answers at a transport those that say hello or inquire, for a process that waits itself
// for somebody who says what the run is: they are told a number other than 0, which says how it
// waits (Inquiry.Awaits), and are to ask again. Stop ends it.
func (a Admission) Await(tr transport.Transport, run string, says func() uint64) (stop func(), err error) {
	guard, err := a.guard(tr, run)
	if err != nil {
		return nil, err
	}
	places := make(chan struct{}, maxGreeted)
	return guard.Over(tr).Handle(transport.ProtocolHello, run, func(stream transport.Stream) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			stream.Reset()
			return
		}
		var s framed.Stream
		var hello wire.Hello
		s.Begin(stream, stall)
		if _, err := s.Receive(&hello); err != nil {
			stream.Reset()
		} else if reason, detail := guard.Vet(&s, hello); reason != 0 {
			s.Refuse(0, reason, detail)
		} else {
			s.Refuse(says(), wire.ReasonJoining, "waiting for somebody who says what the run is")
		}
	})
}

// guard admits at a transport.
func (a Admission) guard(tr transport.Transport, run string) (*admit.Guard, error) {
	return Network{Run: run, Admission: a, Transport: tr, Log: zap.NewNop()}.guard()
}
