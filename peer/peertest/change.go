package peertest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// The kinds of changes. A peer whose first change is Arrive is absent at the beginning.
const (
	// Crash: the peer is gone at once, without notice; the others find out after five
	// seconds.
	Crash = "crash"
	// Leave: the peer leaves; the others learn of it a moment later.
	Leave = "leave"
	// Arrive: the peer comes, for the first time or back, and copies a neighbour's model
	// over the link.
	Arrive = "arrive"

	cut    = "cut"  // the link of two peers breaks, and nothing passes until heal
	heal   = "heal" // ends a cut
	relink = "link" // the link of two peers, of one with everybody, or all links, is another
	replug = "port" // one port, or all, carries other bytes a second
)

// everybody stands for all peers in a change of links.
const everybody = -1

// Change is something that happens to a world at a moment: a peer comes or goes, or one of
// the changes that Partition makes.
type Change struct {
	At   time.Duration
	Kind string // Crash, Leave or Arrive
	Peer int

	other int
	link  memnet.Link
	port  float64
}

// Partition cuts all links between two groups from one moment to another.
func Partition(from, until time.Duration, a, b []int) (changes []Change) {
	for _, i := range a {
		for _, j := range b {
			changes = append(changes, Change{At: from, Kind: cut, Peer: i, other: j}, Change{At: until, Kind: heal, Peer: i, other: j})
		}
	}
	return changes
}

// relink changes links or ports of a world of so many peers.
func (c Change) relink(w *sim.World, peers int) error {
	if c.Kind == relink && c.Peer == everybody {
		return w.SetLinks(sim.Link(c.link))
	}
	var faults []error
	each := func(one int, do func(i int) error) {
		for i := range peers {
			if one == everybody && i != c.Peer || one == i {
				faults = append(faults, do(i))
			}
		}
	}
	if c.Kind == replug {
		each(c.Peer, func(i int) error { return w.SetPort(i, c.port) })
	} else {
		each(c.other, func(i int) error { return w.SetLink(c.Peer, i, sim.Link(c.link)) })
	}
	return errors.Join(faults...)
}

func (c Change) validate(peers int) error {
	var f faults
	least := 0
	if c.Kind == relink || c.Kind == replug {
		least = everybody
	}
	f.note(c.Peer < least || c.Peer >= peers, "peer %d of %d", c.Peer, peers)
	switch c.Kind {
	case Crash, Leave, Arrive:
	case cut, heal, relink:
		f.note(c.other < least || c.other >= peers || c.other == c.Peer && c.Peer != everybody, "a link of peer %d with peer %d, of %d", c.Peer, c.other, peers)
	case replug:
		f.note(!(c.port >= 0), "%v bytes a second", c.port)
	default:
		f.note(true, "%q is no kind of change", c.Kind)
	}
	f.note(!validLink(c.link), "a link of %+v", c.link)
	f.note(c.At < 0, "at %s", c.At)
	return errors.Join(f...)
}

// inOrder sorts changes by their times.
func inOrder(changes []Change) []Change {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	return sorted
}

// latecomers are the peers whose first change is to arrive.
func latecomers(changes []Change) map[int]bool {
	late, seen := map[int]bool{}, map[int]bool{}
	for _, c := range inOrder(changes) {
		if c.Kind != Crash && c.Kind != Leave && c.Kind != Arrive {
			continue
		}
		if !seen[c.Peer] && c.Kind == Arrive {
			late[c.Peer] = true
		}
		seen[c.Peer] = true
	}
	return late
}
