package peer

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// What the flags of a member's record mean, those of algorithmBits aside.
const (
	flagOver        = 1 << 0               // the run is over for this member; it serves exchanges
	flagLeaving     = 1 << 1               // the member is leaving of its own accord
	flagUnreachable = seam.FlagUnreachable // others cannot dial the member
)

// maxDeparted bounds the departed members whose steps are told apart; those of
// the ones that have been away for longest are kept as one sum.
const maxDeparted = 1024

const (
	// credit is how many times the median a member's word on its own steps may
	// count: what it claims beyond is ignored. A lower one would leave out more of
	// what the fast peers of an unequal flock have really done.
	credit = 2
	// oneLiarIn is among how many members one may lie and add nothing: nobody's word
	// counts for more than that of the most advanced of the others, of whom so many are
	// left out.
	oneLiarIn = 5
)

// flock estimates what all peers together have done, from what members sign.
//
// The estimate is the sum of the members' steps, each counted up to a ceiling,
// plus those of members that have departed. All lives of a member count as one
// peer. The ceiling follows from the ages of the models, which are the steps that
// lie behind a member's model, whoever took them: a latecomer, whose model is old
// though its own steps are few, neither moves the ceiling nor is counted for
// steps it has not taken. A liar so adds at most one more share than an honest
// peer, and where no more than one in oneLiarIn lie, nothing beyond what the most
// advanced honest peer has done. The estimate never falls.
type flock struct {
	mu        sync.Mutex
	present   map[seam.PeerID]seam.Record
	accounts  map[seam.PeerID]account // of those present
	departed  *simplelru.LRU[seam.PeerID, account]
	inherited uint64 // steps of members that departed before this peer came
	lost      int
	own       rebirths // of this peer, by another process with its key
	ceiling   uint64   // most that was last counted of a member's word
	ages      []uint64 // scratch

	others       atomic.Uint64 // steps of everybody but this peer
	participants atomic.Int64  // the most peers that were present at once, this one included
}

func newFlock() *flock {
	departed, err := simplelru.NewLRU[seam.PeerID, account](maxDeparted, nil)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	f := &flock{present: make(map[seam.PeerID]seam.Record), accounts: make(map[seam.PeerID]account), departed: departed}
	f.participants.Store(1)
	return f
}

// seen is what a look at the membership has brought up: members that have gone without
// leaving, and those of whose key two processes must make use.
type seen struct{ lost, twins []seam.PeerID }

// observe takes the present members' records; self's own says what this peer has
// done.
func (f *flock) observe(members []seam.Record, self seam.PeerID, now time.Time) (news seen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.present
	f.present = make(map[seam.PeerID]seam.Record, len(members))
	f.ages = f.ages[:0]
	for _, m := range members {
		f.ages = append(f.ages, plus(m.Head, m.Steps))
		if m.Peer != self {
			f.present[m.Peer] = m
		}
	}
	f.ceiling = believable(f.ages)
	for id, m := range f.present {
		a := f.accountOf(id)
		if old, here := before[id]; here && m.Incarnation > old.Incarnation {
			if a.another(now) {
				news.twins = append(news.twins, id)
			}
			if !a.twin(now) {
				f.losing(old)
			}
		}
		f.accounts[id] = a.with(m, f.ceiling)
		f.departed.Remove(id)
	}
	for id, old := range before {
		if _, here := f.present[id]; here {
			continue
		}
		f.depart(id)
		if f.losing(old) {
			news.lost = append(news.lost, id)
		}
	}
	f.participants.Store(max(f.participants.Load(), int64(1+len(f.present))))
	f.tally()
	return news
}

// losing counts a life that has ended, and tells whether it was without leaving.
func (f *flock) losing(old seam.Record) bool {
	if old.Flags&(flagLeaving|flagOver) != 0 {
		return false
	}
	f.lost++
	return true
}

// accountOf is a member's account, whether it is present or not.
func (f *flock) accountOf(id seam.PeerID) account {
	if a, here := f.accounts[id]; here {
		return a
	}
	a, _ := f.departed.Peek(id)
	return a
}

// depart keeps what a member did after it has gone.
func (f *flock) depart(id seam.PeerID) {
	f.keep(id, f.accounts[id])
	delete(f.accounts, id)
}

// keep puts an account to those of members that are not present; what the one that has
// been away for longest has done is from then on in the sum if there are too many.
func (f *flock) keep(id seam.PeerID, a account) {
	if _, oldest, ok := f.departed.GetOldest(); ok && f.departed.Len() >= maxDeparted && !f.departed.Contains(id) {
		f.inherited = plus(f.inherited, oldest.done())
	}
	f.departed.Add(id, a)
}

// tally recomputes the sum of the others' steps.
func (f *flock) tally() {
	all := f.inherited
	for _, a := range f.accounts {
		all = plus(all, a.done())
	}
	for _, a := range f.departed.Values() {
		all = plus(all, a.done())
	}
	f.others.Store(max(all, f.others.Load()))
}

// inherit takes over a donor's estimate of the flock's steps: what it exceeds the
// present members' own by was done by others that have departed.
//
// Own are the steps of this peer that the estimate includes: those of earlier lives.
func (f *flock) inherit(total, own uint64, self seam.PeerID, present []seam.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	total -= min(total, own)
	known := f.inherited
	here := make(map[seam.PeerID]bool, len(present))
	for _, m := range present {
		if m.Peer != self {
			here[m.Peer] = true
			known = plus(known, f.accountOf(m.Peer).with(m, total).done())
		}
	}
	for _, id := range f.departed.Keys() {
		if a, _ := f.departed.Peek(id); !here[id] {
			known = plus(known, a.done())
		}
	}
	if total > known {
		f.inherited += total - known
	}
	f.others.Store(max(total, f.others.Load()))
}

// total is the estimate of all peers' steps, given this peer's own.
func (f *flock) total(own uint64) uint64 { return plus(f.others.Load(), own) }

// outlived notes that somebody else has spoken as this peer. It reports true if that must be
// another process, once in a while.
func (f *flock) outlived(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.own.another(now)
}

// twins is the number of members, this one included, of whose key two processes must make
// use.
func (f *flock) twins(now time.Time) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.accounts {
		if a.twin(now) {
			n++
		}
	}
	if f.own.twin(now) {
		n++
	}
	return n
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

// believable is the most that one peer can have done in a flock whose models have these
// ages, which it sorts.
func believable(ages []uint64) uint64 {
	if len(ages) == 0 {
		return 0
	}
	most := min(median(ages), math.MaxUint64/credit) * credit
	if leftOut := len(ages) / oneLiarIn; leftOut > 0 {
		most = min(most, ages[len(ages)-1-leftOut])
	}
	return most
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
