package dashboard

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// maxMembers bounds the members that the page shows; those with the first
	// places in the ring are. maxLinks bounds the links between them.
	maxMembers = 256
	maxLinks   = 4096
)

// view is the run at one moment.
type view struct {
	State      string     `json:"state"`
	Paused     bool       `json:"paused"`
	Stopped    bool       `json:"stopped"`
	Over       bool       `json:"over"`
	Progress   float64    `json:"progress"`
	FlockSteps uint64     `json:"flockSteps"`
	Target     uint64     `json:"target"`
	Left       cli.Number `json:"left"` // seconds
	Lost       int        `json:"lost"`
	Total      int        `json:"total"` // members, those not shown included
	// Loss, Distance, Samples are means, and a sum, over those members that tell.
	Loss     cli.Number `json:"loss"`
	Distance cli.Number `json:"distance"`
	Samples  cli.Number `json:"samples"`
	Accuracy cli.Number `json:"accuracy"` // of this peer's model
	Bits     cli.Number `json:"bits"`     // of a parameter in this peer's exchanges
	Tell     int        `json:"tell"`     // members that tell
	// Final is the result of this peer or, of a local run, of all; nil before.
	Final *result.Result `json:"final"`
	Point point          `json:"point"` // of the curves

	// Members are those that are here, and after them those that are lost.
	Members []member `json:"members"`
	// Links join members by their places in Members; Matrix tells who began how many
	// exchanges with whom: from, to, count.
	Links  [][2]int    `json:"links"`
	Matrix [][3]uint64 `json:"matrix"`

	members []control.Member
	digests []control.Digest
	fresh   []control.Digest // those that are not stale
	changes []happening
}

// member is a member as the page shows it, in the order of the ring. What only
// its digests tell is null where there are none.
type member struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"` // as it calls itself; empty until it is known
	Role        string     `json:"role"`
	State       string     `json:"state"`
	Steps       uint64     `json:"steps"`
	Unreachable bool       `json:"unreachable"`
	Loss        cli.Number `json:"loss"`
	Distance    cli.Number `json:"distance"`
	Samples     cli.Number `json:"samples"`
	Exchanges   cli.Number `json:"exchanges"`
	Failed      cli.Number `json:"failed"`
	Heard       cli.Number `json:"heard"` // seconds since its last digest
	Stale       bool       `json:"stale"` // the run has gone on since then
	RoundTrip   cli.Number `json:"roundTrip"`
}

// newView looks at the peer.
func newView(p Peer, about About, accuracy *Accuracy) *view {
	s := p.Stats()
	held := s.Control
	v := &view{
		Paused: held.Paused, Stopped: held.Stopped, Over: s.Over,
		Progress: s.Progress, FlockSteps: s.FlockSteps, Target: s.Target, Left: cli.Number(math.NaN()), Lost: s.Lost,
		Accuracy: cli.Number(math.NaN()), Bits: cli.Number(s.Exchanges.BitsPerParameter), members: p.Members(),
	}
	if accuracy != nil {
		v.Accuracy = accuracy.last()
	}
	v.Total = len(v.members)
	for _, m := range v.members {
		if !m.Digest.Heard.IsZero() {
			v.digests = append(v.digests, m.Digest)
		}
	}
	for i, m := range v.members {
		if m.State == control.Closed && s.Over { // this peer is done, as the others are
			v.members[i].State = control.Over
		}
	}
	v.fresh = slices.DeleteFunc(slices.Clone(v.digests), func(d control.Digest) bool { return v.stale(d, about.Digests) })
	v.arrange(s, about)
	v.sum()
	return v
}

// with is a run that is over with those members that were here before: they have left
// because the work is done.
func (v *view) with(before view) *view {
	before.State, before.Over, before.Left, before.Lost = v.State, v.Over, v.Left, v.Lost
	before.Progress, before.FlockSteps, before.Target = v.Progress, v.FlockSteps, v.Target
	before.Members, before.members = slices.Clone(before.Members), slices.Clone(before.members)
	for i, m := range before.Members {
		if m.State != lost {
			before.Members[i].State = control.Over.String()
		}
	}
	for i := range before.members {
		before.members[i].State = control.Over
	}
	return &before
}

// arrange puts the members into the ring's order, with the links between them.
func (v *view) arrange(s stats.Peer, about About) {
	told := make(map[seam.PeerID]control.Digest, len(v.digests))
	for _, d := range v.digests {
		told[d.Peer] = d
	}
	links := make(map[seam.PeerID]stats.Link, len(s.Exchanges.Links))
	for _, l := range s.Exchanges.Links {
		links[l.Partner] = l
	}
	ring, overlay := ringOf(v.members)
	places := make(map[topology.PeerID]int, len(ring))
	for i, m := range ring[:min(len(ring), maxMembers)] {
		places[m.ID] = i
		one := memberOf(m, told, links)
		if d, ok := told[m.ID]; ok {
			one.Stale = v.stale(d, about.Digests)
		}
		one.State = v.stateOf(m, s, about.MinPeers)
		v.Members = append(v.Members, one)
		if m.ID == s.Self {
			v.State = one.State
		}
	}
	v.join(overlay, places)
	v.meet(places)
}

// memberOf puts together what is known of a member.
func memberOf(m control.Member, told map[seam.PeerID]control.Digest, links map[seam.PeerID]stats.Link) member {
	unknown := cli.Number(math.NaN())
	one := member{
		ID: string(m.ID), Role: m.Role.String(), State: m.State.String(), Steps: m.Steps, Unreachable: m.Unreachable,
		Loss: unknown, Distance: unknown, Samples: unknown, Exchanges: unknown, Failed: unknown, Heard: unknown, RoundTrip: unknown,
	}
	if d, ok := told[m.ID]; ok {
		one.Loss, one.Distance, one.Samples = cli.Number(d.Loss), cli.Number(d.ConsensusDistance), cli.Number(d.Samples)
		one.Exchanges, one.Failed, one.Heard = cli.Number(d.Exchanges), cli.Number(d.Failed), cli.Number(time.Since(d.Heard).Seconds())
		one.Steps, one.Name = max(one.Steps, d.Steps), d.Name
		if d.Exchanges == 0 {
			one.Distance = unknown
		}
	}
	if l, ok := links[m.ID]; ok {
		one.RoundTrip = cli.Number(l.Round.Seconds())
	}
	return one
}

// ringOf is the members in the order of the overlay, and the overlay; without one,
// while there are no roles, they are in the order of their ids.
func ringOf(members []control.Member) ([]control.Member, *topology.Overlay) {
	of := make([]topology.Member, len(members))
	for i, m := range members {
		of[i] = topology.Member{ID: m.ID, Role: m.Role, Unreachable: m.Unreachable}
	}
	view, err := topology.NewView(of)
	if err != nil {
		return members, nil
	}
	ring := make([]control.Member, 0, len(members))
	for _, m := range view.Members() {
		at, _ := slices.BinarySearchFunc(members, m.ID, func(m control.Member, id topology.PeerID) int { return cmp.Compare(m.ID, id) })
		ring = append(ring, members[at])
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		return ring, nil
	}
	return ring, overlay
}

// join lists the links of the overlay.
func (v *view) join(overlay *topology.Overlay, places map[topology.PeerID]int) {
	v.Links = [][2]int{}
	if overlay == nil {
		return
	}
	for e := range overlay.Edges() {
		from, shown := places[e.Active]
		to, also := places[e.Passive]
		if shown && also && len(v.Links) < maxLinks {
			v.Links = append(v.Links, [2]int{from, to})
		}
	}
}

// meet lists who began exchanges with whom.
func (v *view) meet(places map[topology.PeerID]int) {
	v.Matrix = [][3]uint64{}
	for _, d := range v.digests {
		from, shown := places[d.Peer]
		for _, m := range d.Partners {
			to, also := places[m.Partner]
			if shown && also && m.Exchanges > 0 {
				v.Matrix = append(v.Matrix, [3]uint64{uint64(from), uint64(to), m.Exchanges})
			}
		}
	}
}

// sum takes means and sums over those that tell.
func (v *view) sum() {
	var loss, distance cli.Mean
	samples := 0.0
	for _, d := range v.fresh {
		loss.Add(cli.Number(d.Loss))
		if d.Exchanges > 0 {
			distance.Add(cli.Number(d.ConsensusDistance))
		}
	}
	for _, d := range v.digests {
		samples += d.Samples
	}
	v.Tell, v.Loss, v.Distance, v.Samples = len(v.digests), loss.Value(), distance.Value(), cli.Number(samples)
}
