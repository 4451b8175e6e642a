package peer

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Config sets up a peer. Run is required, and Params where a model is trained; the zero values
// of the others are useful. All peers of a run must have the same run name, the same
// layout and the same initial values.
type Config struct {
	// Run names what is trained together: 1 to 64 bytes of text.
	Run string
	// Description says what the run is, beside its name and its layout: see package
	// description. A peer that joins is compared with what the members say. Where models or
	// work would suffer, Step fails with a *description.MismatchError; other differences are
	// logged. Default: whatever the members say, unchecked.
	Description description.Description
	// Params is the model with its initial values. The peer takes the vector
	// over: read it with Snapshot from now on. Nil in a run that only sums.
	Params *tensor.Params
	// Join lists addresses of members: full multiaddrs with a peer id, or
	// host:port. Empty for the first peer of a run. The peer keeps trying those
	// that do not answer; one that nobody could dial is an error of Start.
	Join []string
	// Network says how other peers are reached.
	Network Network
	// Checkpoint tells what lies behind Params if they come from a checkpoint of this
	// run. Default: nothing, they are the run's initial values.
	Checkpoint Checkpoint
	// Optimizer turns gradients into steps. Default: SGD with momentum 0.9. If it is an
	// optim.Validator, its faults are those of Start.
	Optimizer optim.Optimizer
	// Schedule is the learning rate over the progress of the whole flock.
	Schedule optim.Schedule
	// Exchange says how often and how models are averaged.
	Exchange Exchange
	// Work says when the run is over. Default: never.
	Work Work
	// Sums says with whom Sum, Max and Gather sum.
	Sums Sums
	// Hooks are called when something of interest has happened.
	Hooks Hooks
	// Log receives what an operator should know. Default: nothing is logged.
	Log *zap.Logger
}

// Network says how a peer is reached and reaches others.
type Network struct {
	// Key is the peer's identity. Default: one that lasts as long as the process.
	Key ed25519.PrivateKey
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
	// Reach says how others reach this peer. Default: they dial it.
	Reach Reach
	// Gossip says how the members of the run find each other.
	Gossip Gossip
	// Admission says who may take part. Default: everybody.
	Admission Admission
	// Control says whom the peer obeys, and what it tells others of itself.
	Control control.Config
	// Transport replaces the default one, on libp2p. The peer does not close it;
	// several peers of different runs may share one. Key, Listen, Reach.Relay and
	// Reach.Limits are then unused.
	Transport seam.Transport
	// Membership replaces the default one, on memberlist over Transport. The peer
	// closes it. Gossip is then unused.
	Membership seam.Membership
}

// Exchange says how often and how models are averaged.
type Exchange struct {
	// Pace says when this peer initiates exchanges. Default: the measured link and
	// step times decide, so that communication stays hidden behind computation.
	Pace averaging.Pace
	// Codec says how slices are coded. Default: raw.
	Codec quant.Policy
	// SliceLen is the number of values in a slice, the same for all peers of a
	// run. Default: 32,768 (128 KiB).
	SliceLen int
	// Window is the number of slices in flight on each lane, 1 to 120 over all lanes.
	// Default: as many as take 1 MiB to begin with, which are eight slices of the default
	// length as raw, and then as many as fill the link, of which the passive side keeps up
	// to 8 MiB. A lane carries no more than a window in a round trip.
	Window int
	// Lanes is the number of connections that an exchange may use at once, 1 to 8,
	// over several addresses of the partner where it has them; of two peers that
	// differ, the smaller number counts. Default: 1, which is best where two busy
	// cores are the limit, and 4 to a partner to whom the link is fast and long at once:
	// with 256 KiB on the way or more, where an exchange moves 4 MiB or more. On links
	// that limit each connection, k lanes are up to k times as fast.
	Lanes int
	// Inbound bounds the exchanges that this peer serves at once; a further one is
	// refused, and its initiator asks the next. With c exchanges at once each moves
	// the models by 1/(1+c) of their difference. Default: 1.
	Inbound int
	// Deadline bounds an exchange. One with a partner that is known is given up sooner:
	// once it takes several times longer than those before. Default: 30 s.
	Deadline time.Duration
	// Stall bounds the wait for the next frame of a partner in an exchange, and
	// for the answer to a proposal. One that has answered quickly is waited for less
	// long: for 2.5 s, unless its link or its machine is so slow that it needs more.
	// Default: 5 s.
	Stall time.Duration
	// Machine makes the algorithm that decides who talks to whom. Default:
	// averaging.NewADPSGD.
	Machine func(averaging.Config) (averaging.Machine, error)
	// Seed makes the peer's random choices repeatable.
	Seed uint64
}

// Work says how much the flock has to do. If both numbers are given, the run is
// over when either is reached. Hardly more is done (docs/design/003): by peers that are
// equally fast at most one step each, for work that cannot be divided; where speeds change
// or members die near the end, what is done in about a second.
type Work struct {
	// Steps is the number of gradient steps of all peers together.
	Steps uint64
	// StepsPerPeer is the number of gradient steps times the most peers that were
	// members at once, however unequal their shares.
	StepsPerPeer uint64
	// Grace bounds how long Close goes on serving exchanges once the run is over
	// here, until it is over everywhere. Default: 10 s.
	Grace time.Duration
}

// Exchanged describes a completed exchange.
type Exchanged struct {
	// Partner is the other peer; Inbound tells that it was the one to initiate.
	Partner seam.PeerID
	Inbound bool
	// Distance is the distance between the two models before the exchange.
	Distance float64
	// Bytes is what was sent and received, headers included.
	Bytes uint64
	// Took is the time from the proposal to the last acknowledgement.
	Took time.Duration
}

// Defaults of Config and its parts.
const (
	// WideLanes is Exchange.Lanes where it is left to the link, and the link is fast and long.
	WideLanes    = links.WideLanes
	DefaultStall = 5 * time.Second
	DefaultGrace = 10 * time.Second
)

// validate reports all faults at once.
func (c Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := wire.CheckRun(c.Run); err != nil {
		fault("Run: %w", err)
	}
	if d := c.Description; d.Run != "" && d.Run != c.Run {
		fault("Description is one of run %q, not of Run %q", d.Run, c.Run)
	} else if err := d.Validate(); err != nil {
		fault("Description: %w", err)
	}
	for _, address := range c.Join {
		if err := p2pnet.CheckJoin(address); err != nil && c.Network.Transport == nil {
			fault("Join: %w", err)
		}
	}
	if c.Params != nil && layoutOf(c.Params) == nil {
		fault("Params has no layout: give the model with its initial values, made by tensor.NewParams or tensor.WrapParams")
	} else if c.Params != nil && !tensor.Finite(c.Params.Vector()) {
		fault("Params holds NaN or infinite values")
	}
	if layout := layoutOf(c.Params); layout != nil && !sharesAnything(layout) {
		fault("Params: no range of the layout is shared, so there is nothing to exchange")
	}
	if key := c.Network.Key; key != nil && len(key) != ed25519.PrivateKeySize {
		fault("Network.Key has %d bytes: want an Ed25519 private key of %d", len(key), ed25519.PrivateKeySize)
	}
	if n := len(c.Network.Partners); n > MaxPartners {
		fault("Network.Partners has %d: want at most %d", n, MaxPartners)
	}
	for _, p := range c.Network.Partners {
		if err := p.validate(); err != nil {
			faults = append(faults, err)
		}
	}
	if c.Network.Reach.Unreachable && c.Network.Reach.Reachable {
		fault("Network.Reach.Unreachable and Reachable are both set: set one of them, or none")
	}
	if err := c.Network.Admission.validate(); err != nil {
		faults = append(faults, err)
	}
	if err := c.Exchange.Codec.Validate(layoutOf(c.Params)); err != nil {
		fault("Exchange.Codec: %w", err)
	}
	if n := c.Exchange.SliceLen; n < 0 || n > replica.MaxSliceLen {
		fault("Exchange.SliceLen is %d: want 1 to %d values, or 0 for the default", n, replica.MaxSliceLen)
	}
	if n := c.Exchange.Window; n < 0 || n > replica.MaxWindow {
		fault("Exchange.Window is %d: want 1 to %d slices, or 0 for the default", n, replica.MaxWindow)
	}
	if n := c.Exchange.Lanes; n < 0 || n > replica.MaxLanes {
		fault("Exchange.Lanes is %d: want 1 to %d connections, or 0 for the default", n, replica.MaxLanes)
	}
	if n := c.Exchange.Inbound; n < 0 || n > averaging.MaxOverlap {
		fault("Exchange.Inbound is %d: want 1 to %d exchanges, or 0 for the default", n, averaging.MaxOverlap)
	}
	if err := c.Exchange.Pace.Validate(); err != nil {
		fault("Exchange.Pace: %w", err)
	}
	if c.Exchange.Deadline < 0 || c.Exchange.Stall < 0 || c.Work.Grace < 0 {
		fault("Exchange.Deadline %s, Exchange.Stall %s and Work.Grace %s: none may be negative", c.Exchange.Deadline, c.Exchange.Stall, c.Work.Grace)
	}
	for _, err := range []error{c.Checkpoint.validate(), c.Sums.validate()} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if err := c.Schedule.Validate(); err != nil {
		fault("Schedule: %w", err)
	}
	if o, can := c.Optimizer.(optim.Validator); can {
		if err := o.Validate(layoutOf(c.Params)); err != nil {
			fault("Optimizer: %w", err)
		}
	}
	if err := c.Network.Control.Validate(); err != nil {
		fault("Network.Control: %w", err)
	}
	return errors.Join(faults...)
}

// partnersFile is where partners are remembered, empty if nowhere.
func (n Network) partnersFile() string {
	if n.KnownPeers == "" {
		return ""
	}
	return n.KnownPeers + ".partners"
}

// guard decides who takes part; it is nil if everybody does.
func (c Config) guard() (*admit.Guard, error) {
	check := p2pnet.CheckPeer
	if c.Network.Transport != nil {
		check = nil // only it knows what its ids look like
	}
	return admit.New(admit.Config{
		Run: c.Run, List: c.Network.Admission.Allow, CheckID: check, Key: c.Network.Admission.Key, Log: c.Log,
	})
}

func layoutOf(params *tensor.Params) *tensor.Layout {
	if params == nil {
		return nil
	}
	return params.Layout()
}

func sharesAnything(layout *tensor.Layout) bool {
	for i := range layout.Count() {
		if layout.At(i).Sharing == tensor.Shared {
			return true
		}
	}
	return false
}

func (c Config) withDefaults() Config {
	c.Description.Run = c.Run
	if c.Optimizer == nil {
		c.Optimizer = &optim.SGD{Momentum: optim.DefaultMomentum}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Exchange.Deadline == 0 {
		c.Exchange.Deadline = averaging.DefaultDeadline
	}
	if c.Exchange.Stall == 0 {
		c.Exchange.Stall = DefaultStall
	}
	if c.Exchange.Machine == nil {
		c.Exchange.Machine = func(config averaging.Config) (averaging.Machine, error) { return averaging.NewADPSGD(config) }
	}
	if c.Work.Grace == 0 {
		c.Work.Grace = DefaultGrace
	}
	if c.Sums.Patience == 0 {
		c.Sums.Patience = DefaultPatience
	}
	return c
}

// Reach says how others reach a peer, and what they may take of its process. All but the
// first two are for the default transport. The zero value is a peer that others can dial
// until it finds out otherwise: until a relay of its run, by libp2p's AutoNAT, has tried
// and failed, and nobody has dialled it from a public address. On a network of private
// addresses nobody tries.
type Reach struct {
	// Unreachable says that others cannot dial this peer: it is behind a NAT or a firewall
	// that lets nobody in. Such a peer is active: it begins its exchanges itself, and
	// others meet it through its relay, if it has one.
	Unreachable bool
	// Reachable says that others can dial it, whatever a relay finds.
	Reachable bool
	// Relay is for peers that others cannot dial but through a relay, and for those that
	// are one.
	Relay p2pnet.Relay
	// Limits bound the memory, connections and streams that others take.
	Limits p2pnet.Limits
}

// Gossip says how the members of a run find each other, for the default membership.
type Gossip struct {
	// Carrier is what news of members travels by. Default: streams, and datagrams in
	// a flock of more than swim.WideAbove, which spare a connection to every member.
	Carrier swim.Carrier
	// Keys encrypt it, with the first, and decrypt it with any: 16, 24 or 32 bytes
	// each, the same for all peers. Default: none; streams are encrypted in any case.
	// It is no admission: see Admission.Key for that.
	Keys [][]byte
}

// WireVersion is the version of the frames that peers speak. Those of one run must have
// the same; a peer of another is refused, and says so.
const WireVersion = wire.Version

// layout tells a model's parameters from those of another.
func (c Config) layout() [32]byte { return c.Params.Layout().Hash() }

// Hooks are called on goroutines of the peer, one call at a time for each hook.
// They should return soon: the next call waits for them. They must not call
// Close, which waits for them too.
type Hooks struct {
	// Exchanged is called after each completed exchange.
	Exchanged func(Exchanged)
	// Failed is called after each exchange that broke off.
	Failed func(seam.PeerID, error)
	// Quarantined is called when a partner has sent what no honest one sends (NaN,
	// values no model of the run can have, frames out of order) and is kept away
	// for a while. Nothing of it was applied.
	Quarantined func(partner seam.PeerID, term time.Duration, offence error)
}

// turn lets one call at a time through: it holds a token meanwhile.
type turn chan struct{}

func (t turn) take() (end func()) {
	t <- struct{}{}
	return func() { <-t }
}

// inTurn are the hooks with one call at a time for each, and nothing to do for those that
// are nil.
func (h Hooks) inTurn() Hooks {
	exchanged, failed, quarantined := make(turn, 1), make(turn, 1), make(turn, 1)
	one := Hooks{Exchanged: func(Exchanged) {}, Failed: func(seam.PeerID, error) {}, Quarantined: func(seam.PeerID, time.Duration, error) {}}
	if h.Exchanged != nil {
		one.Exchanged = func(x Exchanged) {
			defer exchanged.take()()
			h.Exchanged(x)
		}
	}
	if h.Failed != nil {
		one.Failed = func(partner seam.PeerID, err error) {
			defer failed.take()()
			h.Failed(partner, err)
		}
	}
	if h.Quarantined != nil {
		one.Quarantined = func(partner seam.PeerID, term time.Duration, offence error) {
			defer quarantined.take()()
			h.Quarantined(partner, term, offence)
		}
	}
	return one
}
