package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// Peer is one member of a run. Step and Apply belong to one trainer goroutine;
// every other method is safe for concurrent use.
type Peer struct {
	config Config
	log    *zap.Logger
	untold func() // logs the counts of lines that were left out
	cut    uint64 // digest of the slices
	plans  *plans
	layout [32]byte

	transport     seam.Transport
	ownsTransport bool
	membership    seam.Membership
	guard         *guard        // nil if everybody is admitted
	serving       chan struct{} // closed when others can speak to this peer, and it to them

	replica  *replica.Replica
	flock    *flock
	trainer  trainer
	counters counters
	talks    talks
	hooks    hookCalls
	control  *control
	reach    reachability
	giving   giving                     // of copies of the model to newcomers
	copied   atomic.Pointer[StateStats] // how this peer came by its own, nil while it has not

	optimizing sync.Mutex // held while the optimizer makes a step and it is added
	sides      sides
	underway   underway
	sessions   sessions
	repairs    repairs
	lame       lame
	tempos     tempos
	quarantine quarantine

	incarnation atomic.Uint64
	arrival     arrival
	notices     chan notice
	proceed     chan struct{}         // one token: the trainer may take its next step
	halts       chan averaging.Reason // one: why it may not
	together    *together             // nil unless the machine averages gradients
	final       *final                // nil unless the machine merges in the end
	batch       batch
	telling     telling
	heedsWords  bool // the machine may have a use for what others tell it
	oneWay      oneWay

	over  chan struct{} // closed when the run is over here
	flown chan struct{} // closed when the run is over for every member

	running         context.Context // ends when Close has nothing left to wait for
	stop            context.CancelFunc
	exchanges       context.Context // ends when exchanges in flight are broken off
	breakExchanges  context.CancelFunc
	closing         chan struct{} // closed when Close begins
	closeOnce       sync.Once
	closeErr        error
	transfers       tasks          // outbound exchanges and probes
	background      sync.WaitGroup // the loop and the joiner
	handlers        []func()       // stop the protocols' handlers
	announceEvery   time.Duration
	started         time.Time
	connectionsPeak atomic.Int64
	comparisons     comparisons
}

// defaultAnnounceEvery is how often a member's progress is announced while it
// changes, in a flock of up to announceShare members: what others know of it lags by
// about as much.
const defaultAnnounceEvery = 300 * time.Millisecond

// Start makes a peer, listens, and begins to join in the background; it waits
// for nobody. The context covers starting only. It reports all faults of the
// configuration at once.
func Start(ctx context.Context, config Config) (*Peer, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("peer configuration: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting a peer: %w", err)
	}
	p, err := assemble(config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("starting a peer of run %q: %w", config.Run, err)
	}
	return p, nil
}

// assemble builds a peer from a valid configuration and sets it going.
func assemble(config Config) (_ *Peer, err error) {
	log, untold := loglimit.Limit(config.Log)
	config.Log = log
	p := &Peer{
		config: config, log: log, untold: untold, layout: config.Params.Layout().Hash(), flock: newFlock(),
		notices: make(chan notice, maxNotices), proceed: make(chan struct{}, 1), halts: make(chan averaging.Reason, 1),
		over: make(chan struct{}), flown: make(chan struct{}), closing: make(chan struct{}),
		announceEvery: defaultAnnounceEvery, started: time.Now(),
		membership: config.Network.Membership, talks: newTalks(), arrival: newArrival(), hooks: newHookCalls(config.Hooks),
		oneWay: newOneWay(), serving: make(chan struct{}),
	}
	p.incarnation.Store(1)
	p.reach.begin(config.Network.Reach)
	p.giving.pacer.rate = config.Network.State.Rate
	p.running, p.stop = context.WithCancel(context.Background())
	p.exchanges, p.breakExchanges = context.WithCancel(p.running)
	defer func() {
		if err != nil {
			p.dismantle()
		}
	}()
	if err = p.hold(); err != nil {
		return nil, err
	}
	if err = p.connect(); err != nil {
		return nil, err
	}
	p.resume()
	p.control = newControl(p, config)
	p.control.recall(config.Network.State.Checkpoint.Orders)
	machine, err := p.obey()
	if err != nil {
		return nil, err
	}
	loop := newLoop(p, machine)
	if err = loop.announce(); err != nil {
		return nil, err
	}
	p.control.start()
	if err = p.serve(); err != nil {
		return nil, err
	}
	close(p.serving)
	p.background.Go(loop.run)
	p.background.Go(p.join)
	p.background.Go(p.watchStandstill)
	p.background.Go(func() { p.revisit(loop.memory.past) })
	if p.config.Network.Admission.Allow != "" {
		p.background.Go(p.watchList)
	}
	return p, nil
}

// hold takes the parameters up, and says how they are cut and coded.
func (p *Peer) hold() (err error) {
	exchange := p.config.Exchange
	options := replica.Options{SliceLen: exchange.SliceLen, Clock: p.now, Watch: rand.Uint64()}
	if p.replica, err = replica.New(p.config.Params, options); err != nil {
		return err
	}
	p.cut, p.sides = p.replica.Cut(), newSides(p.replica)
	p.plans = newPlans(exchange.Codec, p.replica.JointLayers(), exchange.Deadline, exchange.Pace.BytesPerHour/time.Hour.Seconds())
	p.trainer.prepare(p.replica.Len())
	return nil
}

// obey makes the algorithm, and gets ready what it takes to carry it out.
func (p *Peer) obey() (averaging.Machine, error) {
	machine, err := p.machine()
	if err != nil {
		return nil, err
	}
	p.together, p.final, p.heedsWords = newTogether(machine, p.replica), newFinal(machine, p.replica), heedsWords(machine)
	p.batch.machine, _ = machine.(averaging.BatchSizer)
	return machine, p.checkOneWay()
}

// connect brings up the transport and the membership.
func (p *Peer) connect() (err error) {
	network := p.config.Network
	p.transport = network.Transport
	if p.guard, err = newGuard(p.config); err != nil {
		return err
	}
	if p.transport == nil {
		p.transport, err = p2pnet.New(p2pnet.Config{
			Key: network.Key, Listen: network.Listen, Known: network.KnownPeers,
			Admit: p.guard.admitID, Member: p.guard.takesPart, Introduce: p.introduce, Reachable: p.foundReachable,
			Limits: network.Reach.Limits, Relay: network.Reach.Relay, Log: p.log,
		})
		if err != nil {
			return err
		}
		p.ownsTransport = true
	}
	p.transport = p.guard.over(p.transport)
	p.log = p.log.With(zap.String("self", p.transport.Self().Short()))
	if p.membership != nil {
		return nil
	}
	membership, err := swim.New(swim.Config{
		Transport: p.transport, Run: p.config.Run, Admission: p.guard.forMembers(),
		Carrier: network.Gossip.Carrier, Keys: network.Gossip.Keys, Log: p.log,
	})
	if err == nil {
		p.membership = membership
	}
	return err
}

// machine makes the algorithm. Its random choices follow from the seed and the
// peer's identity, so that two peers of one seed do not move in step.
func (p *Peer) machine() (averaging.Machine, error) {
	exchange := p.config.Exchange
	return exchange.Machine(averaging.Config{
		Self: topology.PeerID(p.Self()), Pace: exchange.Pace, Deadline: exchange.Deadline,
		MaxInbound: exchange.Inbound,
		Rand:       rand.New(rand.NewPCG(exchange.Seed, fingerprint(p.Self()))),
	})
}

// serve registers the protocols that others may speak to this peer.
func (p *Peer) serve() error {
	for _, service := range []struct {
		protocol seam.Protocol
		handler  seam.Handler
	}{
		{seam.ProtocolHello, p.serveHello}, // first to begin and last to end: it says why not
		{seam.ProtocolExchange, p.serveExchange},
		{seam.ProtocolState, p.serveState},
		{seam.ProtocolControl, p.serveControl},
	} {
		stop, err := p.transport.Handle(service.protocol, p.config.Run, service.handler)
		if err != nil {
			return fmt.Errorf("serving %s: %w", service.protocol, err)
		}
		p.handlers = append(p.handlers, stop)
	}
	return nil
}

// Self is the peer's identity.
func (p *Peer) Self() seam.PeerID { return p.transport.Self() }

// JoinAddresses are addresses, with the peer's identity, that another peer may
// give in Config.Join.
func (p *Peer) JoinAddresses() []string {
	return joinAddresses(p.transport)
}

func joinAddresses(transport seam.Transport) []string {
	if full, ok := transport.(interface{ JoinAddresses() []string }); ok {
		return full.JoinAddresses()
	}
	return transport.Addresses()
}

// Snapshot copies the parameters into dst, which must have as many values as the
// layout, as they are at one moment between two steps. It never stops the
// trainer.
func (p *Peer) Snapshot(dst tensor.Vector) { p.replica.Consistent(dst) }

// WaitMembers waits until the run has at least n members, this one included. It
// fails as Step does if the members asked to join will not have this peer.
func (p *Peer) WaitMembers(ctx context.Context, n int) error {
	const look = 10 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		present, _ := p.flock.members()
		if present >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d members, %d are here: %w", n, present, ctx.Err())
		case <-p.closing:
			return ErrClosed
		case <-p.arrival.barred:
			return p.arrival.fault
		case <-ticker.C:
		}
	}
}

// Close leaves the run: if the run is over here, it first serves the others until
// it is over for all, within Config.Work.Grace; then it lets the exchanges in
// flight finish, within Config.Exchange.Stall, settles what is in doubt of earlier
// ones with partners that answer, within Config.Work.Grace, tells the others, and
// waits for every goroutine of the peer. It is idempotent.
func (p *Peer) Close() error {
	p.closeOnce.Do(func() {
		if p.counters.over.Load() {
			p.linger()
		}
		close(p.closing)
		p.closeErr = p.dismantle()
		p.tellMerged()
		p.untold()
	})
	return p.closeErr
}

// linger serves the others until the run is over for all.
func (p *Peer) linger() {
	const look = time.Second // between two looks for members that have died at work
	grace := time.NewTimer(p.config.Work.Grace)
	defer grace.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-p.flown:
			return
		case <-ticker.C:
			if working := p.flock.working(); !p.final.pending() && len(working) > 0 && p.allGone(working) {
				return
			}
		case <-grace.C:
			p.log.Info("leaving although some members are still at work", zap.Duration("grace", p.config.Work.Grace))
			return
		}
	}
}

// dismantle ends everything that assemble has begun, as far as it came.
func (p *Peer) dismantle() error {
	timer := time.AfterFunc(p.config.Exchange.Stall, func() {
		p.breakExchanges()
		p.underway.breakOff()
	})
	if len(p.handlers) > 0 { // else nobody could begin an exchange
		p.underway.settled()
		timer.Stop()
		p.settleUp(p.config.Work.Grace)
	}
	timer.Reset(p.config.Exchange.Stall) // for what else is on its way
	defer timer.Stop()
	p.telling.end(p.config.Exchange.Stall)
	for len(p.handlers) > 1 {
		last := len(p.handlers) - 1
		p.handlers[last]()
		p.handlers = p.handlers[:last]
	}
	p.transfers.end()
	p.stop()
	p.background.Wait()
	var faults []error
	if p.membership != nil {
		faults = append(faults, p.membership.Close())
	}
	for _, stop := range p.handlers {
		stop()
	}
	if p.ownsTransport {
		faults = append(faults, p.transport.Close())
	}
	return errors.Join(faults...)
}

// fingerprint spreads an identity over 64 bits (FNV-1a).
func fingerprint(id seam.PeerID) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return h
}
