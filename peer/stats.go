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

// Stats tells what the peer knows of itself and the run now.
func (p *Peer) Stats() stats.Peer {
	connections := p.transport.Connections()
	p.tally.Connected(connections)
	var s stats.Peer
	p.tally.Report(&s)
	s.Self, s.Role, s.Incarnation = p.Self(), p.roster.Role().String(), p.roster.Incarnation()
	s.Name = p.config.Network.Control.Name
	s.Steps, s.Resumed, s.Age = p.flock.Steps(), p.flock.Resumed(), p.flock.Age()
	s.FlockSteps, s.Target, s.Progress = p.flock.Total(), p.work.target(), p.work.progress()
	s.Over, s.Merged, s.Joined = p.flock.IsOver(), p.trainer.pools && p.flock.Settled(), p.arrival.Reached()
	s.Members, s.Lost = p.flock.Members()
	s.Twins, s.Connections, s.State = p.flock.Twins(time.Now()), connections, p.arrival.State()
	s.State.Newcomers, s.State.Given = p.donor.Newcomers(), p.donor.Given()
	s.Quarantined = p.links.InQuarantine(p.now())
	reportLinks(&s.Exchanges, p.links, p.config.Exchange.Codec)
	for _, pull := range p.replica.Pulls(stats.MaxPulls) {
		s.Exchanges.Pulls = append(s.Exchanges.Pulls, stats.Pull{Partner: seam.PeerID(pull.Partner), Pull: pull.Ratio, Exchanges: pull.Exchanges})
	}
	waiting, _ := p.talks.Host.Ledger.InDoubt()
	gone := p.talks.Host.Ledger.Lost()
	s.Exchanges.InDoubt, s.Exchanges.Lost, s.Exchanges.LostBound = uint64(waiting), gone.Slices, gone.Bound
	return s
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
func (p *Peer) Tallies() stats.Tallies {
	t := p.tally.Tallies()
	t.TransportRefused, t.MembershipRefused = p.transport.Refused(), p.membership.Refused()
	return t
}

// Member is what a peer knows of a member of its run from the record that the member
// signed.
type Member struct {
	ID   seam.PeerID
	Role topology.Role
	// Addresses are where it can be reached, as its record says; nil of the peer itself.
	Addresses []string
	// State is what its latest digest says; without digests it is told from the record,
	// in which a member that is paused or copying looks as if it trained.
	State control.State
	Steps uint64
	// Unreachable tells that others cannot dial it, Leaving that it is about to go.
	Unreachable, Leaving bool
}

// Members are those of the run, this one included, in the order of their ids.
func (p *Peer) Members() []Member {
	known := p.flock.Records()
	members := make([]Member, 0, len(known)+1)
	members = append(members, Member{
		ID: p.Self(), Role: p.roster.Role(), State: p.State(),
		Steps: p.flock.Steps(), Unreachable: p.roster.Unreachable(), Leaving: p.isClosing(),
	})
	states := p.orders.States()
	for _, r := range known {
		m := Member{
			ID: r.Peer, Role: topology.Role(r.Role), Addresses: slices.Clone(r.Addresses), State: control.Training, Steps: r.Steps,
			Unreachable: r.Flags&flock.Unreachable != 0, Leaving: r.Flags&flock.Leaving != 0,
		}
		told, heard := states[r.Peer]
		switch {
		case r.Flags&flock.Over != 0:
			m.State = control.Over
		case heard:
			m.State = told
		case r.Steps == 0:
			m.State = control.Joining
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// sightings are the members, for who asks from outside.
func (p *Peer) sightings() []control.Sighting {
	members := p.Members()
	seen := make([]control.Sighting, len(members))
	for i, m := range members {
		seen[i] = control.Sighting{ID: m.ID, Role: m.Role.String(), State: m.State, Steps: m.Steps, Unreachable: m.Unreachable, Leaving: m.Leaving}
	}
	return seen
}

// State is what the peer is about; control.Closed once Close has returned.
func (p *Peer) State() control.State {
	phase := p.arrival.Phase()
	switch {
	case p.isClosed():
		return control.Closed
	case p.flock.IsOver():
		return control.Over
	case phase == arrival.Seeking:
		return control.Joining
	case phase == arrival.Copying:
		return control.Copying
	case p.orders.Held() != nil:
		return control.Paused
	}
	return control.Training
}

// digest is what this peer tells the others of itself.
func (p *Peer) digest() (d control.Digest, samples uint64) {
	stats := p.Stats()
	partners := make([]control.Met, len(stats.Exchanges.Links))
	for i, l := range stats.Exchanges.Links {
		partners[i] = control.Met{Partner: l.Partner, Exchanges: l.Exchanges}
	}
	return control.Digest{
		Peer: stats.Self, Name: stats.Name, Version: p.config.Network.Control.Version, Incarnation: stats.Incarnation, State: p.State(),
		Steps: stats.Steps, FlockSteps: stats.FlockSteps, Loss: stats.Loss,
		Exchanges: stats.Exchanges.Completed(), Failed: stats.Exchanges.Failed,
		ConsensusDistance: stats.Exchanges.ConsensusDistance, Partners: partners,
		Heard: time.Now(), Exchanged: stats.Exchanges.Last,
	}, p.Tallies().Samples
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
