package dashboard

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
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
	tell    []control.Member // those that do
	fresh   []control.Member // of these, those whose word is not stale
	changes []happening
}

// member is a member as the page shows it, in the order of the ring.
type member struct {
	control.Member
	State     string        // waiting, leaving and lost besides
	Stale     bool          // the run has gone on since its last digest
	RoundTrip time.Duration // 0 if it is not known
	Judged    *judgement    // nil unless this peer trusts it less than in full
}

// judgement is what exchanges with a member do to this peer's loss, and how far it is trusted.
type judgement struct {
	Harm  float64 `json:"harm"`
	Trust float64 `json:"trust"`
}

// MarshalJSON is what the page is told of a member.
func (m member) MarshalJSON() ([]byte, error) {
	shown := watch.Shown(m.Member, time.Now())
	shown["state"], shown["stale"], shown["roundTrip"] = m.State, m.Stale, nil
	shown["judged"] = m.Judged
	if m.RoundTrip > 0 {
		shown["roundTrip"] = m.RoundTrip.Seconds()
	}
	return json.Marshal(shown)
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
	for i, m := range v.members {
		if m.State == control.Closed && s.Over { // this peer is done, as the others are
			v.members[i].State = control.Over
		}
	}
	v.tell = slices.DeleteFunc(slices.Clone(v.members), func(m control.Member) bool { return m.Received.IsZero() })
	v.fresh = slices.DeleteFunc(slices.Clone(v.tell), func(m control.Member) bool { return v.stale(m, about.Digests) })
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
	links := make(map[transport.PeerID]stats.Link, len(s.Exchanges.Links))
	for _, l := range s.Exchanges.Links {
		links[l.Partner] = l
	}
	judged := make(map[transport.PeerID]*judgement, len(s.Exchanges.Harms))
	for _, h := range s.Exchanges.Harms {
		if h.Trust < 1 {
			judged[h.Partner] = &judgement{h.Harm, h.Trust}
		}
	}
	ring, overlay := ringOf(v.members)
	places := make(map[topology.PeerID]int, len(ring))
	for i, m := range ring[:min(len(ring), maxMembers)] {
		places[m.ID] = i
		one := member{Member: m, State: v.stateOf(m, s, about.MinPeers), Stale: !m.Received.IsZero() && v.stale(m, about.Digests)}
		one.Judged = judged[m.ID]
		if l, ok := links[m.ID]; ok {
			one.RoundTrip = l.Round
		}
		v.Members = append(v.Members, one)
		if m.ID == s.Self {
			v.State = one.State
		}
	}
	v.join(overlay, places)
	v.meet(places)
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
	for _, m := range v.tell {
		from, shown := places[m.ID]
		for _, met := range m.Partners {
			to, also := places[met.Partner]
			if shown && also && met.Exchanges > 0 {
				v.Matrix = append(v.Matrix, [3]uint64{uint64(from), uint64(to), met.Exchanges})
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
	for _, d := range v.tell {
		samples += d.Samples
	}
	v.Tell, v.Loss, v.Distance, v.Samples = len(v.tell), loss.Value(), distance.Value(), cli.Number(samples)
}
