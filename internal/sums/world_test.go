package sums

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// world is some members in virtual time: what they say takes a while, in order on each link;
// they may die, and others find out later, each at its own time.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Duration
	events   events
	count    int
	members  []*member
	byName   map[ID]*member
	free     map[[3]int]time.Duration // when a link has delivered what is on it
	passes   int                      // 1 if words pass shares on a link
	cut      map[[2]int]bool          // links on which something of a dead one was lost, and all after it
	sent     uint64                   // bytes of shares
	trace    bool
	delay    time.Duration   // of a word, at most
	constant bool            // that is what each takes
	noticed  time.Duration   // after what time a death is found out, at most
	masked   bool            // what is added has masks
	shape    topology.Shape  // by which it is added
	alone    map[string]bool // masked sums that failed when fewer than three lived
	fell     map[string]int  // who died when they held a masked sum, or had told the seeds of its masks
}

type member struct {
	*Machine
	world   *world
	index   int
	dead    bool
	dies    int // after what it has done so many things; 0 is never
	knows   []ID
	calls   []Call // to be made, one after the other
	results []Result
	lie     lie           // what it does with what it should say, nil if it is honest
	called  time.Duration // last
	longest time.Duration // that a call took
	wait    time.Duration // until it has sent all, if it trickles
	held    []float64     // what it moves
	moving  *Moving       // in which attempt
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func name(i int) ID { return ID(fmt.Sprintf("m%02d", i)) }

// newWorld is a world of members that all know each other.
func newWorld(t *testing.T, seed uint64, n int) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), free: make(map[[3]int]time.Duration), passes: int(seed % 3 / 2), cut: make(map[[2]int]bool), byName: make(map[ID]*member), alone: make(map[string]bool), fell: make(map[string]int),
		delay: 5 * time.Millisecond, noticed: 4 * time.Second}
	all := make([]ID, n)
	for i := range all {
		all[i] = name(i)
	}
	for i := range n {
		m := &member{Machine: New(name(i), Times{}), world: w, index: i, knows: slices.Clone(all)}
		m.View(0, m.knows)
		w.members, w.byName[m.self] = append(w.members, m), m
		w.after(w.upTo(time.Second), m.tick)
	}
	return w
}

// over makes the sums of a world go by the shape of a number: by halving and doubling, round a ring, or over a tree.
func (w *world) over(n uint64) *world {
	w.shape = topology.Shape(n % 3)
	return w
}

func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(d) + 1))
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now + d, w.count, do})
}

// run goes on until nobody has anything to do, or a time has come.
func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= until && !w.idle() {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

func (w *world) idle() bool {
	return !slices.ContainsFunc(w.members, func(m *member) bool {
		return !m.dead && (len(m.calls) > 0 || slices.ContainsFunc(m.sums(), func(s *sum) bool { return s.own != nil }))
	})
}

func (m *member) tick() {
	if !m.dead {
		m.Tick(m.world.now)
		m.settle()
		m.world.after(time.Second, m.tick)
	}
}

// next makes the next call.
func (m *member) next() {
	if !m.dead && len(m.calls) > 0 {
		call := m.calls[0]
		m.calls = m.calls[1:]
		m.called = m.world.now
		m.Call(m.world.now, call)
		m.settle()
	}
}

// settle carries out what the machine wants.
func (m *member) settle() {
	for all := m.Outcomes(); len(all) > 0; all = m.Outcomes() {
		m.counted()
		for _, o := range all {
			if m.dies--; m.dies == 0 {
				m.world.kill(m)
			}
			if m.dead {
				return
			}
			if o.Moving != nil {
				m.load(o.Moving)
				continue
			}
			if o.Result != nil {
				m.holds(o.Result)
				if o.Result.Err != nil && m.world.living() < mask.Least {
					m.world.alone[o.Result.Name] = true
				}
				m.results = append(m.results, *o.Result)
				m.longest = max(m.longest, m.world.now-m.called)
				m.world.after(m.world.upTo(20*time.Millisecond), m.next)
				continue
			}
			if m.lie != nil && (o.Chunk == nil || m.world.rand.IntN(8) == 0) { // else it hands on what it should
				m.lie(m, o)
				continue
			}
			m.world.carry(m, o)
		}
	}
}

// counted shows that a coordinator finds whether one is missing, or has not said what it knows, as a search
// of all does.
func (m *member) counted() {
	for _, s := range m.sums() {
		if l := s.lead; l != nil && len(m.members) < 20 {
			if l.lacking.finds(l.expected(), l.lacks) != (len(l.missing()) > 0) || l.informed() != (len(l.silent()) == 0) {
				m.world.t.Errorf("%s: %d missing of %s, %d silent, which are not found", m.self, len(l.missing()), s.name, len(l.silent()))
			}
		}
	}
}

// carry has something arrive, as bytes as it would go over a stream.
func (w *world) carry(from *member, o Outcome) {
	to := w.byName[o.To]
	if o.Chunk != nil {
		w.move(from, to, *o.Chunk)
		return
	}
	link := [2]int{from.index, to.index}
	lane := [3]int{from.index, to.index}
	payload := payloadOf(o)
	if o.Share != nil {
		lane[2] = w.passes
		w.sent += uint64(len(payload))
	}
	at := w.now + w.delay
	if !w.constant {
		at = max(w.free[lane], w.now+w.upTo(w.delay))
	}
	w.free[lane] = at
	if w.trace {
		w.t.Logf("%v %s to %s: %+v %+v", w.now, from.self, to.self, o.Message, o.Share)
	}
	w.after(at-w.now, func() {
		if from.dead && w.rand.IntN(2) == 0 {
			w.cut[link] = true
		}
		if to.dead || w.cut[link] {
			return
		}
		to.take(from.self, o.Share != nil, payload)
	})
}

func payloadOf(o Outcome) []byte {
	if o.Share != nil {
		return o.Share.Append(nil)
	}
	return o.Message.Append(nil)
}

func (m *member) take(from ID, share bool, payload []byte) {
	if share {
		var s wire.Share
		if err := s.Decode(payload); err != nil {
			m.world.t.Fatal(err)
		}
		m.Share(m.world.now, from, s)
	} else {
		var word wire.Sum
		if err := word.Decode(payload); err != nil {
			m.world.t.Fatal(err)
		}
		m.Receive(m.world.now, from, word)
	}
	m.settle()
}

// kill ends a member; others find its streams broken at once or not, and learn of its death
// within seconds.
func (w *world) kill(victim *member) {
	victim.dead = true
	for _, s := range victim.sums() {
		if s.own != nil && s.own.stage >= Holding {
			w.fell[s.name]++
		}
	}
	for _, name := range victim.over.Keys() {
		if e, _ := victim.over.Peek(name); e.attempt > 0 && slices.ContainsFunc(w.members, func(m *member) bool { return !m.dead && !m.Over(name) }) {
			w.fell[name]++ // it has used a sum that others have not
		}
	}
	for _, m := range w.members {
		if m.dead {
			continue
		}
		if w.rand.IntN(3) > 0 {
			w.after(w.upTo(50*time.Millisecond), func() { m.Broken(w.now, victim.self); m.settle() })
		}
		w.after(w.upTo(w.noticed), func() {
			m.knows = slices.DeleteFunc(m.knows, func(id ID) bool { return id == victim.self })
			m.View(w.now, m.knows)
			m.settle()
		})
	}
}

// living is how many live.
func (w *world) living() (n int) {
	for _, m := range w.members {
		if !m.dead {
			n++
		}
	}
	return n
}

// maskedFails tells whether a masked sum may have failed: fewer than three were left, or two died between the first
// seed that was told and COMMIT.
func (w *world) maskedFails(r *Result) bool {
	return w.masked && errors.Is(r.Err, ErrTooFew) && (w.alone[r.Name] || w.fell[r.Name] > 1)
}

func callOf(m *member, i, length int) Call {
	vector := make([]float64, length)
	for k := range vector {
		vector[k] = float64(uint64(1) << m.index)
	}
	call := Call{Name: fmt.Sprintf("sum %d", i), Vector: vector, Least: 1, Timeout: 10 * time.Second}
	switch i % 5 {
	case 4:
		call.Op, call.Length, call.Value, call.Vector = movedOf(len(m.world.members)), heldLength, float64(m.index), nil
	case 2:
		call.Op = Max
	case 3:
		call.Op, call.Data, call.Vector = Gather, bytes.Repeat([]byte(m.self), length%7), nil
	}
	return call
}

// check compares what the members have got: the same for all who live, of some of those who
// called, the survivors among them.
func (w *world) check(seed uint64, sums int) {
	type got struct{ result *Result }
	results, failed := make(map[string]got), make(map[string]bool)
	defer func() {
		for name := range failed {
			if results[name].result != nil {
				w.t.Errorf("seed %d: %q has a result here, and has failed there", seed, name)
			}
		}
	}()
	for _, m := range w.members {
		if !m.dead && len(m.results) != sums {
			w.t.Errorf("seed %d: %s has %d results of %d at %v", seed, m.self, len(m.results), sums, w.now)
		}
		for i := range m.results {
			r := &m.results[i]
			if m.dead {
				continue
			}
			if w.maskedFails(r) {
				failed[r.Name] = true
				continue
			}
			if r.Err != nil {
				w.t.Errorf("seed %d: %s: %v", seed, m.self, r.Err)
			}
			first, ok := results[r.Name]
			if !ok {
				results[r.Name] = got{r}
				w.checkOne(seed, r)
				continue
			}
			if !slices.Equal(first.result.Vector, r.Vector) || first.result.Peers != r.Peers || !slices.EqualFunc(first.result.Blocks, r.Blocks, bytes.Equal) {
				w.t.Errorf("seed %d: %q has two results: of %d and %d", seed, r.Name, first.result.Peers, r.Peers)
			}
		}
	}
}

// checkOne tells whether a result is one of as many as it says, all survivors among them.
func (w *world) checkOne(seed uint64, r *Result) {
	if len(r.Vector) == 0 || r.Name == "sum 2" {
		return
	}
	of := uint64(r.Vector[0])
	for _, v := range r.Vector {
		if uint64(v) != of {
			w.t.Errorf("seed %d: %q is of %b here and %b there", seed, r.Name, of, uint64(v))
		}
	}
	if isSum := r.Name == "sum 0" || r.Name == "sum 1" || r.Name == "sum 4"; isSum && bits.OnesCount64(of) != r.Peers {
		w.t.Errorf("seed %d: %q is of %b, and says %d", seed, r.Name, of, r.Peers)
	}
	for _, m := range w.members {
		if isSum := r.Name == "sum 0" || r.Name == "sum 1" || r.Name == "sum 4"; isSum && !m.dead && of&(1<<m.index) == 0 {
			w.t.Errorf("seed %d: %q is without %s, who lives", seed, r.Name, m.self)
		}
	}
}

// all are the members of the world.
func (m *member) all() (all []ID) {
	for _, other := range m.world.members {
		all = append(all, other.self)
	}
	return all
}

// see takes a view.
func (m *member) see(members []ID) {
	m.knows = members
	m.View(m.world.now, members)
	m.settle()
}
