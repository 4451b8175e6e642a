package peer

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// What the flags of a member's record mean, those of algorithmBits aside.
const (
	flagOver        = 1 << 0               // the run is over for this member; it serves exchanges
	flagLeaving     = 1 << 1               // the member is leaving of its own accord
	flagUnreachable = seam.FlagUnreachable // others cannot dial the member
)

// maxDeparted bounds the departed members whose steps are told apart; those of
// earlier ones are kept as one sum.
const maxDeparted = 1024

// credit is how many times the median a member's word on its own steps may
// count: what it claims beyond is ignored. A lower one would leave out more of
// what the fast peers of an unequal flock have really done.
const credit = 2

// flock estimates what all peers together have done, from what members sign.
//
// The estimate is the sum of the members' steps, each counted up to credit times
// the median age of the models (the steps that lie behind a member's model,
// whoever took them), plus those of members that have departed. A liar so adds
// at most one more share than an honest peer; a latecomer, whose model is old
// though its own steps are few, neither moves the median nor is counted for
// steps it has not taken. The estimate never falls.
type flock struct {
	mu        sync.Mutex
	present   map[seam.PeerID]seam.Record
	departed  map[life]deed
	newest    map[seam.PeerID]uint64 // the newest incarnation seen of each member
	inherited uint64                 // steps of members that departed before this peer came
	lost      int
	ceiling   uint64   // most that was last counted of a member's word
	ages      []uint64 // scratch

	others       atomic.Uint64 // steps of everybody but this peer
	participants atomic.Int64  // peers that have taken part, this one included
}

// deed is what a life has done that is over; of one that was resumed, with what its
// earlier ones had.
type deed struct {
	steps   uint64
	resumed bool
}

// life is one incarnation of a member.
type life struct {
	peer        seam.PeerID
	incarnation uint64
}

func newFlock() *flock {
	f := &flock{
		present:  make(map[seam.PeerID]seam.Record),
		departed: make(map[life]deed),
		newest:   make(map[seam.PeerID]uint64),
	}
	f.participants.Store(1)
	return f
}

// observe takes the present members' records; self's own says what this peer has
// done. It returns the members that have gone since without leaving.
func (f *flock) observe(members []seam.Record, self seam.PeerID) (lost []seam.PeerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.present
	f.present = make(map[seam.PeerID]seam.Record, len(members))
	f.ages = f.ages[:0]
	for _, m := range members {
		f.ages = append(f.ages, m.Head+m.Steps)
		f.remember(m)
		if m.Peer == self {
			continue
		}
		f.present[m.Peer] = m
		delete(f.departed, life{m.Peer, m.Incarnation})
	}
	f.ceiling = credit * median(f.ages)
	ceiling := f.ceiling
	for id, old := range before {
		now, here := f.present[id]
		if here && now.Incarnation == old.Incarnation {
			continue
		}
		f.depart(old, ceiling)
		if old.Flags&(flagLeaving|flagOver) == 0 {
			f.lost++
			lost = append(lost, id)
		}
	}
	f.tally(ceiling)
	return lost
}

// remember notes a member's newest incarnation, as long as there is room.
func (f *flock) remember(m seam.Record) {
	if known, ok := f.newest[m.Peer]; ok || len(f.newest) < maxDeparted {
		f.newest[m.Peer] = max(known, m.Incarnation)
	}
}

// depart keeps what a member did after it has gone.
func (f *flock) depart(m seam.Record, ceiling uint64) {
	steps := min(m.Steps, ceiling)
	if len(f.departed) >= maxDeparted {
		f.inherited += steps
		return
	}
	f.departed[life{m.Peer, m.Incarnation}] = deed{steps, m.Flags&flagResumed != 0}
}

// tally recomputes the sum of the others' steps.
func (f *flock) tally(ceiling uint64) {
	f.others.Store(max(f.inherited+f.done(f.present, ceiling), f.others.Load()))
	f.participants.Store(max(f.participants.Load(), int64(len(f.newest))))
}

// done is what the members present, each up to ceiling, and the departed have done.
func (f *flock) done(present map[seam.PeerID]seam.Record, ceiling uint64) (sum uint64) {
	var resumed []Past // the lives of members that have one that was resumed
	again := make(map[seam.PeerID]bool)
	for id, m := range present {
		if m.Flags&flagResumed != 0 {
			again[id] = true
			resumed = append(resumed, Past{id, m.Incarnation, min(m.Steps, ceiling), true})
			continue
		}
		sum += min(m.Steps, ceiling)
	}
	for l, d := range f.departed {
		if d.resumed {
			again[l.peer] = true
		}
	}
	for l, d := range f.departed {
		if now, here := present[l.peer]; here && now.Incarnation == l.incarnation {
			continue // it was only away
		}
		if again[l.peer] {
			resumed = append(resumed, Past{l.peer, l.incarnation, d.steps, d.resumed})
			continue
		}
		sum += d.steps
	}
	sortLives(resumed)
	return sum + done(resumed)
}

// inherit takes over a donor's estimate of the flock's steps: what it exceeds the
// present members' own by was done by others that have departed.
//
// Own are the steps of this peer that the estimate includes: those of earlier lives.
func (f *flock) inherit(total, own uint64, self seam.PeerID, present []seam.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	total -= min(total, own)
	others := make(map[seam.PeerID]seam.Record, len(present))
	for _, m := range present {
		if m.Peer != self {
			others[m.Peer] = m
		}
	}
	known := f.inherited + f.done(others, math.MaxUint64)
	if total > known {
		f.inherited += total - known
	}
	f.others.Store(max(total, f.others.Load()))
}

// total is the estimate of all peers' steps, given this peer's own.
func (f *flock) total(own uint64) uint64 { return f.others.Load() + own }

// incarnation is the newest incarnation of a member that was seen, 0 if none.
func (f *flock) incarnation(peer seam.PeerID) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest[peer]
}

// members is the number of members present, this peer included, and of those
// lost so far.
func (f *flock) members() (present, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 1 + len(f.present), f.lost
}

// working are the other members present for which the run is not over.
func (f *flock) working() (members []seam.PeerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, m := range f.present {
		if m.Flags&flagOver == 0 {
			members = append(members, id)
		}
	}
	return members
}

// median is the median of values, which it sorts; the mean of the middle two if
// their number is even, 0 if there are none.
func median(values []uint64) uint64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	low, high := values[middle-1], values[middle]
	return low + (high-low)/2
}

// here tells whether a member is present, as far as gossip knows.
func (f *flock) here(id seam.PeerID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.present[id]
	return ok
}

// missing are the members that were present and are not among these.
func (f *flock) missing(members []seam.Record) (gone []seam.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	here := make(map[seam.PeerID]struct{}, len(members))
	for _, m := range members {
		here[m.Peer] = struct{}{}
	}
	for id, m := range f.present {
		if _, ok := here[id]; !ok {
			gone = append(gone, m)
		}
	}
	slices.SortFunc(gone, func(a, b seam.Record) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return gone
}

// hear takes a newer record of a member that is present, or was until a moment ago.
func (f *flock) hear(r seam.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.present[r.Peer]; ok && r.Newer(old) {
		f.present[r.Peer] = r
	}
}
