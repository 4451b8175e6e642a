package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// gossip is a flock whose members hear of one another late: every announcement
// reaches every other member after a delay of its own, 1 to lag ticks. A member
// decides from what it knows by then, and changes nobody's role but its own.
type gossip struct {
	rng   *rand.Rand
	lag   int // the longest that news is on its way, in ticks
	now   int
	alive []*lagging
	next  int
	mail  map[int][]letter // by the tick of arrival

	flips   int // role changes of members that had a role
	flipped map[PeerID][]int
}

// lagging is one member with what it has heard.
type lagging struct {
	self   Member
	number int // of its announcements
	view   *View
	known  map[PeerID]news
	news   bool // has heard something since it last decided
}

// news is an announcement: the newest number counts.
type news struct {
	member Member
	number int
	gone   bool
}

type letter struct {
	to   *lagging
	news news
}

func newGossip(seed uint64, lag int) *gossip {
	return &gossip{
		rng: rand.New(rand.NewPCG(seed, 0x6f55)), lag: lag,
		mail: make(map[int][]letter), flipped: make(map[PeerID][]int),
	}
}

// join adds a member through one that is there, nil if it is the first: the two
// exchange what they know at this moment, and the joiner hears what is on its way
// to the other too.
func (g *gossip) join(through *lagging, unreachable bool) {
	m := &lagging{
		self:  Member{ID: PeerID(fmt.Sprint("peer-", g.next)), Unreachable: unreachable},
		known: make(map[PeerID]news),
	}
	g.next++
	if through != nil {
		maps.Copy(m.known, through.known)
		through.known[m.self.ID], through.news = news{member: m.self}, true
		for at, letters := range g.mail {
			for _, l := range letters {
				if l.to == through {
					g.mail[at] = append(g.mail[at], letter{m, l.news})
				}
			}
		}
	}
	g.alive = append(g.alive, m)
	g.announce(m, false)
}

// leave takes out the member at a place.
func (g *gossip) leave(at int) {
	gone := g.alive[at]
	g.alive = slices.Delete(g.alive, at, at+1)
	g.announce(gone, true)
}

// announce sends what a member says of itself to everybody.
func (g *gossip) announce(m *lagging, gone bool) {
	m.number++
	m.news = true
	n := news{member: m.self, number: m.number, gone: gone}
	m.known[m.self.ID] = n
	for _, other := range g.alive {
		if other != m {
			at := g.now + 1 + g.rng.IntN(g.lag)
			g.mail[at] = append(g.mail[at], letter{other, n})
		}
	}
}

// tick delivers what is due; whoever has heard something decides anew.
func (g *gossip) tick(t testing.TB) {
	g.now++
	for _, l := range g.mail[g.now] {
		if old := l.to.known[l.news.member.ID]; l.news.number > old.number {
			l.to.known[l.news.member.ID], l.to.news = l.news, true
		}
	}
	delete(g.mail, g.now)
	for _, m := range g.alive {
		if m.news {
			g.decide(t, m)
		}
	}
}

func (g *gossip) decide(t testing.TB, m *lagging) {
	t.Helper()
	m.news = false
	var members []Member
	for _, n := range m.known {
		if !n.gone {
			members = append(members, n.member)
		}
	}
	m.view = mustView(t, members)
	self, _ := m.view.Lookup(m.self.ID)
	if self.Role == m.self.Role {
		return
	}
	if m.self.Role != Undecided {
		g.flips++
		g.flipped[m.self.ID] = append(g.flipped[m.self.ID], g.now)
	}
	m.self.Role = self.Role
	g.announce(m, false)
}

// settle lets news spread until nothing is on its way, and returns the ticks that
// it took.
func (g *gossip) settle(t testing.TB) int {
	t.Helper()
	began := g.now
	for len(g.mail) > 0 {
		g.tick(t)
		if g.now > began+100*g.lag {
			t.Fatalf("roles still change after %d ticks: %v", g.now-began, g.flipped)
		}
	}
	return g.now - began
}

// check finds what members do not agree on once all news has spread.
func (g *gossip) check(t testing.TB) {
	t.Helper()
	for _, m := range g.alive {
		if m.view.Digest() != g.alive[0].view.Digest() {
			t.Fatalf("%s sees\n%v\nand %s\n%v", m.self.ID, m.view, g.alive[0].self.ID, g.alive[0].view)
		}
		if got, _ := m.view.Lookup(m.self.ID); got.Role != m.self.Role {
			t.Fatalf("%s is %v, and %v in everybody's view", m.self.ID, m.self.Role, got.Role)
		}
	}
	reachable := slices.ContainsFunc(g.alive, func(m *lagging) bool { return !m.self.Unreachable })
	if v := g.alive[0].view; reachable && v.Len() > 1 && v.Passives() == 0 {
		t.Fatalf("no passive among %v", v)
	}
}

// anybody is a random member, nil if there is none.
func (g *gossip) anybody() *lagging {
	if len(g.alive) == 0 {
		return nil
	}
	return g.alive[g.rng.IntN(len(g.alive))]
}

// storm is churn at its worst: nearly all members of one class go at once, or as
// many joiners as there are members come within a few delays of news, or both.
func (g *gossip) storm(t testing.TB) {
	kind, class := g.rng.IntN(3), Role(1+g.rng.IntN(2))
	for range len(g.alive) {
		if kind != 0 && g.rng.IntN(2) == 0 {
			g.join(g.anybody(), g.rng.IntN(5) == 0)
		}
		if kind != 1 && len(g.alive) > 2 {
			at := g.rng.IntN(len(g.alive))
			if kind == 2 || g.alive[at].self.Role == class {
				g.leave(at)
			}
		}
		if g.rng.IntN(3) == 0 {
			g.tick(t)
		}
	}
}

// Members that decide at the same moment from different views settle on one, and
// nobody changes back and forth: in each of these storms every member changes at most
// once, and all is quiet within settleDelays.
func TestLaggingViewsSettle(t *testing.T) {
	const (
		seeds        = 20 // one for each longest delay
		settleDelays = 3  // in longest delays of news
	)
	longest, storms, flips, most := 0.0, 0, 0, 0
	for seed := range uint64(seeds) {
		g := newGossip(seed, 1+int(seed)%20)
		for range 2 + g.rng.IntN(60) {
			g.join(g.anybody(), g.rng.IntN(5) == 0)
			for range g.rng.IntN(3) {
				g.tick(t)
			}
		}
		for range 5 {
			g.settle(t)
			g.flips, g.flipped = 0, map[PeerID][]int{}
			g.storm(t)
			longest = max(longest, float64(g.settle(t))/float64(g.lag))
			g.check(t)
			storms, flips = storms+1, flips+g.flips
			for _, at := range g.flipped {
				most = max(most, len(at))
			}
		}
	}
	t.Logf("%d storms: %.1f role changes each, at most %d of one member; quiet within %.1f times the longest delay of news",
		storms, float64(flips)/float64(storms), most, longest)
	if most > 1 {
		t.Errorf("a member changed its role %d times in one storm: to and fro", most)
	}
	if longest > settleDelays {
		t.Errorf("roles settle within %.1f times the longest delay of news, want %d", longest, settleDelays)
	}
}

// Joiners that come at once, through one member, do not all join the class that
// was smaller when the first of them came.
func TestNewcomersComeTogether(t *testing.T) {
	const n, seeds = 32, 20
	changed := 0.0
	for seed := range uint64(seeds) {
		g := newGossip(seed, 10)
		g.join(nil, false)
		g.tick(t)
		for range n - 1 {
			g.join(g.alive[0], false)
		}
		g.settle(t)
		g.check(t)
		changed += float64(g.flips) / (n - 1) / seeds
	}
	t.Logf("%d newcomers at once: %.3f changes of others' roles per newcomer", n-1, changed)
	if changed > maxChanges {
		t.Errorf("%.3f role changes per newcomer, want at most %v", changed, maxChanges)
	}
}
