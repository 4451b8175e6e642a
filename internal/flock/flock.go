// Package flock knows who is here and how far the run is: the records that members have
// signed, what all of them have done together, and whose work is over. It is told of the
// membership's records; it asks nobody.
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

// What the flags of a member's record mean. The upper half is the number of its algorithm.
const (
	Over        = 1 << 0                    // the run is over for this member; it serves exchanges
	Leaving     = 1 << 1                    // the member is leaving of its own accord
	Unreachable = transport.FlagUnreachable // others cannot dial the member
	Resumed     = 1 << 3                    // its steps include those of its earlier lives, up to a checkpoint

	AlgorithmShift = 4
	// Idle is the upper half of a member that does not train.
	Idle = 0xF << AlgorithmShift
)

// MaxPast bounds the lives that Past returns, at most two of a member.
const MaxPast = 2 * MaxDeparted

// Flock is what a peer knows of its flock, itself included. It is safe for concurrent use.
//
// Its estimate of what all have done is the sum of the members' steps, each counted up to
// a ceiling, plus those of members that have departed. All lives of a member count as one
// peer. The ceiling follows from the ages of the models, which are the steps that
// lie behind a member's model, whoever took them: a latecomer, whose model is old
// though its own steps are few, neither moves the ceiling nor is counted for
// steps it has not taken. A liar so adds at most one more share than an honest
// peer, and where no more than one in oneLiarIn lie, nothing beyond what the most
// advanced honest peer has done; where members are trusted it lets a fast one count. The estimate
// never falls. See docs/design/003.
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
	ended        atomic.Uint64 // of these, those of whom no more are to be expected
	workers      atomic.Uint64 // peers of whom more are, this one included
	waits        atomic.Bool   // for news of the others, with its next step
	participants atomic.Uint64 // the most peers that trained at once, this one included
}

// member is another peer that is present.
type member struct {
	transport.Record
	account account
	pace    pace
}

// New knows of nobody but the peer itself.
func New(self transport.PeerID) *Flock {
	f := &Flock{self: self, departed: newDeparted(), present: make(map[transport.PeerID]member), over: make(chan struct{}), flown: make(chan struct{})}
	f.participants.Store(1)
	return f
}

// Trust says, before the first Observe, that a key or a list says who takes part: claims count for more.
func (f *Flock) Trust() { f.trusts = true }

// Total is the estimate of all peers' steps.
func (f *Flock) Total() uint64 { return plus(f.others.Load(), f.steps.Load()) }

// News is what a look at the membership has brought up: members that have gone without
// leaving, and those of whose key two processes must make use.
type News struct{ Lost, Duplicates []transport.PeerID }

// Observe takes the records of the members that are present; the peer's own counts as what
// it has done.
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
		if here && r.Incarnation > old.Incarnation {
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

// losing counts a life that has ended, and tells whether it was without leaving.
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

// Inherit takes over what the flock is said to have done, by state servers of the model: what it
// exceeds the present members' own by was done by others that have departed.
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

// AtLeast raises the estimate of a peer that knows the members of its flock from a
// checkpoint to what others say. It does not go to their account, as what Inherit finds
// does: they may count what members did after their checkpoints, and will do again.
func (f *Flock) AtLeast(total uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atLeast(total - min(total, f.resumed.Load()))
}

// Past is what the others have done, each life of a member as its record would say it, in
// the order of their ids; and what is known only as a sum.
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

// Resume takes over what a peer had done and knew of the others, as Past told it, when its checkpoint was
// saved: its own steps, those behind its model, and how many peers there were at once, 0 if that is not known.
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
	for id, m := range f.present { // of a node that was here before it trains
		if f.departed.known.Contains(id) {
			m.account = f.departed.of(id).with(m.Record, math.MaxUint64)
			f.present[id] = m
			f.departed.known.Remove(id)
		}
	}
	f.participants.Store(min(cmp.Or(peers, uint64(len(members))), math.MaxInt32))
	f.sum()
}

// Superseded notes that somebody else has spoken as this peer. It reports true if that must be
// another process, once in a while.
func (f *Flock) Superseded(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.superseded.another(now)
}

// Duplicates is the number of members, this one included, of whose key two processes must make
// use.
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

// Here tells whether a member is present, as far as gossip knows.
func (f *Flock) Here(id transport.PeerID) bool {
	_, ok := f.Record(id)
	return ok
}

// Record is what another member that is present has said last.
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

// Missing are the members that were present and are not among these.
func (f *Flock) Missing(members []transport.Record) []transport.Record {
	here := make(map[transport.PeerID]bool, len(members))
	for _, r := range members {
		here[r.Peer] = true
	}
	return slices.DeleteFunc(f.Records(), func(r transport.Record) bool { return here[r.Peer] })
}

// Receive takes a newer record of a member that is present, or was until a moment ago.
func (f *Flock) Receive(r transport.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.present[r.Peer]; ok && r.Newer(m.Record) {
		m.Record = r
		f.present[r.Peer] = m
	}
}

// Finish notes that the run is over for this peer: it takes no further step. It reports true
// to the first that says so.
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

// Settle notes that nothing is left to do for this peer itself.
func (f *Flock) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = true
	f.look()
}

// Settled tells whether nothing is left to do for this peer itself.
func (f *Flock) Settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.settled
}

// look finds out whether the run is over for all. The lock is held.
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

// Flown is closed when nothing is left to do for any member.
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
