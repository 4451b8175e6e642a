package stages

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Load is what a member of a stage tells with each answer. It is a hint: what nobody can have is bounded.
type Load struct {
	Waiting int           // micro-batches that it has not computed forward yet
	Each    time.Duration // that it takes for one, forward and back; 0 if it does not know yet
}

// Bounds of what a member tells, and of what it is sent.
const (
	maxTold = 1 << 10
	maxEach = time.Hour
	// maxQueue bounds the micro-batches that wait at a member to be computed forward; who sends knows it.
	maxQueue = 2
	// maxOut bounds the micro-batches that one side has at a member at once.
	maxOut = 8
	// lookAgain is how often members that had no room are asked again.
	lookAgain = 20 * time.Millisecond
	// maxSilent and maxUseless bound how often the time doubles for which a member is left alone that is silent, or takes
	// all for useless: from leastWait and lookAgain on, to a minute or so.
	maxSilent  = 6
	maxUseless = 12
)

// Router chooses members of one stage. The zero value knows none.
type Router struct {
	members map[topology.PeerID]*member
}

// member is one of the stage, as this side knows it.
type member struct {
	load   Load
	at     time.Duration // when it told that
	shut   time.Duration // until then nothing is sent to it: it has no room, or is silent
	silent int           // sendings in a row that it has not answered
	gaveUp int           // answers in a row that what it was sent is of no use
	out    map[uint64]time.Duration
}

// since is how many are out that were sent after it told its load.
func (m *member) since() (n int) {
	for _, at := range m.out {
		if at >= m.at {
			n++
		}
	}
	return n
}

// Set says who the members are now. It returns the sendings that were with those who are gone, in order.
func (r *Router) Set(members []topology.PeerID) (lost []uint64) {
	if r.members == nil {
		r.members = map[topology.PeerID]*member{}
	}
	for id, m := range r.members {
		if !slices.Contains(members, id) {
			for number := range m.out {
				lost = append(lost, number)
			}
			delete(r.members, id)
		}
	}
	for _, id := range members {
		if r.members[id] == nil {
			r.members[id] = &member{out: map[uint64]time.Duration{}}
		}
	}
	slices.Sort(lost)
	return lost
}

// Choose is the member that is expected to be done first with what is sent to it now, of those that have room. It is
// false if there is none. The number of the sending decides among equals. Only is the one that it may be, if any.
func (r *Router) Choose(now time.Duration, number uint64, only topology.PeerID) (topology.PeerID, bool) {
	var best topology.PeerID
	least, found := choice{}, false
	usual := r.usual()
	for name, m := range r.members {
		each := cmp.Or(m.load.Each, usual)
		waiting := max(0, m.load.Waiting-int(min((now-m.at)/each, maxTold))) + m.since()
		if only != "" && name != only || now < m.shut || waiting >= maxQueue || len(m.out) >= maxOut {
			continue
		}
		place := (name.Fingerprint() ^ number) * 0x9e3779b97f4a7c15
		c := choice{time.Duration(waiting+1) * each, len(m.out), place}
		if !found || c.before(least) {
			best, least, found = name, c, true
		}
	}
	return best, found
}

// usual is what a micro-batch takes at the members that know, in the mean.
func (r *Router) usual() time.Duration {
	sum, n := time.Duration(0), time.Duration(0)
	for _, m := range r.members {
		if m.load.Each > 0 {
			sum, n = sum+m.load.Each, n+1
		}
	}
	return max(sum/max(n, 1), 1)
}

// choice is how a member looks for a micro-batch.
type choice struct {
	done  time.Duration // when it is expected to be
	out   int
	place uint64 // who is first among equals, different for each sending
}

func (c choice) before(o choice) bool {
	return cmp.Or(cmp.Compare(c.done, o.done), cmp.Compare(c.out, o.out), cmp.Compare(c.place, o.place)) < 0
}

// Sent takes note of a sending to a member.
func (r *Router) Sent(now time.Duration, number uint64, to topology.PeerID) {
	if m := r.members[to]; m != nil {
		m.out[number] = now
	}
}

// Answered takes note of an answer of a member, and of its load.
func (r *Router) Answered(now time.Duration, number uint64, from topology.PeerID, load Load, answer Answer) {
	m := r.members[from]
	if m == nil {
		return
	}
	delete(m.out, number)
	m.load = Load{Waiting: min(max(load.Waiting, 0), maxTold), Each: min(max(load.Each, 0), maxEach)}
	m.at, m.silent, m.shut = now, 0, 0
	switch answer {
	case Done:
		m.gaveUp = 0
	case NoRoom:
		m.shut = now + lookAgain
	case GivenUp:
		m.shut = now + lookAgain<<min(m.gaveUp, maxUseless)
		m.gaveUp++
	}
}

// Silent takes note that a member has not answered a sending in time. If it has answered nothing since, nothing is sent
// to it for a while, for longer each time.
func (r *Router) Silent(now time.Duration, number uint64) {
	for _, m := range r.members {
		at, out := m.out[number]
		delete(m.out, number)
		if out && at >= m.at {
			m.shut = now + leastWait<<min(m.silent, maxSilent)
			m.silent++
		}
	}
}

// Forget is for a sending that is not waited for any more.
func (r *Router) Forget(number uint64) {
	for _, m := range r.members {
		delete(m.out, number)
	}
}
