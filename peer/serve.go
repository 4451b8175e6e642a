package peer

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/donor"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// serve registers the protocols that others may speak to this peer.
func (p *Peer) serve() error {
	state := func(s *framed.Stream) error { return p.donor.Serve(p.exchanges, s) }
	for _, service := range []struct {
		protocol seam.Protocol
		handler  seam.Handler
	}{
		{seam.ProtocolHello, p.frames.answering(p.arrival.Serve)}, // first to begin and last to end: it says why not
		{seam.ProtocolExchange, p.talks.Serve},
		{seam.ProtocolState, p.frames.answering(state)},
		{seam.ProtocolControl, p.frames.answering(p.orders.Serve)},
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

// arrive makes the arrival and the donor, its other end at those that come later.
func (p *Peer) arrive(past []arrival.Partner) {
	quarantined := func(id seam.PeerID) time.Duration { return p.links.Quarantined(id, p.now()) }
	c := p.config.Checkpoint
	p.arrival = arrival.New(arrival.Config{
		Greeter: arrival.Greeter{
			Run: p.config.Run, Layout: p.config.layout(), Guard: p.guard, Flock: p.flock, Log: p.log,
			Converse: p.frames.converse, Incarnation: func() uint64 { return p.roster.Incarnation() },
		},
		Join: p.config.Join, Partners: past, Stall: p.config.Exchange.Stall,
		Checkpoint: arrival.Checkpoint{Steps: c.Steps, FlockSteps: c.FlockSteps, TellsWho: c.tellsWho()},
		Transport:  p.transport, Membership: p.membership, Replica: p.replica,
		Joined: p.joined, Declined: p.tally.Declined, Quarantined: quarantined, Condemn: func(id seam.PeerID, offence error) { p.talks.Condemn(id, offence) },
	})
	p.donor = donor.New(donor.Config{
		Run: p.config.Run, Layout: p.config.layout(), Transport: p.transport, Replica: p.replica,
		Claim: func() donor.Claim {
			return donor.Claim{Incarnation: p.roster.Incarnation(), Steps: p.flock.Age(), FlockSteps: p.flock.Total()}
		},
		Declines: p.arrival.Declines, Exchanging: func() bool { return p.talks.Busy() }, Closing: p.closing, Log: p.log,
	})
}

// joined asks a member that has let this peer in what the operator has said, and shows
// the members what this peer says of itself.
func (p *Peer) joined(ctx context.Context, through seam.PeerID) {
	if err := p.orders.Ask(ctx, through); err != nil {
		p.log.Warn("could not ask what the operator has said; trying others later", zap.String("peer", string(through)), zap.Error(err))
	}
	p.notify(notice{joined: true})
}

// introduce says hello to a relay that refuses this peer, which it does to all that have
// not shown it that they take part. The transport may ask for it before the peer is there.
func (p *Peer) introduce(ctx context.Context, relay seam.PeerID) error {
	select {
	case <-p.serving:
	case <-ctx.Done():
		return fmt.Errorf("introducing this peer to a relay: %w", ctx.Err())
	}
	_, err := p.arrival.Hello(ctx, relay)
	return err
}

// foundReachable takes what the transport has found out, unless the peer was told.
func (p *Peer) foundReachable(reachable bool) {
	select {
	case <-p.serving: // the transport may be faster
	case <-p.running.Done():
		return
	}
	if told := p.config.Network.Reach; told.Unreachable || told.Reachable || !p.roster.SetReachable(reachable) {
		return
	}
	if reachable {
		p.log.Info("others can dial this peer after all")
	} else {
		p.log.Info("others cannot dial this peer: it is active from now on, and begins its exchanges itself",
			zap.Bool("has_relay", len(p.config.Network.Reach.Relay.Via) > 0))
	}
	p.notify(notice{corrected: true})
}
