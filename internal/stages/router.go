package stages

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// ID names a micro-batch: whose rows it is made of, and a number there.
type ID struct {
	Source topology.PeerID
	Number uint64
}

// Load is what a member of a stage tells with each answer.
type Load struct {
	Waiting int           // micro-batches that it has not computed forward yet
	Each    time.Duration // that it takes for one, forward and back
}

// Router chooses members of one stage. The zero value knows none.
type Router struct {
	members map[topology.PeerID]*member
}

// member is one of the stage, as this side knows it.
type member struct {
	load  Load
	told  bool
	at    time.Duration // when it told
	since int           // sent to it after it told
	out   map[ID]sent
}

// sent is when a micro-batch was sent, and when it is given up.
type sent struct{ at, until time.Duration }

// Set says who the members are now. It returns the micro-batches that were with those who are gone, in order.
func (r *Router) Set(members []topology.PeerID) (lost []ID) {
	if r.members == nil {
		r.members = map[topology.PeerID]*member{}
	}
	for id, m := range r.members {
		if !slices.Contains(members, id) {
			lost = slices.AppendSeq(lost, maps.Keys(m.out))
			delete(r.members, id)
		}
	}
	for _, id := range members {
		if r.members[id] == nil {
			r.members[id] = &member{out: map[ID]sent{}}
		}
	}
	return ordered(lost)
}

func ordered(ids []ID) []ID {
	slices.SortFunc(ids, func(a, b ID) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Number, b.Number))
	})
	return ids
}

// Choose is the member that is expected to be done with the micro-batch first, of those that have room for it. It is
// false if there is none.
func (r *Router) Choose(now time.Duration, id ID) (topology.PeerID, bool) {
	var best topology.PeerID
	least, found := choice{}, false
	for name, m := range r.members {
		each := r.each(m)
		waiting := max(0, m.load.Waiting-int((now-m.at)/each)) + m.since
		if waiting >= maxQueue || len(m.out) >= maxOut {
			continue
		}
		c := choice{time.Duration(waiting+1) * each, len(m.out), mixed(id, name)}
		if !found || c.before(least) {
			best, least, found = name, c, true
		}
	}
	return best, found
}

// lookAgain is how often members that had no room are asked again.
const lookAgain = 20 * time.Millisecond

// maxOut bounds the micro-batches that one side has at a member at once.
const maxOut = 8

// each is what a micro-batch takes at a member: what it has told, or else the mean of what the others have.
func (r *Router) each(m *member) time.Duration {
	if m.told {
		return max(m.load.Each, 1)
	}
	sum, n := time.Duration(0), time.Duration(0)
	for _, o := range r.members {
		if o.told {
			sum, n = sum+o.load.Each, n+1
		}
	}
	return max(sum/max(n, 1), 1)
}

// choice is how a member looks for a micro-batch.
type choice struct {
	done  time.Duration // when it is expected to be
	out   int
	place uint64 // who is first among equals, different for each micro-batch
}

func (c choice) before(o choice) bool {
	return cmp.Or(cmp.Compare(c.done, o.done), cmp.Compare(c.out, o.out), cmp.Compare(c.place, o.place)) < 0
}

func mixed(id ID, name topology.PeerID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id.Source))
	h.Write([]byte(name))
	return (h.Sum64() ^ id.Number) * 0x9e3779b97f4a7c15
}

// Sent takes note of a micro-batch that a member gets. It is given up at until.
func (r *Router) Sent(now time.Duration, id ID, to topology.PeerID, until time.Duration) {
	if m := r.members[to]; m != nil {
		m.out[id] = sent{now, until}
		m.since++
	}
}

// Answered takes note of an answer of a member, and of its load. It returns how long that took, and false if the
// micro-batch was not with it.
func (r *Router) Answered(now time.Duration, id ID, from topology.PeerID, load Load) (took time.Duration, ok bool) {
	m := r.members[from]
	if m == nil {
		return 0, false
	}
	s, ok := m.out[id]
	delete(m.out, id)
	m.load, m.told, m.at, m.since = load, true, now, 0
	return now - s.at, ok
}

// Forget is for a micro-batch that nobody waits for any more.
func (r *Router) Forget(id ID) {
	for _, m := range r.members {
		delete(m.out, id)
	}
}

// Overdue returns the micro-batches that are given up by now, in order, and forgets them.
func (r *Router) Overdue(now time.Duration) (late []ID) {
	for _, m := range r.members {
		for id, s := range m.out {
			if s.until <= now {
				late = append(late, id)
				delete(m.out, id)
			}
		}
	}
	return ordered(late)
}

// Next is when to look again: when the first micro-batch is given up, or soon, if some wait for a member that has room. It
// is false if nothing is waited for.
func (r *Router) Next(now time.Duration, waiting bool) (at time.Duration, any bool) {
	if waiting {
		return now + lookAgain, true
	}
	for _, m := range r.members {
		for _, s := range m.out {
			if !any || s.until < at {
				at, any = s.until, true
			}
		}
	}
	return at, any
}

// Members is how many there are.
func (r *Router) Members() int { return len(r.members) }
