package peer

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/presence"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// figures gathers the figures of a node from its packages.
type figures struct {
	name, build string
	alarms      atomic.Uint32 // a stats.AlarmSet
	net         *adapters
	flock       *flock.Flock
	counters    *counters.Counters
	orders      *orders.Orders
	presence    *presence.Presence
	arrival     *arrival.Arrival
	life        *tasks.Life
	tenant      *atomic.Pointer[tenant]
}

func (f *figures) stats() (s stats.Peer) {
	f.report(&s)
	if t := f.tenant.Load(); t != nil {
		(*t).report(&s)
	}
	return s
}

// report fills in what is known of the node.
func (f *figures) report(s *stats.Peer) {
	connections := f.net.transport.Connections()
	f.counters.Connected(connections)
	f.counters.Report(s)
	s.Self, s.Role, s.Incarnation, s.Name = f.net.transport.Self(), f.presence.Role().String(), f.flock.Incarnation(), f.name
	s.Steps, s.Resumed, s.Age, s.FlockSteps = f.flock.Steps(), f.flock.Resumed(), f.flock.Age(), f.flock.Total()
	s.Over, s.Joined = f.flock.IsOver(), f.arrival.Reached()
	s.Members, s.Lost = f.flock.Members()
	s.Control = f.orders.Stats()
	s.Duplicates, s.Connections = f.flock.Duplicates(time.Now()), connections
}

// Stats returns what the trainer and its node know now about themselves and the run.
func (t *Trainer) Stats() (s stats.Peer) {
	t.node.figures.report(&s)
	t.report(&s)
	return s
}

// Stats returns what the peer knows now about itself and the run.
func (p *Peer) Stats() stats.Peer { return p.Node.Stats() }

func (t *Trainer) report(s *stats.Peer) {
	s.Target, s.Progress, s.Merged = t.steps.work.target(), t.steps.work.progress(), t.steps.traits.Pools && t.node.flock.Settled()
	s.StoppedBy = t.steps.work.stoppedBy()
	s.State = t.joiner.State()
	s.State.Joiners, s.State.Sent = t.server.Joiners(), t.server.Sent()
	s.Quarantined = t.links.InQuarantine(t.life.Now())
	reportLinks(&s.Exchanges, t.links, t.with.Exchange.Codec)
	for _, bias := range t.replica.Biases(stats.MaxBiases) {
		s.Exchanges.Biases = append(s.Exchanges.Biases, stats.Bias{Partner: transport.PeerID(bias.Partner), Bias: bias.Ratio, Exchanges: bias.Exchanges})
	}
	for _, done := range t.replica.Judgement().Harms(stats.MaxHarms) {
		s.Exchanges.Harms = append(s.Exchanges.Harms, stats.Harm{Partner: transport.PeerID(done.Partner), Harm: done.Harm, Trust: done.Trust, Exchanges: done.Exchanges})
	}
	waiting, _ := t.conversations.Host.Ledger.InDoubt()
	gone := t.conversations.Host.Ledger.Lost()
	s.Exchanges.InDoubt, s.Exchanges.Lost, s.Exchanges.LostBound = uint64(waiting), gone.Slices, gone.Bound
}

// reportLinks fills in what is known of the links.
func reportLinks(s *stats.Exchanges, of *links.Links, policy quant.Policy) {
	choosing := policy.Choosing()
	if choosing {
		s.Codecs = make(map[string]int)
	}
	for _, link := range of.Measured() {
		one := stats.Link{Partner: link.Partner, Rate: link.Rate, Round: link.Round, Retransmitted: link.Retransmitted, Exchanges: link.Exchanges}
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

func (f *figures) counts() stats.Counters {
	t := f.counters.Counts()
	t.TransportRefused, t.MembershipRefused = f.net.transport.Refused(), f.net.membership.Refused()
	return t
}

func (f *figures) members() []control.Member {
	self, known := f.net.transport.Self(), f.flock.Records()
	members := make([]control.Member, 0, len(known)+1)
	members = append(members, control.Member{ID: self, Role: f.presence.Role(), Unreachable: f.flock.Unreachable(), Leaving: f.life.IsClosing(), Rows: f.flock.Rows(), Place: f.flock.Place(), Stage: f.flock.Stage()})
	for _, r := range known {
		m := control.Member{
			ID: r.Peer, Role: topology.Role(r.Role), Addresses: slices.Clone(r.Addresses), State: control.Training, Steps: r.Steps, Rows: r.Rows, Place: r.Place, Stage: r.Stage,
			Unreachable: r.Flags&flock.Unreachable != 0, Leaving: r.Flags&flock.Leaving != 0,
		}
		switch {
		case !flock.Trains(r) && !flock.ServesOnly(r):
			m.State = control.Idle
		case r.Flags&flock.Over != 0:
			m.State = control.Over
		case r.Steps == 0:
			m.State = control.Joining
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b control.Member) int { return cmp.Compare(a.ID, b.ID) })
	own, _ := f.Digest()
	f.orders.Fill(members, own)
	for i := range members {
		switch m := &members[i]; {
		case m.ID == self:
			m.State = m.Digest.State
		case m.Digest.Received.IsZero() || m.Digest.State == control.Idle: // or it has begun to train since
		case m.State != control.Idle && m.State != control.Over:
			m.State = m.Digest.State
		}
	}
	return members
}

func (f *figures) state() control.State {
	phase, trains := f.arrival.Bringing()
	switch {
	case f.life.IsClosed():
		return control.Closed
	case !trains && !f.arrival.Reached(), trains && phase == arrival.Seeking:
		return control.Joining
	case !trains:
		return control.Idle
	case f.flock.IsOver():
		return control.Over
	case phase == arrival.Copying:
		return control.Copying
	case f.orders.Held() != nil:
		return control.Paused
	}
	return control.Training
}

// Digest implements orders.Own.
func (f *figures) Digest() (d control.Digest, samples uint64) {
	stats := f.stats()
	partners := make([]control.Met, len(stats.Exchanges.Links))
	for i, l := range stats.Exchanges.Links {
		partners[i] = control.Met{Partner: l.Partner, Exchanges: l.Exchanges}
	}
	var harm control.Harm
	if harms := stats.Exchanges.Harms; len(harms) > 0 && harms[0].Trust < 0.5 && harms[0].Harm > 0.5 { // the least trusted comes first; less is chance
		harm = control.Harm{Partner: harms[0].Partner, Harm: harms[0].Harm, Trust: harms[0].Trust}
	}
	return control.Digest{
		Name: stats.Name, Version: f.build, Incarnation: stats.Incarnation, State: f.state(),
		Steps: stats.Steps, FlockSteps: stats.FlockSteps, Loss: stats.Loss,
		Exchanges: stats.Exchanges.Completed(), Failed: stats.Exchanges.Failed,
		ConsensusDistance: stats.Exchanges.ConsensusDistance, Partners: partners, Harm: harm,
		Received: time.Now(), Exchanged: stats.Exchanges.Last, Alarms: f.raised(),
	}, f.counts().Samples
}

func (f *figures) raised() stats.AlarmSet { return stats.AlarmSet(f.alarms.Load()) }

// MaxPartners bounds the partners of earlier lives that a peer looks for.
const MaxPartners = arrival.MaxPartners

// Partner is a member of the run that a peer knew in an earlier life, with its addresses then.
type Partner struct {
	ID        transport.PeerID `json:"id"`
	Addresses []string         `json:"addresses"` // at least one; as in Member
}

// validate checks a partner that a caller has stored.
func (p Partner) validate() error {
	if err := transport.CheckID(p.ID); err != nil {
		return fmt.Errorf("Network.Partners: %w", err)
	}
	if n := len(p.Addresses); n < 1 || n > transport.MaxAddresses {
		return fmt.Errorf("Network.Partners: %s has %d addresses: want 1 to %d", p.ID, n, transport.MaxAddresses)
	}
	for _, address := range p.Addresses {
		if err := transport.CheckAddress(address); err != nil {
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
