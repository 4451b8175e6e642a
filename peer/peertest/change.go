package peertest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
)

// ChangeKind says what a Change does.
type ChangeKind string

// The kinds of changes. Who has an Arrive before anything else is not there at first.
const (
	// Crash: Peer is gone at once, and nobody is told; the others find out after
	// DetectTime.
	Crash ChangeKind = "crash"
	// Leave: Peer leaves; the others know a moment later.
	Leave ChangeKind = "leave"
	// Arrive: Peer comes, for the first time or back, and copies a neighbour's model
	// over the link.
	Arrive ChangeKind = "arrive"
	// Cut: the link of Peer and Other breaks, and nothing passes until Heal.
	Cut ChangeKind = "cut"
	// Heal ends a Cut.
	Heal ChangeKind = "heal"
	// Relink: the link of Peer and Other, with Everybody all those of Peer, or of all,
	// is Link from now on.
	Relink ChangeKind = "link"
	// Replug: Peer's port, with Everybody all ports, has Port bytes a second each way
	// from now on.
	Replug ChangeKind = "port"
)

// Everybody stands for all peers in a Change of links.
const Everybody = -1

// DetectTime is how long it takes the others to find out that a peer has crashed.
const DetectTime = sim.DefaultCrash

// Change is something that happens to a world at a moment.
type Change struct {
	At          time.Duration
	Kind        ChangeKind
	Peer, Other int
	Link        Link
	Port        float64
}

// Partition cuts all links between two groups from one moment to another.
func Partition(from, until time.Duration, a, b []int) (changes []Change) {
	for _, i := range a {
		for _, j := range b {
			changes = append(changes, Change{At: from, Kind: Cut, Peer: i, Other: j}, Change{At: until, Kind: Heal, Peer: i, Other: j})
		}
	}
	return changes
}

func (c Change) validate(peers int) error {
	var faults []error
	least := 0
	if c.Kind == Relink || c.Kind == Replug {
		least = Everybody
	}
	if c.Peer < least || c.Peer >= peers {
		faults = append(faults, fmt.Errorf("peer %d of %d", c.Peer, peers))
	}
	switch c.Kind {
	case Crash, Leave, Arrive:
	case Cut, Heal, Relink:
		if c.Other < least || c.Other >= peers || c.Other == c.Peer && c.Peer != Everybody {
			faults = append(faults, fmt.Errorf("a link of peer %d with peer %d, of %d", c.Peer, c.Other, peers))
		}
	case Replug:
		if !(c.Port >= 0) {
			faults = append(faults, fmt.Errorf("%v bytes a second", c.Port))
		}
	default:
		faults = append(faults, fmt.Errorf("%q is no kind of change", c.Kind))
	}
	if l := c.Link; l.Delay < 0 || !(l.Bandwidth >= 0) || !(l.Loss >= 0 && l.Loss < 1) {
		faults = append(faults, fmt.Errorf("a link of %+v", l))
	}
	if c.At < 0 {
		faults = append(faults, fmt.Errorf("at %s", c.At))
	}
	return errors.Join(faults...)
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

// beginning is what links are at first, as changes.
func (l Links) beginning(peers int) (changes []Change) {
	changes = append(changes,
		Change{Kind: Relink, Peer: Everybody, Other: Everybody, Link: l.Link},
		Change{Kind: Replug, Peer: Everybody, Port: l.Port})
	for i := range peers {
		factor, slow := l.Slow[i]
		if !slow {
			continue
		}
		link := l.Link
		link.Bandwidth /= factor
		changes = append(changes,
			Change{Kind: Relink, Peer: i, Other: Everybody, Link: link},
			Change{Kind: Replug, Peer: i, Port: l.Port / factor})
	}
	for _, pair := range slices.SortedFunc(maps.Keys(l.Pairs), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		changes = append(changes, Change{Kind: Relink, Peer: pair[0], Other: pair[1], Link: l.Pairs[pair]})
	}
	return changes
}
