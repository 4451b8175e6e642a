package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// maxBoardMembers bounds the members that the page shows; those with the first
	// places in the ring are. maxBoardLinks bounds the links between them.
	maxBoardMembers = 256
	maxBoardLinks   = 4096
)

// boardView is the run at one moment.
type boardView struct {
	State      string  `json:"state"`
	Paused     bool    `json:"paused"`
	Stopped    bool    `json:"stopped"`
	Over       bool    `json:"over"`
	Joined     bool    `json:"joined"`
	Progress   float64 `json:"progress"`
	FlockSteps uint64  `json:"flockSteps"`
	Target     uint64  `json:"target"`
	Left       number  `json:"left"` // seconds
	Rate       float64 `json:"rate"` // learning rate
	Lost       int     `json:"lost"`
	Total      int     `json:"total"` // members, those not shown included
	// Loss, Distance, Samples are means, and a sum, over those members that tell.
	Loss     number `json:"loss"`
	Distance number `json:"distance"`
	Samples  number `json:"samples"`
	Accuracy number `json:"accuracy"` // of this peer's model
	Tell     int    `json:"tell"`     // members that tell

	Exchanges boardExchanges `json:"exchanges"`
	Members   []boardMember  `json:"members"`
	// Links join members by their places in Members; Matrix tells who began how many
	// exchanges with whom: from, to, count.
	Links  [][2]int    `json:"links"`
	Matrix [][3]uint64 `json:"matrix"`

	members []peer.Member
	digests []peer.Digest
	changes []happening
}

// boardExchanges are this peer's own.
type boardExchanges struct {
	Completed uint64 `json:"completed"`
	Refused   uint64 `json:"refused"`
	Failed    uint64 `json:"failed"`
	InDoubt   uint64 `json:"inDoubt"`
	Sent      uint64 `json:"sent"`
	Received  uint64 `json:"received"`
	Bits      number `json:"bits"`
	Every     int    `json:"every"`
}

// boardMember is a member as the page shows it, in the order of the ring. What only
// its digests tell is null where there are none.
type boardMember struct {
	ID          string `json:"id"`
	Role        string `json:"role"`
	State       string `json:"state"`
	Steps       uint64 `json:"steps"`
	Unreachable bool   `json:"unreachable"`
	Loss        number `json:"loss"`
	Distance    number `json:"distance"`
	Samples     number `json:"samples"`
	Exchanges   number `json:"exchanges"`
	Failed      number `json:"failed"`
	Heard       number `json:"heard"` // seconds since its last digest
	RoundTrip   number `json:"roundTrip"`
	Bandwidth   number `json:"bandwidth"`
}

// view looks at the peer.
func (b *board) view() *boardView {
	s, control := b.peer.Stats(), b.peer.Control()
	v := &boardView{
		Paused: control.Paused, Stopped: control.Stopped, Over: s.Over, Joined: s.Joined,
		Progress: s.Progress, FlockSteps: s.FlockSteps, Target: s.Target, Left: number(math.NaN()), Rate: s.Rate,
		Lost: s.Lost, Accuracy: number(math.NaN()), members: b.peer.Members(), digests: b.peer.Digests(),
		Exchanges: boardExchanges{
			Completed: s.Exchanges.Completed(), Refused: s.Exchanges.Refused, Failed: s.Exchanges.Failed, InDoubt: s.Exchanges.InDoubt,
			Sent: s.Exchanges.BytesSent, Received: s.Exchanges.BytesReceived, Bits: number(s.Exchanges.BitsPerParameter), Every: s.Exchanges.Every,
		},
	}
	if b.accuracy != nil {
		v.Accuracy = b.accuracy.last()
	}
	v.Total = len(v.members)
	v.arrange(s, string(s.Self))
	v.sum()
	return v
}

// arrange puts the members into the ring's order, with the links between them.
func (v *boardView) arrange(s peer.Stats, self string) {
	told := make(map[seam.PeerID]peer.Digest, len(v.digests))
	for _, d := range v.digests {
		told[d.Peer] = d
	}
	links := make(map[seam.PeerID]peer.LinkStats, len(s.Exchanges.Links))
	for _, l := range s.Exchanges.Links {
		links[l.Partner] = l
	}
	ring, overlay := ringOf(v.members)
	places := make(map[topology.PeerID]int, len(ring))
	for i, m := range ring[:min(len(ring), maxBoardMembers)] {
		places[topology.PeerID(m.ID)] = i
		v.Members = append(v.Members, memberOf(m, told, links))
		if string(m.ID) == self {
			v.State = m.State.String()
		}
	}
	v.join(overlay, places)
	v.meet(places)
}

// memberOf puts together what is known of a member.
func memberOf(m peer.Member, told map[seam.PeerID]peer.Digest, links map[seam.PeerID]peer.LinkStats) boardMember {
	unknown := number(math.NaN())
	one := boardMember{
		ID: string(m.ID), Role: m.Role.String(), State: m.State.String(), Steps: m.Steps, Unreachable: m.Unreachable,
		Loss: unknown, Distance: unknown, Samples: unknown, Exchanges: unknown, Failed: unknown, Heard: unknown, RoundTrip: unknown, Bandwidth: unknown,
	}
	if d, ok := told[m.ID]; ok {
		one.Loss, one.Distance, one.Samples = number(d.Loss), number(d.ConsensusDistance), number(d.Samples)
		one.Exchanges, one.Failed, one.Heard = number(d.Exchanges), number(d.Failed), number(time.Since(d.Heard).Seconds())
		one.Steps = max(one.Steps, d.Steps)
	}
	if l, ok := links[m.ID]; ok {
		one.RoundTrip, one.Bandwidth = number(l.Round.Seconds()), number(l.Rate)
	}
	return one
}

// ringOf is the members in the order of the overlay, and the overlay; without one,
// while there are no roles, they are in the order of their ids.
func ringOf(members []peer.Member) ([]peer.Member, *topology.Overlay) {
	of := make([]topology.Member, len(members))
	for i, m := range members {
		of[i] = topology.Member{ID: topology.PeerID(m.ID), Role: m.Role, Unreachable: m.Unreachable}
	}
	view, err := topology.NewView(of)
	if err != nil {
		return members, nil
	}
	ring := make([]peer.Member, 0, len(members))
	for _, m := range view.Members() {
		at, _ := slices.BinarySearchFunc(members, m.ID, func(m peer.Member, id topology.PeerID) int { return cmp.Compare(topology.PeerID(m.ID), id) })
		ring = append(ring, members[at])
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		return ring, nil
	}
	return ring, overlay
}

// join lists the links of the overlay.
func (v *boardView) join(overlay *topology.Overlay, places map[topology.PeerID]int) {
	v.Links = [][2]int{}
	if overlay == nil {
		return
	}
	for e := range overlay.Edges() {
		from, shown := places[e.Active]
		to, also := places[e.Passive]
		if shown && also && len(v.Links) < maxBoardLinks {
			v.Links = append(v.Links, [2]int{from, to})
		}
	}
}

// meet lists who began exchanges with whom.
func (v *boardView) meet(places map[topology.PeerID]int) {
	v.Matrix = [][3]uint64{}
	for _, d := range v.digests {
		from, shown := places[topology.PeerID(d.Peer)]
		for _, m := range d.Partners {
			to, also := places[topology.PeerID(m.Partner)]
			if shown && also && m.Exchanges > 0 {
				v.Matrix = append(v.Matrix, [3]uint64{uint64(from), uint64(to), m.Exchanges})
			}
		}
	}
}

// sum takes means and sums over those that tell.
func (v *boardView) sum() {
	var loss, distance mean
	samples := 0.0
	for _, d := range v.digests {
		loss.add(number(d.Loss))
		if d.Exchanges > 0 {
			distance.add(number(d.ConsensusDistance))
		}
		samples += d.Samples
	}
	v.Tell, v.Loss, v.Distance, v.Samples = len(v.digests), loss.value(), distance.value(), number(samples)
}
