package peer

import (
	"context"
	"fmt"
	"math/rand/v2"
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
)

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
	if err = hold(p); err != nil {
		return nil, err
	}
	if err = connect(p); err != nil {
		return nil, err
	}
	p.config.Checkpoint.resume(p.flock)
	p.orders = orders.New(orders.Config{
		Config: config.Network.Control, Run: config.Run, Layout: p.config.layout(), Stall: config.Exchange.Stall, Log: p.log,
		Begun: orders.Course{Schedule: config.Schedule, Pace: config.Exchange.Pace, Steps: config.Work.Steps, StepsPerPeer: config.Work.StepsPerPeer},
	}, p.transport, p.flock, p.digest, config.Checkpoint.Orders)
	machine, err := newMachine(p)
	if err != nil {
		return nil, err
	}
	memory := arrival.Recall(p.config.Network.partnersFile(), p.config.Network.partners(), p.log)
	if p.arrival, err = newArrival(p, memory.Past); err != nil {
		return nil, err
	}
	p.donor = newDonor(p)
	p.trainer.begin(p, machine.Traits())
	p.work = work{flock: p.flock, orders: p.orders, last: p.trainer.Finish, log: p.log}
	p.roster = newRoster(p, machine, memory.Past)
	p.talks = newTalks(p, machine.Traits())
	p.summing = newSumming(p)
	p.sums.Begin()
	loop := newLoop(p, machine, memory)
	if err = p.roster.Announce(time.Now()); err != nil {
		return nil, err
	}
	p.orders.Begin()
	p.background.Go(func() { p.orders.Run(p.running) }) // it leaves the topic
	if err = serve(p); err != nil {
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
func hold(p *Peer) (err error) {
	exchange := p.config.Exchange
	options := replica.Options{SliceLen: exchange.SliceLen, Clock: p.now, Watch: rand.Uint64()}
	if p.replica, err = replica.New(p.config.Params, options); err != nil {
		return err
	}
	p.links = links.New(links.Config{
		Codecs: exchange.Codec, Layers: p.replica.JointLayers(), Lanes: exchange.Lanes,
		Stall: exchange.Stall, Deadline: exchange.Deadline, Budget: exchange.Pace.BytesPerHour / time.Hour.Seconds(),
	})
	return nil
}

// connect brings up the transport and the membership.
func connect(p *Peer) error {
	if err := p.adapters.open(p.config, p.introduce, p.foundReachable); err != nil {
		return err
	}
	p.frames = frames{
		idle: idle.NewPool(maxIdleFrames, func() *framed.Stream { return &framed.Stream{} }),
		run:  p.config.Run, transport: p.transport, stall: p.config.Exchange.Stall, tally: p.tally,
		malformed: func(from seam.PeerID, reason wire.Reason, err error) { p.talks.Malformed(from, reason, err) },
	}
	p.flock = flock.New(p.Self())
	if p.guard != nil {
		p.flock.Trust()
	}
	p.log = p.log.With(zap.String("self", p.Self().Short()))
	if name := p.config.Network.Control.Name; name != "" {
		p.log = p.log.With(zap.String("name", name))
	}
	return nil
}

// newMachine makes the machine, and gets ready what it takes to carry it out. Its random
// choices follow from the seed and the peer's identity, so that two peers of one seed do not
// move in step.
func newMachine(p *Peer) (collective.Machine, error) {
	exchange := p.config.Exchange
	made, err := exchange.Machine(averaging.Config{
		Self: p.Self(), Pace: exchange.Pace, Deadline: exchange.Deadline, MaxInbound: exchange.Inbound,
		Rand: rand.New(rand.NewPCG(exchange.Seed, p.Self().Fingerprint())),
	})
	if err != nil {
		return nil, err
	}
	machine := collective.Of(made)
	if machine.Traits().Gradients {
		return machine, checkOneWay(p.links.Codecs())
	}
	return machine, nil
}

// newRoster is the place of a peer that trains by an algorithm and had partners in
// earlier lives.
func newRoster(p *Peer, machine collective.Machine, past []arrival.Partner) *roster.Roster {
	c := roster.Config{
		Run: p.config.Run, Transport: p.transport, Membership: p.membership, Flock: p.flock, Log: p.log,
		Algorithm: machine.Traits().Algorithm, Incarnation: 1, Unreachable: p.config.Network.Reach.Unreachable,
		Admitted: p.guard.Members, Gone: func(member seam.PeerID) bool { return p.arrival.Gone(p.exchanges, member) },
		Twin: p.arrival.MeetTwin,
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
func newTalks(p *Peer, traits collective.Traits) *talks.Talks {
	exchange, hooks := p.config.Exchange, p.config.Hooks
	return talks.New(talks.Config{
		Host: session.Host{
			Run: p.config.Run, Layout: p.config.layout(), Cut: p.replica.Cut(), Replica: p.replica, Ledger: replica.NewLedger(p.replica), Links: p.links,
			Lanes: exchange.Lanes, Window: exchange.Window, Deadline: exchange.Deadline, Traits: traits,
			Sealed: p.transport.Sealed(),
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

// newArrival is the arrival of a peer that had partners in earlier lives.
func newArrival(p *Peer, past []arrival.Partner) (*arrival.Arrival, error) {
	described, err := arrival.NewDescribed(p.transport, p.config.Description, p.config.Checkpoint.Description)
	if err != nil {
		return nil, err
	}
	quarantined := func(id seam.PeerID) time.Duration { return p.links.Quarantined(id, p.now()) }
	c := p.config.Checkpoint
	return arrival.New(arrival.Config{
		Greeter: arrival.Greeter{
			Run: p.config.Run, Layout: p.config.layout(), Guard: p.guard, Flock: p.flock, Described: described, Log: p.log,
			Build: p.config.Network.Control.Version, Converse: p.frames.converse, Incarnation: func() uint64 { return p.roster.Incarnation() },
		},
		Join: p.config.Join, Partners: past, Stall: p.config.Exchange.Stall,
		Checkpoint: arrival.Checkpoint{Steps: c.Steps, FlockSteps: c.FlockSteps, TellsWho: c.tellsWho()},
		Transport:  p.transport, Membership: p.membership, Replica: p.replica,
		Joined: p.joined, Declined: p.tally.Declined, Quarantined: quarantined, Condemn: func(id seam.PeerID, offence error) { p.talks.Condemn(id, offence) },
	}), nil
}

// newDonor is the other end of the arrivals of those that come later.
func newDonor(p *Peer) *donor.Donor {
	return donor.New(donor.Config{
		Run: p.config.Run, Layout: p.config.layout(), Transport: p.transport, Replica: p.replica,
		Claim: func() donor.Claim {
			return donor.Claim{Incarnation: p.roster.Incarnation(), Steps: p.flock.Age(), FlockSteps: p.flock.Total()}
		},
		Declines: p.arrival.Declines, Exchanging: func() bool { return p.talks.Busy() }, Closing: p.closing, Log: p.log,
	})
}

// serve registers the protocols that others may speak to this peer.
func serve(p *Peer) error {
	state := func(s *framed.Stream) error { return p.donor.Serve(p.exchanges, s) }
	members := func(s *framed.Stream) error {
		p.orders.Tell(s, p.sightings())
		return nil
	}
	for _, service := range []struct {
		protocol seam.Protocol
		handler  seam.Handler
	}{
		{seam.ProtocolHello, p.frames.answering(p.arrival.Serve)}, // first to begin and last to end: it says why not
		{seam.ProtocolExchange, p.talks.Serve},
		{seam.ProtocolState, p.frames.answering(state)},
		{seam.ProtocolControl, p.frames.answering(p.orders.Serve)},
		{seam.ProtocolMembers, p.frames.answering(members)},
		{seam.ProtocolSum, p.sums.Serve},
	} {
		stop, err := p.transport.Handle(service.protocol, p.config.Run, service.handler)
		if err != nil {
			return fmt.Errorf("serving %s: %w", service.protocol, err)
		}
		p.handlers = append(p.handlers, stop)
	}
	close(p.serving)
	return nil
}
