package dashboard

import (
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
	// maxMembers bounds the members that the page shows, the first ones in the ring. maxLinks bounds the links
	// between them.
	maxMembers = 256
	maxLinks   = 4096
)

// view is the state of the run at one moment.
type view struct {
	State      string     `json:"state"`
	Paused     bool       `json:"paused"`
	Stopped    bool       `json:"stopped"`
	Over       bool       `json:"over"`
	Progress   float64    `json:"progress"`
	FlockSteps uint64     `json:"flockSteps"`
	Target     uint64     `json:"target"`
	Left       cli.Number `json:"left"` // remaining seconds
	Lost       int        `json:"lost"`
	Total      int        `json:"total"` // number of members, including those not shown
	// Loss and Distance are means, and Samples is a sum, over the members that send digests.
	Loss     cli.Number `json:"loss"`
	Distance cli.Number `json:"distance"`
	Samples  cli.Number `json:"samples"`
	Accuracy cli.Number `json:"accuracy"` // of this peer's model
	Bits     cli.Number `json:"bits"`     // for each parameter in this peer's exchanges
	Tell     int        `json:"tell"`     // number of members that send digests
	// Final is the result of this peer, or of all peers of a local run; nil before.
	Final *result.Result `json:"final"`
	Point point          `json:"point"` // for the curves

	// Members are the members of the run, followed by lost ones.
	Members []member `json:"members"`
	// Links join members, by their indices in Members. Matrix has how many exchanges each member began with each:
	// from, to, count.
	Links  [][2]int    `json:"links"`
	Matrix [][3]uint64 `json:"matrix"`

	// Alarms are what a person should look at.
	Alarms []watch.Alarm `json:"alarms"`

	own     stats.Reading
	members []control.Member
	tell    []control.Member // members that send digests
	fresh   []control.Member // those of them whose digest is not stale
	changes []happening
}

// member is a member in the form for the page, in the order of the ring.
type member struct {
	control.Member
	State     string        // of package control, or waiting, leaving or lost
	Stale     bool          // its last digest is too old
	RoundTrip time.Duration // 0 if unknown
	Judged    *judgement    // nil if this peer trusts it fully
}

// judgement is the effect of exchanges with a member on this peer's loss, and the resulting trust.
type judgement struct {
	Harm  float64 `json:"harm"`
	Trust float64 `json:"trust"`
}

// MarshalJSON writes a member for the page.
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
		if m.State == control.Closed && s.Over { // this peer is done, like the others
			v.members[i].State = control.Over
		}
	}
	v.tell = slices.DeleteFunc(slices.Clone(v.members), func(m control.Member) bool { return m.Received.IsZero() })
	v.fresh = slices.DeleteFunc(slices.Clone(v.tell), func(m control.Member) bool { return v.stale(m, about.Digests) })
	v.arrange(s, about)
	v.sum()
	v.own = about.Reading(s, float64(v.Accuracy))
	return v
}

// with adds the members of an earlier view to the view of a finished run: they have left because the work is done.
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

// arrange orders the members as in the ring, and adds the links between them.
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
	ring, overlays := watch.RingOf(v.members, about.Topology)
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
	v.join(overlays, places)
	v.meet(places)
}

// join lists the links of the overlays.
func (v *view) join(overlays []*topology.Overlay, places map[topology.PeerID]int) {
	v.Links = [][2]int{}
	for _, overlay := range overlays {
		for e := range overlay.Edges() {
			from, shown := places[e.Active]
			to, also := places[e.Passive]
			if shown && also && len(v.Links) < maxLinks {
				v.Links = append(v.Links, [2]int{from, to})
			}
		}
	}
}

// meet lists the exchanges between all pairs of members.
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

// sum computes means and sums over the members that send digests.
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
