package peertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/topology"
)

// World is the environment of a simulation: how fast the peers compute, the links between
// them, and how both change over time.
type World struct {
	// Compute says how long gradient steps take.
	Compute Compute
	// Links join the peers.
	Links Links
	// Changes happen at their times, in their order where times are equal.
	Changes []Change
	// Lies are the lies of faulty peers, by peer.
	Lies map[int]Lie
	// Replay takes compute times, links and changes from a recording instead. Links,
	// Changes and all of Compute but Samples are then unused: recorded times are for
	// Compute.Samples samples, and are scaled if an algorithm divides the work.
	Replay *Recording
}

// Compute says how long the peers' gradient steps take.
type Compute struct {
	// Step is the time of one step. Default: 10 ms.
	Step time.Duration
	// Jitter is the largest relative difference of a step from Step, uniformly distributed
	// in both directions. Default: 0.1; below 0 means none.
	Jitter float64
	// Slow maps peers to the factor by which their steps take longer.
	Slow map[int]float64
	// Samples is the number of samples of a gradient that takes Step. If an algorithm
	// divides samples among the peers, the time of a step is in proportion. 0 means that
	// the time does not depend on the samples.
	Samples int
}

// Links join the peers. Each peer has a port, which carries everything that it sends and
// receives, and a link to every other peer.
type Links struct {
	// Port is the bytes a second each way of a peer's port. 0 means no bound.
	Port float64
	// Link is the link of every pair of peers, in addition to the limits of the ports. Its Loss is the probability
	// to lose a segment of 1,460 bytes in one transmission; segments are retransmitted until they arrive.
	Link memnet.Link
	// Slow maps peers to the factor by which their ports, and their links, carry less.
	Slow map[int]float64
	// Sites are where the peers are, each by a number from 0. Empty: all at one site.
	Sites []int
	// Across joins peers of different sites: its Delay and Loss take the place of those of Link, and its Bandwidth is that
	// of a site's connection to all others, each way, which its peers share.
	Across memnet.Link
	// Blind: the peers do not tell at which sites they are.
	Blind bool
}

func (w World) validate(peers int) error {
	var f faults
	for i, lie := range w.Lies {
		f.note(i < 0 || i >= peers || lie == nil, "Lies has peer %d, of %d: want one that is there, and what it shows", i, peers)
	}
	if w.Replay != nil {
		f.note(w.Replay.Peers != peers, "Replay is of %d peers, not of %d", w.Replay.Peers, peers)
		f.note(len(w.Links.Sites) > 0, "Links.Sites and Replay are both given: a recording has no sites")
		return errors.Join(f...)
	}
	f.note(w.Compute.Step < 0, "Compute.Step is %s: it may not be negative", w.Compute.Step)
	f.note(!(w.Compute.Jitter < 1), "Compute.Jitter is %v: want a share below 1", w.Compute.Jitter)
	f.note(!(w.Links.Port >= 0), "Links.Port is %v bytes a second: want 0 for no bound, or more", w.Links.Port)
	f.note(len(w.Links.Slow) > 0 && w.Links.Port == 0 && w.Links.Link.Bandwidth == 0,
		"Links.Slow has factors, and nothing bounds what peers send: give Port or Link.Bandwidth")
	n, across := len(w.Links.Sites), w.Links.Across
	f.note(n > 0 && n != peers, "Links.Sites has %d peers of %d", n, peers)
	f.note(!validLink(across), "Links.Across is %+v: want nothing below 0, and a Loss below 1", across)
	for _, slow := range []map[int]float64{w.Compute.Slow, w.Links.Slow} {
		for i, factor := range slow {
			f.note(i < 0 || i >= peers || !(factor > 0), "Slow has factor %v for peer %d: want one above 0 for a peer from 0 to %d", factor, i, peers-1)
		}
	}
	for i, c := range w.Changes {
		f.within(fmt.Sprintf("Changes: number %d, %s", i, c.Kind), c.validate(peers))
	}
	return errors.Join(f...)
}

func validLink(l memnet.Link) bool {
	return l.Delay >= 0 && l.Bandwidth >= 0 && l.Loss >= 0 && l.Loss < 1
}

// place is what a peer tells of where it is.
func (l Links) place(peer int) (p topology.Place) {
	if len(l.Sites) > 0 && !l.Blind {
		p.Site = fmt.Sprint("site ", l.Sites[peer])
	}
	return p
}

// beginning is the initial state of the links, as changes.
func (l Links) beginning(peers int) (changes []Change) {
	changes = append(changes,
		Change{Kind: relink, Peer: everybody, other: everybody, link: l.Link},
		Change{Kind: replug, Peer: everybody, port: l.Port})
	for i := range peers {
		factor, slow := l.Slow[i]
		if !slow {
			continue
		}
		link := l.Link
		link.Bandwidth /= factor
		changes = append(changes,
			Change{Kind: relink, Peer: i, other: everybody, link: link},
			Change{Kind: replug, Peer: i, port: l.Port / factor})
	}
	return changes
}
