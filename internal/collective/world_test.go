package collective_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// width is how many values there are: each is moved by itself, so that a transfer can break off between any two.
	width    = 64
	deadline = 2 * time.Second
)

// vector is what is summed. The i-th peer brings 8^i in each place: the sum tells whose parts it has, and how often.
type vector [width]float64

// world is some peers that sum and do nothing else, in virtual time. A word takes a while, and may be overtaken or lost; a transfer
// may break off, and changes what the receiver holds until that knows of its end. All follows from the seed.
type world struct {
	t      failer
	rand   *rand.Rand
	queue  sim.Queue
	peers  []*peer
	most   time.Duration                              // that anything takes, beside 1 ms
	slow   map[[2]topology.PeerID]time.Duration       // links on which a word takes longer
	stops  time.Duration                              // that it takes at most until a transfer that its receiver gives up changes nothing any more
	refuse time.Duration                              // that a refusal takes longer than a word
	drops  func(from *peer, a collective.Action) bool // what is lost for certain
	loss   float64                                    // of words
	breaks float64                                    // of transfers
	show   func(format string, args ...any)
}

// failer is a test, or one try of a property.
type failer interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// peer is one that sums. It is the owner of its Summing.
type peer struct {
	*collective.Summing
	members collective.Members
	world   *world
	id      topology.PeerID
	brings  float64
	gone    bool           // dead: its transfers break off
	frozen  bool           // nothing of it moves, and nothing breaks off
	unfit   bool           // its codec holds no such numbers
	acts    int            // things that it has done
	fates   map[int]func() // what happens to it before so many
	again   bool           // what it says it has said before
	sum     vector
	attempt uint64 // of what it has sent last
	sending map[averaging.ExchangeID]*transfer
	taking  map[key]*transfer
	calls   []string // sums to be called, one after the other
	called  string   // the last
	since   time.Duration
	ends    map[string]end
}

// end is how a sum ended at a peer.
type end struct {
	sum vector
	err error
	// left: the others have made it without this peer.
	left bool
}

// errCancelled is the end of one that this peer has left.
var errCancelled = errors.New("cancelled")

// key is how a receiver tells transfers apart.
type key struct {
	from topology.PeerID
	id   averaging.ExchangeID
}

// transfer is one under way.
type transfer struct {
	collective.Transfer
	id       averaging.ExchangeID
	from, to *peer
	cut      bool // no more of it arrives
	over     bool
}

// newWorld is a world of so many peers, who know each other, and sum by halving and doubling unless a shape is given.
func newWorld(t failer, seed uint64, n, length int, shape ...topology.Shape) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), slow: make(map[[2]topology.PeerID]time.Duration), show: func(string, ...any) {}, drops: func(*peer, collective.Action) bool { return false }}
	brings := 1.0
	for i := range n {
		p := &peer{
			world: w, id: topology.PeerID(rune('a' + i)), brings: brings, ends: make(map[string]end), fates: make(map[int]func()),
			sending: make(map[averaging.ExchangeID]*transfer), taking: make(map[key]*transfer),
		}
		brings *= 8
		p.members.Self = p.id
		p.Summing = collective.NewSumming(&collective.Flights{Self: p.id, Deadline: deadline}, &p.members, p, append(shape, topology.Exponential)[0])
		p.SetLength(length, true)
		w.peers = append(w.peers, p)
	}
	for _, p := range w.peers {
		p.look()
	}
	return w
}

// upTo is a time by chance.
func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(d) + 1))
}

// delay is what anything takes.
func (w *world) delay() time.Duration { return time.Millisecond + w.upTo(w.most) }

func (w *world) peer(id topology.PeerID) *peer {
	return w.peers[slices.IndexFunc(w.peers, func(p *peer) bool { return p.id == id })]
}

// look shows a peer those who are not dead, and tells it whom it has lost.
func (p *peer) look() {
	var members []topology.Member
	for _, other := range p.world.peers {
		if !other.gone && !other.frozen || other == p {
			members = append(members, topology.Member{ID: other.id})
		}
	}
	view, err := topology.NewView(members)
	if err != nil {
		p.world.t.Fatalf("%v", err)
	}
	p.does(func() {
		for _, id := range p.members.See(view) {
			p.Lose(id)
		}
	})
}

// does has the peer do something, and carries out what follows.
func (p *peer) does(what func()) {
	if p.gone || p.frozen {
		return
	}
	p.Begin(p.world.queue.Now(), nil)
	what()
	p.Arm(p.Busy() || len(p.Out) > 0, p.Slice())
	for _, a := range p.End() {
		if fate := p.fates[p.acts]; fate != nil {
			fate()
		}
		if p.acts++; p.gone || p.frozen {
			return
		}
		p.carryOut(a)
	}
}

// next calls the next sum.
func (p *peer) next() {
	if len(p.calls) > 0 {
		p.called, p.calls, p.attempt, p.since = p.calls[0], p.calls[1:], 0, p.world.queue.Now()
		p.does(func() { p.Call(p.called, deadline, p.brings) })
	}
}

// Load implements collective.Summer.
func (p *peer) Load(collective.Transfer) { p.Ask(collective.Pool) }

// Summed implements collective.Summer.
func (p *peer) Summed(r collective.Summed) {
	if r.Err == nil {
		p.Ask(collective.Adopt)
		return
	}
	p.ended(end{err: r.Err, left: r.LeftOut})
}

// ended notes how the sum did that was called last. Each does once.
func (p *peer) ended(e end) {
	if before, twice := p.ends[p.called]; twice {
		p.world.t.Fatalf("%s: %q ends with %v, after %v", p.id, p.called, e, before)
	}
	if took := p.world.queue.Now() - p.since; took >= time.Minute {
		p.world.t.Errorf("%q took %s at %s: something stood still", p.called, took, p.id)
	}
	p.ends[p.called] = e
	if e.err != nil {
		p.calls = nil // it would need a copy of what the others have
		p.world.show("%s has no sum: %v", p.id, e.err)
	} else {
		p.world.show("%s has the sum %v of %s", p.id, e.sum[0], p.world.partsOf(e.sum[0]))
	}
	p.world.queue.After(p.world.upTo(20*time.Millisecond), p.next)
}

// cancels takes the peer out of its sum.
func (p *peer) cancels() {
	if p.Under() && !p.gone && !p.frozen {
		p.world.show("%s cancels", p.id)
		p.does(p.Cancel)
		p.ended(end{err: errCancelled})
	}
}

// unseen is after what time the others hear at last of one that was silent long before.
const unseen = 10 * deadline

// dies ends a peer. The others hear of it within the notice.
func (p *peer) dies(notice time.Duration) {
	p.world.show("%s dies", p.id)
	p.gone = true
	p.isMissed(notice)
}

// freezes has a peer do nothing any more, while nothing of it breaks off.
func (p *peer) freezes() {
	p.frozen = true
	p.isMissed(unseen)
}

func (p *peer) isMissed(notice time.Duration) {
	for _, other := range p.world.peers {
		if other != p {
			p.world.queue.After(max(notice-time.Second, 0)+p.world.upTo(min(notice, time.Second)), other.look)
		}
	}
}

// partsOf names those whose parts are in a sum, each as often as it is.
func (w *world) partsOf(sum float64) (names string) {
	for rest, i := uint64(sum), 0; rest > 0; rest, i = rest/8, i+1 {
		for range rest % 8 {
			names += fmt.Sprintf("%c", 'a'+i)
		}
	}
	return names
}

// check shows that all sums have ended for those who live, with one vector for all who have a result, in which the part of each of these is, and
// that of nobody twice.
func (w *world) check(names []string) {
	for _, name := range names {
		var first *peer
		for _, p := range w.peers {
			e, ended := p.ends[name]
			switch {
			case p.gone || p.frozen:
			case !ended && len(p.ends) > 0 && p.ends[p.called].err != nil:
			case !ended:
				w.t.Errorf("at %s: %q has no end at %s", w.queue.Now(), name, p.id)
			case e.err != nil && !e.left && !errors.Is(e.err, errCancelled):
				w.t.Errorf("%q at %s: %v", name, p.id, e.err)
			case e.err != nil:
			case first == nil:
				first = p
				fallthrough
			default:
				for i, value := range e.sum {
					if value != first.ends[name].sum[0] {
						w.t.Errorf("%q: %s has %s in place %d, %s has %s", name, p.id, w.partsOf(value), i, first.id, w.partsOf(first.ends[name].sum[0]))
						return
					}
				}
				w.checkParts(name, p, e.sum[0])
			}
		}
	}
}

// checkParts shows that a sum has this peer's part, and that of nobody twice.
func (w *world) checkParts(name string, p *peer, sum float64) {
	for rest, i := uint64(sum), 0; rest > 0 || i < len(w.peers); rest, i = rest/8, i+1 {
		if rest%8 > 1 || i < len(w.peers) && w.peers[i] == p && rest%8 == 0 || i >= len(w.peers) {
			w.t.Errorf("%q at %s is of %q", name, p.id, w.partsOf(sum))
			return
		}
	}
}
