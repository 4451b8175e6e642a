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
	"github.com/seed-97356399/murmuration/topology"
)

// Network says to which run a node belongs, and how it and the other members reach each other. Run is required.
type Network struct {
	// Run names what the members do together: 1 to 64 bytes of text.
	Run string
	// Join lists addresses of members: full multiaddrs with a peer id, or host:port. Empty
	// for the first member of a run. The node keeps trying those that do not answer; an
	// address that cannot be dialled at all is an error of Join.
	Join []string
	// Description says what the run is, beside its name, in the order of the fields' names: see package
	// description. When a node joins, its description is compared with that of the members. A
	// difference that would harm models or work bars it with a *description.MismatchError; others are
	// logged. Default: the members' description, unchecked.
	Description []description.Field
	// Sums says with whom Sum, Max and Gather sum.
	Sums Sums
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
	// Identity is the peer's private key. Default: a new one, which lasts as long as the process.
	Identity ed25519.PrivateKey
	// Listen are the multiaddrs or host:port pairs to listen on. Default: a free
	// TCP port on every interface.
	Listen []string
	// KnownPeers is the file in which identities learned from host:port joins are
	// remembered, and beside it, with .partners appended, partners with whom exchanges
	// went well: a peer that starts anew looks for these too. Default: they are
	// remembered in memory.
	KnownPeers string
	// Partners are tried too, at most MaxPartners: for callers that store partners themselves.
	Partners []Partner
	// Reach says whether others can dial this peer. Default: they can until it finds out otherwise.
	Reach Reach
	// Relay is for peers that others can dial through a relay only, and for peers that are
	// a relay.
	Relay p2pnet.Relay
	// Uplink bounds what this peer sends; several peers may have shares of one uplink
	// (p2pnet.NewUplink). Default: no bound.
	Uplink *p2pnet.UplinkShare
	// Site names the network that this peer shares with other members, in at most topology.MaxSite bytes: an
	// office, a data centre. Peers exchange inside a site oftener than across, and one of each site
	// exchanges across. Default: none, which is the site of all that name none.
	Site string
	// Carrier is how news of members travels. Default: streams; in a flock of more than
	// swim.WideAbove members datagrams, which need no connection to every member.
	Carrier swim.Carrier
	// GossipKeys encrypt news of members, with the first, and decrypt it with any: 16, 24 or 32
	// bytes each, the same for all peers. Default: none; streams are encrypted in any case.
	// They do not decide who may take part: see Admission.RunKey for that.
	GossipKeys [][]byte
	// Admission says who may take part. Default: everybody.
	Admission Admission
	// Control says which operator the peer obeys, and what it reports of itself to others.
	Control control.Config
	// Transport replaces the default one, on libp2p; for example by one of p2pnet.New with other
	// limits. The peer does not close it; several peers of different runs may share one. Identity,
	// Listen, Uplink and Relay are then unused.
	Transport transport.Transport
	// Membership replaces the default one, on memberlist over Transport. The peer
	// closes it. Carrier and GossipKeys are then unused.
	Membership transport.Membership

	fixed fixed
}

// fixed holds settings that only tests change.
type fixed struct {
	stall time.Duration
}

// stall bounds the wait for the next frame of another member, and for its answer. For a member that
// has answered quickly the bound is 2.5 s, or more if its link or its machine is slow.
const stall = 5 * time.Second

// patience is how long closing waits for exchanges that are under way, for repairs of earlier ones, which have grace
// otherwise, and for what else is on its way. All together are below control.DrainWithin for a member that the operator
// has asked to leave.
func (f fixed) patience(drained bool, grace time.Duration) (exchanges, repairs, rest time.Duration) {
	if !drained {
		return f.stall, grace, f.stall
	}
	const tenth = control.DrainWithin / 10
	return min(f.stall, 6*tenth), min(grace, tenth), min(f.stall, tenth/2)
}

// faults lists everything that is wrong with the configuration.
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
	if err := (p2pnet.Config{Identity: n.Identity, Listen: n.Listen, Relay: n.Relay}).Validate(); err != nil && n.Transport == nil {
		fault("Network: %w", err)
	}
	if err := (swim.Config{Carrier: n.Carrier, GossipKeys: n.GossipKeys}).Validate(); err != nil && n.Membership == nil {
		fault("Network: %w", err)
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
	if err := n.place().Validate(); err != nil {
		fault("Network.Site: %w", err)
	}
	if err := n.Control.Validate(); err != nil {
		fault("Network.Control: %w", err)
	}
	if id := n.Control.Operator; id != "" && n.Transport == nil && p2pnet.CheckPeer(id) != nil {
		fault("Network.Control.Operator: %.64q is not the id of a peer", id) // nobody could ever say anything
	}
	return faults
}

// guard makes the guard that decides who takes part; nil if everybody may.
func (n Network) guard() (*admit.Guard, error) {
	check := p2pnet.CheckPeer
	if n.Transport != nil {
		check = nil // only that transport knows the form of its ids
	}
	return admit.New(admit.Config{Run: n.Run, List: n.Admission.Allow, CheckID: check, Key: n.Admission.RunKey, Log: n.Log})
}

func (n Network) withDefaults() Network {
	n.Log = cmp.Or(n.Log, zap.NewNop())
	n.fixed = fixed{cmp.Or(n.fixed.stall, stall)}
	n.Sums.Timeout = cmp.Or(n.Sums.Timeout, DefaultTimeout)
	n.Sums.Masked = cmp.Or(n.Sums.Masked, new(n.Admission.Allow != "" || n.Admission.RunKey != nil))
	return n
}

// place is where this node says that it is.
func (n Network) place() topology.Place {
	return topology.Place{Site: n.Site, Uplink: topology.UplinkOf(n.Uplink.Rate())}
}

// described is what this node says that the run is.
func (n Network) described() description.Description {
	return description.Description{Run: n.Run, Fields: n.Description}
}

// Reach says whether others can dial a peer.
type Reach uint8

const (
	// FindReach: others count as able to dial the peer until it finds out otherwise, that is, until a relay
	// of its run has tried to by libp2p's AutoNAT and failed, and nobody has dialled it from a public
	// address. On a network of private addresses no relay tries.
	FindReach Reach = iota
	// Reachable: others can dial the peer, whatever a relay finds.
	Reachable
	// Unreachable: others cannot dial the peer, because of a NAT or a firewall. Such a peer is active: it
	// begins its exchanges itself, and others reach it through its relay, if it has one.
	Unreachable
)

// Admission says who may take part in a run. The zero value admits everybody who can reach
// a peer and knows the run's name; a peer with a list and a key demands both. Admission
// holds for every protocol of the run, and for membership too, unless Network.Membership
// replaces the default one, which then has to check admission itself.
type Admission struct {
	// Allow is a file of the ids of the peers that may take part, one a line; what follows
	// a # is a comment. It is read again when it changes: a peer that is added may join
	// from then on; a peer that is removed is disconnected and is no longer a member. A
	// change with a fault is logged and ignored. An empty name admits every id.
	Allow string
	// RunKey is a secret that all peers of the run share, transport.MinRunKey to transport.MaxRunKey
	// bytes, best random ones. The key is never sent: a peer proves that it knows the key. Nil
	// demands none.
	RunKey []byte
}

func (a Admission) validate() error {
	if n := len(a.RunKey); a.RunKey != nil && (n < transport.MinRunKey || n > transport.MaxRunKey) {
		return fmt.Errorf("Network.Admission.RunKey has %d bytes: want %d to %d", n, transport.MinRunKey, transport.MaxRunKey)
	}
	return nil
}

// inquiries is how often Inquire sends a hello. The quickest answer gives the round trip,
// since during the first both ends may still be busy with the connection.
const inquiries = 3

// Inquiry is a member's answer to a peer that asks whether it could join.
type Inquiry struct {
	// Peer is the identity that answers at the address.
	Peer transport.PeerID
	// RoundTrip is the time from a hello to its answer, the quickest of a few.
	RoundTrip time.Duration
	// FlockSteps is the member's estimate of all members' steps together.
	FlockSteps uint64
	// Description is the member's description of the run, and Signer the peer that signed it;
	// it is empty if the member sends none. It is filled in even if the layout is refused.
	Description description.Description
	Signer      transport.PeerID
	// Signed is the description as it was signed, to be passed on (Checkpoint.Describing).
	Signed description.Signed
	// Awaits is the number that a process answers with while it waits for the run itself
	// (Admission.Await); 0 if it does not wait.
	Awaits uint64
}

// Inquire connects to a process at a join address and asks, as a peer that joins with this
// admission does, whether a peer with a model of this layout hash would be admitted. It does
// not join, and other members do not learn of it. A refusal is a *transport.RefusedError;
// the Inquiry then holds what was found out before.
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

// Await answers hellos and inquiries at a transport, for a process that itself waits for a
// description of the run. The answer holds a number other than 0, which says how the process
// waits (Inquiry.Awaits); whoever asked is to ask again. Stop ends it.
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

// guard makes the guard of this admission at a transport.
func (a Admission) guard(tr transport.Transport, run string) (*admit.Guard, error) {
	return Network{Run: run, Admission: a, Transport: tr, Log: zap.NewNop()}.guard()
}
