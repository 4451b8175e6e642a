package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/donor"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/roster"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/talks"
	"github.com/seed-97356399/murmuration/internal/tally"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// Peer is one member of a run. Step and Apply belong to one trainer goroutine;
// every other method is safe for concurrent use.
type Peer struct {
	config Config
	log    *zap.Logger

	replica *replica.Replica
	flock   *flock.Flock
	trainer training
	tally   *tally.Tally
	orders  *orders.Orders
	roster  *roster.Roster // this peer's place among the members
	donor   *donor.Donor   // gives newcomers the model
	work    work           // what the flock is to do

	ledger *replica.Ledger
	links  *links.Links // how each partner is met
	talks  *talks.Talks

	arrival *arrival.Arrival
	notices chan notice

	adapters
	frames frames // of conversations that are no exchange
	lifetime
}

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
	config.Log, config.Hooks = log, config.Hooks.inTurn()
	p := &Peer{
		adapters: adapters{membership: config.Network.Membership},
		config:   config, log: log,
		notices: make(chan notice, maxNotices),
		tally:   tally.New(),
	}
	p.lifetime.begin(untold)
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
	p.orders = orders.New(orders.Config{
		Config: config.Network.Control, Run: config.Run, Layout: p.config.layout(), Stall: config.Exchange.Stall, Log: p.log,
		Begun: orders.Course{Schedule: config.Schedule, Pace: config.Exchange.Pace, Steps: config.Work.Steps, StepsPerPeer: config.Work.StepsPerPeer},
	}, p.transport, p.flock, p.digest, config.Checkpoint.Orders)
	machine, err := p.algorithm()
	if err != nil {
		return nil, err
	}
	p.work = work{flock: p.flock, orders: p.orders, last: p.trainer.Finish, log: p.log}
	memory := arrival.Recall(p.config.Network.partnersFile(), p.log)
	p.arrive(memory.Past)
	p.roster = p.newRoster(machine, memory.Past)
	p.talks = p.newTalks(machine.Traits())
	loop := newLoop(p, machine, memory)
	if err = p.roster.Announce(time.Now()); err != nil {
		return nil, err
	}
	p.orders.Begin()
	p.background.Go(func() { p.orders.Run(p.running) }) // it leaves the topic
	if err = p.serve(); err != nil {
		return nil, err
	}
	p.background.Go(loop.run)
	p.arrival.Begin()
	p.background.Go(func() {
		tally.WatchStandstill(p.running, p.tally, func() bool { return p.flock.Steps() > p.flock.Resumed() && !p.flock.IsOver() })
	})
	p.background.Go(func() { p.guard.Watch(p.running, p.showOut) })
	return p, nil
}

// hold takes the parameters up, and says how they are cut and coded.
func (p *Peer) hold() (err error) {
	exchange := p.config.Exchange
	options := replica.Options{SliceLen: exchange.SliceLen, Clock: p.now, Watch: rand.Uint64()}
	if p.replica, err = replica.New(p.config.Params, options); err != nil {
		return err
	}
	p.ledger = replica.NewLedger(p.replica)
	p.links = links.New(links.Config{
		Codecs: exchange.Codec, Layers: p.replica.JointLayers(), Lanes: exchange.Lanes,
		Stall: exchange.Stall, Deadline: exchange.Deadline, Budget: exchange.Pace.BytesPerHour / time.Hour.Seconds(),
	})
	return nil
}

// algorithm makes the machine, and gets ready what it takes to carry it out. Its random
// choices follow from the seed and the peer's identity, so that two peers of one seed do not
// move in step.
func (p *Peer) algorithm() (collective.Machine, error) {
	exchange := p.config.Exchange
	made, err := exchange.Machine(averaging.Config{
		Self: p.Self(), Pace: exchange.Pace, Deadline: exchange.Deadline, MaxInbound: exchange.Inbound,
		Rand: rand.New(rand.NewPCG(exchange.Seed, p.Self().Fingerprint())),
	})
	if err != nil {
		return nil, err
	}
	machine := collective.Of(made)
	traits := machine.Traits()
	p.trainer.begin(p, traits)
	if traits.Gradients {
		return machine, checkOneWay(p.links.Codecs())
	}
	return machine, nil
}

// connect brings up the transport and the membership.
func (p *Peer) connect() error {
	if err := p.adapters.open(p.config, p.introduce, p.foundReachable); err != nil {
		return err
	}
	p.frames = frames{
		idle: idle.NewPool(maxIdleFrames, func() *framed.Stream { return &framed.Stream{} }),
		run:  p.config.Run, transport: p.transport, stall: p.config.Exchange.Stall, tally: p.tally,
		malformed: func(from seam.PeerID, reason wire.Reason, err error) { p.talks.Malformed(from, reason, err) },
	}
	p.flock = flock.New(p.Self())
	p.log = p.log.With(zap.String("self", p.Self().Short()))
	return nil
}

// newRoster is the place of a peer that trains by an algorithm and had partners in
// earlier lives.
func (p *Peer) newRoster(machine collective.Machine, past []arrival.Partner) *roster.Roster {
	c := roster.Config{
		Run: p.config.Run, Transport: p.transport, Membership: p.membership, Flock: p.flock, Log: p.log,
		Algorithm: machine.Traits().Algorithm, Incarnation: 1, Unreachable: p.config.Network.Reach.Unreachable,
		Admitted: p.guard.Members, Gone: func(member seam.PeerID) bool { return p.arrival.Gone(p.exchanges, member) },
		Arrived: func() (reached, placed bool) {
			return p.arrival.Reached(), p.arrival.Placed()
		},
		Spawn: func(work func(context.Context)) bool { return p.transfers.Spawn(func() { work(p.exchanges) }) },
	}
	if checkpoint := p.config.Checkpoint; checkpoint.tellsWho() {
		c.Incarnation = checkpoint.Incarnation + 1
	}
	for _, old := range past {
		c.Past = append(c.Past, old.ID)
	}
	return roster.New(c)
}

// newTalks makes the talks of a peer whose machine has these traits.
func (p *Peer) newTalks(traits collective.Traits) *talks.Talks {
	exchange, hooks := p.config.Exchange, p.config.Hooks
	return talks.New(talks.Config{
		Host: session.Host{
			Run: p.config.Run, Layout: p.config.layout(), Cut: p.replica.Cut(), Replica: p.replica, Ledger: p.ledger, Links: p.links,
			Lanes: exchange.Lanes, Window: exchange.Window, Deadline: exchange.Deadline, Traits: traits,
		},
		Transport: p.transport, Membership: p.membership, Flock: p.flock, Roster: p.roster, Tally: p.tally, Log: p.log,
		Started: p.started, Stall: exchange.Stall, Running: p.running, Exchanges: p.exchanges, Closing: p.closing,
		Spawn: p.transfers.Spawn, Ready: p.arrival.Open, StepTime: p.trainer.stepTime,
		Hello: func(ctx context.Context, member seam.PeerID) error {
			_, err := p.arrival.Hello(ctx, member)
			return err
		},
		Reports: talks.Reports{
			Event: func(e collective.Event) { p.notify(notice{event: e}) },
			Ask: func(e collective.Event, x *talks.Ongoing, verdict chan<- averaging.Action) bool {
				return p.notify(notice{event: e, proposed: x, verdict: verdict})
			},
			Doubts:    func() { p.notify(notice{doubts: true}) },
			Corrected: func() { p.notify(notice{corrected: true}) },
			Unfit:     func(err error) { p.trainer.updates.fault(leftOut(err)) },
			Exchanged: func(done collective.Event, took time.Duration) {
				hooks.Exchanged(Exchanged{Partner: done.Peer, Inbound: done.Inbound, Distance: done.Distance, Bytes: done.Bytes, Took: took})
			},
			Failed: hooks.Failed, Quarantined: hooks.Quarantined,
		},
	})
}

// showOut disconnects peers that have been taken off the list, and has the loop take the
// members anew.
func (p *Peer) showOut(removed []seam.PeerID) {
	for _, id := range removed {
		p.disconnect(id)
	}
	p.notify(notice{corrected: true})
}

// Self is the peer's identity.
func (p *Peer) Self() seam.PeerID { return p.transport.Self() }

// JoinAddresses are addresses, with the peer's identity, that another peer may
// give in Config.Join.
func (p *Peer) JoinAddresses() []string {
	return p.transport.JoinAddresses()
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
		present, _ := p.flock.Members()
		if present >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d members, %d are here: %w", n, present, ctx.Err())
		case <-p.closing:
			return ErrClosed
		case <-p.arrival.Barred():
			return p.arrival.Fault()
		case <-ticker.C:
		}
	}
}

// Close leaves the run: if the run is over here, it first serves the others until
// it is over for all, within Config.Work.Grace; then it lets the exchanges in
// flight finish, within Config.Exchange.Stall, asks partners that answer what became of
// the slices in doubt of earlier ones, within Config.Work.Grace, tells the others, and
// waits for every goroutine of the peer. It is idempotent.
func (p *Peer) Close() error {
	p.once.Do(func() {
		if p.flock.IsOver() {
			p.linger()
		}
		close(p.closing)
		p.fault = p.dismantle()
		p.tellMerged()
		p.untold()
	})
	return p.fault
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
		case <-p.flock.Flown():
			return
		case <-ticker.C:
			working := p.flock.Working()
			if p.merging() || len(working) == 0 || slices.ContainsFunc(working, func(id seam.PeerID) bool { return !p.arrival.Gone(p.exchanges, id) }) {
				continue
			}
			return
		case <-grace.C:
			p.log.Info("leaving although some members are still at work", zap.Duration("grace", p.config.Work.Grace))
			return
		}
	}
}

// dismantle ends everything that assemble has begun, as far as it came.
func (p *Peer) dismantle() error {
	if p.arrival != nil {
		p.arrival.Close()
	}
	timer := time.AfterFunc(p.config.Exchange.Stall, func() {
		p.breakExchanges()
		if p.talks != nil {
			p.talks.BreakOff()
		}
	})
	if len(p.handlers) > 0 { // else nobody could begin an exchange
		p.talks.Wait()
		timer.Stop()
		p.talks.RepairAll(p.config.Work.Grace)
	}
	timer.Reset(p.config.Exchange.Stall) // for what else is on its way
	defer timer.Stop()
	if p.talks != nil {
		p.talks.EndWords(p.config.Exchange.Stall)
	}
	for len(p.handlers) > 1 {
		last := len(p.handlers) - 1
		p.handlers[last]()
		p.handlers = p.handlers[:last]
	}
	p.transfers.End()
	p.stop()
	p.background.Wait()
	var faults []error
	if p.membership != nil {
		faults = append(faults, p.membership.Close())
	}
	for _, stop := range p.handlers {
		stop()
	}
	if p.own != nil {
		faults = append(faults, p.transport.Close())
	}
	return errors.Join(faults...)
}

// merging tells that the final merge is still to come (docs/design/022): from the end of
// the run on no step is applied, and once the parameters are pooled nothing but the merge
// changes them.
func (p *Peer) merging() bool { return p.trainer.pools && !p.flock.Settled() }

// tellMerged says, of a peer that has left, if there was to be a merge and is none.
func (p *Peer) tellMerged() {
	if p.flock.IsOver() && p.merging() {
		p.log.Warn("the final merge has not come about within the time to leave: this peer keeps its own model. If links are slow or members busy, allow more time",
			zap.Duration("grace", p.config.Work.Grace))
	}
}
