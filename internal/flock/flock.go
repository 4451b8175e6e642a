// Package flock keeps who is present and the progress of the run: the members' signed
// records, the sum of their steps, and whose work is over. It is given the membership's
// records; it sends nothing.
package flock

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Flags of a member's record. The upper half is the number of its algorithm.
const (
	Over        = 1 << 0                    // the run is over for this member; it serves exchanges
	Leaving     = 1 << 1                    // the member is leaving of its own accord
	Unreachable = transport.FlagUnreachable // others cannot dial the member
	Resumed     = 1 << 3                    // its steps include those of its earlier lives, up to a checkpoint

	AlgorithmShift = 4
	// Idle is the upper half in the record of a member that does not train, Serving in that of one that serves
	// parameters to those that do.
	Idle, Serving = 0xF << AlgorithmShift, 0xE << AlgorithmShift
)

// MaxPast bounds the lives that Past returns, at most two of a member.
const MaxPast = 2 * MaxDeparted

// Flock is what a peer knows about its flock, itself included. It is safe for concurrent use.
//
// Its estimate of the total is the sum of the members' steps, each counted up to a ceiling, plus
// those of departed members. All lives of a member count as one peer. The ceiling follows from
// the ages of the models. The age of a model is the number of steps in it, whoever took them. So
// a latecomer, which has an old model and few steps of its own, neither moves the ceiling nor
// counts for steps that it has not taken. A liar adds at most one more share than an honest peer,
// and if at most one in oneLiarIn lies, nothing beyond the steps of the most advanced honest
// peer. Where members are trusted, a fast one may count in full. The estimate never falls. See
// docs/design/003.
type Flock struct {
	Own
	self transport.PeerID

	mu         sync.Mutex
	present    map[transport.PeerID]member // the others
	departed   departed
	lost       int
	trusts     bool          // a key or a list says who takes part
	superseded incarnations  // of this peer, by another process with its key
	settled    bool          // nothing is left to do for this peer
	over       chan struct{} // closed when the run is over for this peer
	flown      chan struct{} // closed when it is over for all

	others       atomic.Uint64 // steps of everybody but this peer
	ended        atomic.Uint64 // of these, steps of members that will take no more
	workers      atomic.Uint64 // peers that will take more steps, this one included
	waits        atomic.Bool   // this peer's next step waits for news of the others
	participants atomic.Uint64 // the most peers that trained at once, this one included
}

// member is another peer that is present.
type member struct {
	transport.Record
	account account
	pace    pace
}

// New makes a flock of the peer alone.
func New(self transport.PeerID) *Flock {
	f := &Flock{self: self, departed: newDeparted(), present: make(map[transport.PeerID]member), over: make(chan struct{}), flown: make(chan struct{})}
	f.participants.Store(1)
	return f
}

// Trust is called before the first Observe if a key or a list decides who takes part: claims then count for more.
func (f *Flock) Trust() { f.trusts = true }

// Total is the estimate of all peers' steps.
func (f *Flock) Total() uint64 { return plus(f.others.Load(), f.steps.Load()) }

// News is the result of Observe: members that have gone without leaving, and members whose
// key is used by two processes.
type News struct{ Lost, Duplicates []transport.PeerID }

// Observe takes the records of the present members; this peer itself counts with its actual
// steps.
func (f *Flock) Observe(members []transport.Record, now time.Time) (news News) {
	f.mu.Lock()
	defer f.mu.Unlock()
	training, ages, claims := agesOf(members, f.self, &f.Own)
	ceiling, before := Plausible(ages), f.present
	if f.trusts {
		ceiling = trusted(claims, ceiling, f.Steps(), f.departed.done(nil))
	}
	f.present = make(map[transport.PeerID]member, len(members))
	for _, r := range members {
		if r.Peer == f.self {
			continue
		}
		old, here := before[r.Peer]
		a := old.account
		if !here {
			a = f.departed.of(r.Peer)
		}
		if here && r.Incarnation > old.Incarnation && !rests(old.Record) {
			if a.another(now) {
				news.Duplicates = append(news.Duplicates, r.Peer)
			}
			if !a.duplicate(now) {
				f.losing(old.Record)
			}
		}
		m := member{Record: r, account: a.with(r, ceiling), pace: old.pace}
		if Trains(r) {
			m.pace.begin(!Trains(old.Record), now)
			m.pace.receive(m.account.done(), now)
		}
		f.present[r.Peer] = m
		f.departed.known.Remove(r.Peer)
	}
	for id, old := range before {
		if _, here := f.present[id]; !here {
			f.departed.keep(id, old.account)
			if f.losing(old.Record) {
				news.Lost = append(news.Lost, id)
			}
		}
	}
	f.participants.Store(max(f.participants.Load(), training))
	f.sum()
	f.look()
	return news
}

// losing counts a life that has ended, and tells whether it ended without leaving.
func (f *Flock) losing(old transport.Record) (lost bool) {
	if lost = old.Flags&(Leaving|Over) == 0; lost {
		f.lost++
	}
	return lost
}

// sum recomputes the sum of the others' steps.
func (f *Flock) sum() {
	ended, working, workers := f.departed.done(nil), uint64(0), uint64(1)
	for _, m := range f.present {
		if !works(m.Record) {
			ended = plus(ended, m.account.done())
			continue
		}
		working, workers = plus(working, m.account.done()), workers+1
	}
	f.ended.Store(ended)
	f.workers.Store(workers)
	f.atLeast(plus(ended, working))
}

// atLeast raises the sum of the others' steps.
func (f *Flock) atLeast(others uint64) { f.others.Store(max(others, f.others.Load())) }

// Inherit takes over the flock's total as reported by the model's state servers. The part beyond
// the present members' own steps counts as that of departed members.
func (f *Flock) Inherit(total uint64, present []transport.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	total -= min(total, f.resumed.Load())
	here, theirs := make(map[transport.PeerID]bool, len(present)), uint64(0)
	for _, r := range present {
		if r.Peer == f.self {
			continue
		}
		here[r.Peer] = true
		a := f.departed.of(r.Peer)
		if m, ok := f.present[r.Peer]; ok {
			a = m.account
		}
		theirs = plus(theirs, a.with(r, total).done())
	}
	if known := plus(theirs, f.departed.done(here)); total > known {
		f.departed.inherited += total - known
	}
	f.atLeast(total)
}

// AtLeast raises the estimate of a peer that has the members' accounts from a checkpoint to
// the total that others report. Unlike Inherit it adds nothing to an account: the total may
// include steps that members took after their checkpoints, and will take again.
func (f *Flock) AtLeast(total uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atLeast(total - min(total, f.resumed.Load()))
}

// Past returns the steps of the others, each life of a member as a record, in the order of
// their ids; and the steps that are known only as a sum.
func (f *Flock) Past() (lives []transport.Record, inherited uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[transport.PeerID]account, len(f.present)+f.departed.known.Len())
	for _, id := range f.departed.known.Keys() {
		all[id] = f.departed.of(id)
	}
	for id, m := range f.present {
		all[id] = m.account
	}
	inherited = f.departed.inherited
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if more := all[id].lives(id); len(lives)+len(more) <= MaxPast {
			lives = append(lives, more...)
		} else {
			inherited = plus(inherited, all[id].done())
		}
	}
	return lives, inherited
}

// Resume restores the state of a checkpoint: the peer's own steps, the age of its model, the others' lives as
// Past returned them, and the most peers that were present at once, 0 if not known.
func (f *Flock) Resume(own, age uint64, lives []transport.Record, inherited, peers uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps.Store(own)
	f.resumed.Store(own)
	f.SetAge(age)
	f.departed.inherited = inherited
	lives = slices.Clone(lives)
	slices.SortFunc(lives, func(a, b transport.Record) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	members := map[transport.PeerID]bool{f.self: true}
	for _, r := range lives {
		if r.Peer == f.self {
			continue
		}
		members[r.Peer] = true
		f.departed.keep(r.Peer, f.departed.of(r.Peer).with(r, math.MaxUint64))
	}
	for id, m := range f.present { // a node may have been a member before it trains
		if f.departed.known.Contains(id) {
			m.account = f.departed.of(id).with(m.Record, math.MaxUint64)
			f.present[id] = m
			f.departed.known.Remove(id)
		}
	}
	f.participants.Store(min(cmp.Or(peers, uint64(len(members))), math.MaxInt32))
	f.sum()
}

// Superseded notes that a record of this peer has come that this process did not sign. It
// returns true, once in a while, if it must be from another process.
func (f *Flock) Superseded(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.superseded.another(now)
}

// Duplicates is the number of members, this one included, whose key is used by two processes.
func (f *Flock) Duplicates(now time.Time) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.present {
		if m.account.duplicate(now) {
			n++
		}
	}
	if f.superseded.duplicate(now) {
		n++
	}
	return n
}

// Members is the number of members present, this peer included, and of those
// lost so far.
func (f *Flock) Members() (present, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 1 + len(f.present), f.lost
}

// Participants is the most peers that trained at once, this one included.
func (f *Flock) Participants() uint64 { return f.participants.Load() }

// Here tells whether a member is present, according to gossip.
func (f *Flock) Here(id transport.PeerID) bool {
	_, ok := f.Record(id)
	return ok
}

// Record is the newest record of another present member.
func (f *Flock) Record(id transport.PeerID) (r transport.Record, here bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, here := f.present[id]
	return m.Record, here
}

// Records are those of the other members that are present, in the order of their ids.
func (f *Flock) Records() []transport.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	records := make([]transport.Record, 0, len(f.present))
	for _, id := range slices.Sorted(maps.Keys(f.present)) {
		records = append(records, f.present[id].Record)
	}
	return records
}

// Missing are the members that were present and are not in the list.
func (f *Flock) Missing(members []transport.Record) []transport.Record {
	here := make(map[transport.PeerID]bool, len(members))
	for _, r := range members {
		here[r.Peer] = true
	}
	return slices.DeleteFunc(f.Records(), func(r transport.Record) bool { return here[r.Peer] })
}

// Receive takes a newer record of a member that is present, or was a moment ago.
func (f *Flock) Receive(r transport.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.present[r.Peer]; ok && r.Newer(m.Record) {
		m.Record = r
		f.present[r.Peer] = m
	}
}

// Finish notes that the run is over for this peer: it takes no further step. It returns true
// to its first caller.
func (f *Flock) Finish() (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first = !f.IsOver(); first {
		close(f.over)
	}
	return first
}

// Over is closed when the run is over for this peer.
func (f *Flock) Over() <-chan struct{} { return f.over }

// IsOver tells whether the run is over for this peer.
func (f *Flock) IsOver() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// Settle notes that this peer has nothing left to do.
func (f *Flock) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = true
	f.look()
}

// Settled tells whether this peer has nothing left to do.
func (f *Flock) Settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.settled
}

// look checks whether the run is over for all. The lock is held.
func (f *Flock) look() {
	if !f.settled || len(f.working()) > 0 {
		return
	}
	select {
	case <-f.flown:
	default:
		close(f.flown)
	}
}

// Flown is closed when no member has anything left to do.
func (f *Flock) Flown() <-chan struct{} { return f.flown }

// Working are the other members present for which the run is not over.
func (f *Flock) Working() []transport.PeerID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.working()
}

func (f *Flock) working() (members []transport.PeerID) {
	for id, m := range f.present {
		if works(m.Record) {
			members = append(members, id)
		}
	}
	return members
}
