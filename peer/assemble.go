package peer

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/donor"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/roster"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/talks"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// newRoster is the place of a member that had partners in earlier lives.
func newRoster(n *Node, past []arrival.Partner) *roster.Roster {
	c := roster.Config{
		Run: n.network.Run, Transport: n.net.transport, Membership: n.net.membership, Flock: n.flock, Log: n.log,
		Incarnation: 1, Unreachable: n.network.Reach == Unreachable, Admitted: n.net.guard.Members, Twin: n.arrival.MeetTwin,
		Gone: func(member seam.PeerID) bool { return n.arrival.Gone(n.life.Working, member) },
		Arrived: func() (reached, placed bool) {
			return n.arrival.Reached(), n.arrival.Placed()
		},
		Spawn: func(work func(context.Context)) bool { return n.life.Tasks.Spawn(func() { work(n.life.Working) }) },
	}
	for _, old := range past {
		c.Past = append(c.Past, old.ID)
	}
	return roster.New(c)
}

// newMachine makes the machine, and gets ready what it takes to carry it out. Its random
// choices follow from the peer's identity.
func newMachine(t *Trainer) (collective.Machine, error) {
	exchange, self := t.with.Exchange, t.node.Self()
	made, err := exchange.Machine(averaging.Config{
		Self: self, Pace: exchange.Pace, Deadline: exchange.Deadline,
		Rand: rand.New(rand.NewPCG(0, self.Fingerprint())),
	})
	if err != nil {
		return nil, err
	}
	machine := collective.Of(made)
	traits := machine.Traits()
	if traits.Size != nil {
		traits.Size.SetLength(t.replica.SharedLen())
	}
	if traits.Gradients {
		return machine, t.links.OneWay()
	}
	return machine, nil
}

// newTalks makes the talks of a trainer whose machine has these traits.
func newTalks(t *Trainer, traits collective.Traits) *talks.Talks {
	n, exchange, hooks := t.node, t.with.Exchange, t.with.Hooks
	return talks.New(talks.Config{
		Host: session.Host{
			Run: n.network.Run, Layout: t.layout, Cut: t.replica.Cut(), Replica: t.replica, Ledger: replica.NewLedger(t.replica), Links: t.links,
			Lanes: exchange.Lanes, Window: exchange.Window, Deadline: exchange.Deadline, Traits: traits,
			Sealed: n.net.transport.Sealed(),
		},
		Transport: n.net.transport, Membership: n.net.membership, Flock: n.flock, Roster: n.roster, Tally: n.tally, Log: t.log,
		Started: t.life.Started, Stall: n.network.fixed.stall, Running: t.life.Running, Exchanges: t.life.Working, Closing: t.life.Closing,
		Spawn: t.life.Tasks.Spawn, Ready: t.newcomer.Open, StepTime: t.steps.stepTime, Malformed: n.frames.malformed,
		Hello: func(ctx context.Context, member seam.PeerID) error {
			_, err := n.arrival.Hello(ctx, member)
			return err
		},
		Reports: talks.Reports{
			Event: func(e collective.Event) { n.notify(notice{event: e}) },
			Ask: func(e collective.Event, x *talks.Ongoing, verdict chan<- averaging.Action) bool {
				return n.notify(notice{event: e, proposed: x, verdict: verdict})
			},
			Doubts:    func() { n.notify(notice{doubts: true}) },
			Corrected: func() { n.notify(notice{corrected: true}) },
			Unfit:     func(err error) { t.steps.updates.fault(leftOut(err)) },
			Exchanged: func(done collective.Event, took time.Duration, err error) {
				hooks.Exchanged(Exchanged{Partner: done.Peer, Inbound: done.Inbound, Distance: done.Distance, Bytes: done.Bytes, Took: took, Err: err})
			},
			Quarantined: hooks.Quarantined,
		},
	})
}

// newDonor is the other end of the arrivals of those that come later.
func newDonor(t *Trainer) *donor.Donor {
	n := t.node
	return donor.New(donor.Config{
		Run: n.network.Run, Layout: t.layout, Transport: n.net.transport, Replica: t.replica,
		Claim: func() donor.Claim {
			return donor.Claim{Incarnation: n.roster.Incarnation(), Steps: n.flock.Age(), FlockSteps: n.flock.Total()}
		},
		Declines: t.newcomer.Declines, Exchanging: func() bool { return t.talks.Busy() }, Closing: t.life.Closing, Log: t.log,
	})
}
