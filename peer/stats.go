package peer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// Stats tells what the node knows of itself and the run now.
func (n *Node) Stats() (s stats.Peer) {
	n.report(&s)
	if t := n.trainer.Load(); t != nil {
		t.report(&s)
	}
	return s
}

// Stats tells what the trainer and its node know of themselves and the run now.
func (t *Trainer) Stats() (s stats.Peer) {
	t.node.report(&s)
	t.report(&s)
	return s
}

// Stats tells what the peer knows of itself and the run now.
func (p *Peer) Stats() stats.Peer { return p.Node.Stats() }

func (n *Node) report(s *stats.Peer) {
	connections := n.net.transport.Connections()
	n.tally.Connected(connections)
	n.tally.Report(s)
	s.Self, s.Role, s.Incarnation, s.Name = n.Self(), n.roster.Role().String(), n.roster.Incarnation(), n.network.Control.Name
	s.Steps, s.Resumed, s.Age, s.FlockSteps = n.flock.Steps(), n.flock.Resumed(), n.flock.Age(), n.flock.Total()
	s.Over, s.Joined = n.flock.IsOver(), n.arrival.Reached()
	s.Members, s.Lost = n.flock.Members()
	s.Control = n.orders.Stats()
	s.Twins, s.Connections = n.flock.Twins(time.Now()), connections
}

func (t *Trainer) report(s *stats.Peer) {
	s.Target, s.Progress, s.Merged = t.work.target(), t.work.progress(), t.steps.pools && t.node.flock.Settled()
	s.State = t.newcomer.State()
	s.State.Newcomers, s.State.Given = t.donor.Newcomers(), t.donor.Given()
	s.Quarantined = t.links.InQuarantine(t.life.Now())
	reportLinks(&s.Exchanges, t.links, t.with.Exchange.Codec)
	for _, pull := range t.replica.Pulls(stats.MaxPulls) {
		s.Exchanges.Pulls = append(s.Exchanges.Pulls, stats.Pull{Partner: seam.PeerID(pull.Partner), Pull: pull.Ratio, Exchanges: pull.Exchanges})
	}
	waiting, _ := t.talks.Host.Ledger.InDoubt()
	gone := t.talks.Host.Ledger.Lost()
	s.Exchanges.InDoubt, s.Exchanges.Lost, s.Exchanges.LostBound = uint64(waiting), gone.Slices, gone.Bound
}

// reportLinks fills in what is known of the links.
func reportLinks(s *stats.Exchanges, of *links.Links, policy quant.Policy) {
	choosing := policy.Choosing()
	if choosing {
		s.Codecs = make(map[string]int)
	}
	for _, link := range of.Measured() {
		one := stats.Link{Partner: link.Partner, Rate: link.Rate, Round: link.Round, Again: link.Again, Exchanges: link.Exchanges}
		if choosing {
			one.Codec = link.Codec()
			s.Codecs[one.Codec]++
		}
		if len(s.Links) < stats.MaxLinks {
			s.Links = append(s.Links, one)
		}
	}
	slices.SortFunc(s.Links, func(a, b stats.Link) int { return cmp.Compare(a.Partner, b.Partner) })
}

// Tallies tells what has become of exchanges since the start, by cause. It costs more than
// Stats and is for who looks now and then.
func (n *Node) Tallies() stats.Tallies {
	t := n.tally.Tallies()
	t.TransportRefused, t.MembershipRefused = n.net.transport.Refused(), n.net.membership.Refused()
	return t
}

// Members are those of the run, this one included, in the order of their ids, with what they tell of themselves.
func (n *Node) Members() []control.Member {
	known := n.flock.Records()
	members := make([]control.Member, 0, len(known)+1)
	members = append(members, control.Member{ID: n.Self(), Role: n.roster.Role(), Unreachable: n.roster.Unreachable(), Leaving: n.life.IsClosing()})
	for _, r := range known {
		m := control.Member{
			ID: r.Peer, Role: topology.Role(r.Role), Addresses: slices.Clone(r.Addresses), State: control.Training, Steps: r.Steps,
			Unreachable: r.Flags&flock.Unreachable != 0, Leaving: r.Flags&flock.Leaving != 0,
		}
		switch {
		case !flock.Trains(r):
			m.State = control.Idle
		case r.Flags&flock.Over != 0:
			m.State = control.Over
		case r.Steps == 0:
			m.State = control.Joining
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b control.Member) int { return cmp.Compare(a.ID, b.ID) })
	n.orders.Fill(members)
	for i := range members {
		switch m := &members[i]; {
		case m.ID == n.Self():
			m.State = m.Digest.State
		case m.Digest.Heard.IsZero() || m.Digest.State == control.Idle: // or it has begun to train since
		case m.State != control.Idle && m.State != control.Over:
			m.State = m.Digest.State
		}
	}
	return members
}

// State is what the peer is about; control.Closed once Close has returned.
func (n *Node) State() control.State {
	t := n.trainer.Load()
	switch {
	case n.life.IsClosed():
		return control.Closed
	case t == nil && !n.arrival.Reached(), t != nil && t.newcomer.Phase() == arrival.Seeking:
		return control.Joining
	case t == nil:
		return control.Idle
	case n.flock.IsOver():
		return control.Over
	case t.newcomer.Phase() == arrival.Copying:
		return control.Copying
	case n.orders.Held() != nil:
		return control.Paused
	}
	return control.Training
}

// digest is what this peer tells the others of itself.
func (n *Node) digest() (d control.Digest, samples uint64) {
	stats := n.Stats()
	partners := make([]control.Met, len(stats.Exchanges.Links))
	for i, l := range stats.Exchanges.Links {
		partners[i] = control.Met{Partner: l.Partner, Exchanges: l.Exchanges}
	}
	return control.Digest{
		Name: stats.Name, Version: n.network.fixed.build, Incarnation: stats.Incarnation, State: n.State(),
		Steps: stats.Steps, FlockSteps: stats.FlockSteps, Loss: stats.Loss,
		Exchanges: stats.Exchanges.Completed(), Failed: stats.Exchanges.Failed,
		ConsensusDistance: stats.Exchanges.ConsensusDistance, Partners: partners,
		Heard: time.Now(), Exchanged: stats.Exchanges.Last,
	}, n.Tallies().Samples
}

// MaxPartners bounds the partners of earlier lives that a peer looks for.
const MaxPartners = arrival.MaxPartners

// Partner is a member of the run whom a peer has known in an earlier life, and where it was.
type Partner struct {
	ID        seam.PeerID `json:"id"`
	Addresses []string    `json:"addresses"` // at least one; as Member has them
}

// validate checks a partner that a caller has kept.
func (p Partner) validate() error {
	if err := seam.CheckID(p.ID); err != nil {
		return fmt.Errorf("Network.Partners: %w", err)
	}
	if n := len(p.Addresses); n < 1 || n > seam.MaxAddresses {
		return fmt.Errorf("Network.Partners: %s has %d addresses: want 1 to %d", p.ID, n, seam.MaxAddresses)
	}
	for _, address := range p.Addresses {
		if err := seam.CheckAddress(address); err != nil {
			return fmt.Errorf("Network.Partners: %w", err)
		}
	}
	return nil
}

// partners are those of the configuration, for Recall.
func (n Network) partners() (all []arrival.Partner) {
	for _, p := range n.Partners {
		all = append(all, arrival.Partner(p))
	}
	return all
}
