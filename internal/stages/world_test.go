package stages

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// world is a flock of stages in virtual time: members compute and links carry, and nothing else takes time.
type world struct {
	t       testing.TB
	now     time.Duration
	agenda  agenda
	serial  int
	lives   uint64 // members so far
	link    time.Duration
	rng     *rand.Rand
	losing  float64       // the share of messages that are lost
	useless func(ID) bool // whose values are of no use at the last stage; nil: nobody's
	nodes   map[topology.PeerID]*node
	stages  [][]topology.PeerID
	done    int
	lesson  *lesson // nil where values do not matter
}

// node is a member: a source, or a holder.
type node struct {
	name     topology.PeerID
	stage    int
	forward  time.Duration
	source   *Source
	holder   *Holder
	dead     bool
	made     map[ID]bool    // a source's micro-batches on their way
	received map[Key]bool   // what waits to be computed
	memory   map[Key]uint64 // what is computed forward, and with parameters of which version
	version  uint64
}

type event struct {
	at     time.Duration
	serial int
	do     func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].serial < a[j].serial
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.agenda, event{w.now + d, w.serial, do})
}

// newWorld has members of each stage, whose forward pass takes so long and whose pass back twice that, and sources with
// rows, of a window each.
func newWorld(t testing.TB, members, sources, window int, stages int, forward func(stage, i int) time.Duration) *world {
	w := &world{t: t, link: time.Millisecond, rng: rand.New(rand.NewPCG(4, 4)), nodes: map[topology.PeerID]*node{}, stages: make([][]topology.PeerID, stages)}
	for s := range stages {
		for i := range members {
			w.add(s, i, forward(s, i))
		}
	}
	for i := range sources {
		name := topology.PeerID(fmt.Sprint("source", i))
		w.nodes[name] = &node{name: name, stage: -1, source: NewSource(name, window, w.first()), made: map[ID]bool{}}
		w.tick(w.nodes[name])
	}
	return w
}

// first is where the numbers of a life begin.
func (w *world) first() uint64 {
	w.lives++
	return w.lives << 32
}

func (w *world) add(stage, i int, forward time.Duration) *node {
	h, err := NewHolder(Config{Stage: stage, Stages: len(w.stages), First: w.first()})
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{name: topology.PeerID(fmt.Sprintf("s%d.%d", stage, i)), stage: stage, forward: forward, holder: h, memory: map[Key]uint64{}, received: map[Key]bool{}}
	w.nodes[n.name] = n
	w.stages[stage] = append(w.stages[stage], n.name)
	w.tick(n)
	return n
}

// alive are the members of a stage.
func (w *world) alive(stage int) []topology.PeerID {
	if stage >= len(w.stages) {
		return nil
	}
	var list []topology.PeerID
	for _, name := range w.stages[stage] {
		if !w.nodes[name].dead {
			list = append(list, name)
		}
	}
	return list
}

// meet tells a member who is there.
func (w *world) meet(n *node) {
	switch {
	case n.dead:
	case n.source != nil:
		w.act(n, n.source.Members(w.now, w.alive(0)))
	default:
		w.act(n, n.holder.Members(w.now, w.alive(n.stage+1), func(id topology.PeerID) bool { return w.nodes[id] != nil && !w.nodes[id].dead }))
	}
}

func (w *world) names() []topology.PeerID {
	var names []topology.PeerID
	for name := range w.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// run lets the world go on for so long, with sources that always have rows.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for _, name := range w.names() {
		w.meet(w.nodes[name])
	}
	for _, name := range w.names() {
		w.feed(w.nodes[name])
	}
	for len(w.agenda) > 0 && w.agenda[0].at <= end {
		e := heap.Pop(&w.agenda).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
}

// tick looks for what is overdue.
func (w *world) tick(n *node) {
	w.after(lookAgain, func() {
		if n.dead {
			return
		}
		if n.source != nil {
			w.act(n, n.source.Tick(w.now))
			w.feed(n)
		} else {
			w.act(n, n.holder.Tick(w.now))
		}
		w.tick(n)
	})
}

func (w *world) feed(n *node) {
	for n.source != nil && !n.dead && n.source.Room() > 0 {
		id, do := n.source.Make(w.now)
		n.made[id] = true
		w.act(n, do)
	}
}

// to delivers a message to a member that lives, unless it is lost.
func (w *world) to(name topology.PeerID, do func(n *node)) {
	if w.losing > 0 && w.rng.Float64() < w.losing {
		return
	}
	w.after(w.link, func() {
		if n := w.nodes[name]; !n.dead {
			do(n)
		}
	})
}

// act does what a member's machine asks for.
func (w *world) act(n *node, do []Action) {
	for _, a := range do {
		switch a.Kind {
		case Send:
			values := w.lesson.onwards(n, a)
			w.to(a.To, func(m *node) { w.deliver(m, n.name, a, values) })
		case Reply:
			values := w.lesson.backwards(n, a)
			w.to(a.To, func(m *node) { w.answer(m, n.name, a, values) })
		case ComputeForward, ComputeBack:
			w.compute(n, a)
		case Step:
			for _, v := range n.memory {
				if v < n.version {
					w.t.Fatalf("%s steps while a micro-batch has the parameters before the last", n.name)
				}
			}
			w.after(0, func() {
				if n.version++; !n.dead {
					w.lesson.step(w, n)
					w.act(n, n.holder.Stepped(w.now))
				}
			})
		case Release:
			w.release(n, a)
		}
	}
}

// deliver hands a micro-batch to a member of the next stage.
func (w *world) deliver(m *node, from topology.PeerID, a Action, values []float32) {
	key := Key{from, a.Number}
	before := m.holder.Counts().Came
	do := m.holder.Forward(w.now, from, a.Number, a.ID)
	if m.holder.Counts().Came > before {
		m.received[key] = true
		w.lesson.came(m, key, values)
	}
	w.act(m, do)
}

// answer hands an answer to who sent a micro-batch.
func (w *world) answer(m *node, from topology.PeerID, a Action, values []float32) {
	if m.source != nil {
		if before := m.source.Counts().Done; true {
			_, do := m.source.Answer(w.now, from, a.Number, a.Answer, a.Load)
			w.act(m, do)
			w.done += int(m.source.Counts().Done - before)
		}
		w.feed(m)
		return
	}
	at, do := m.holder.Answer(w.now, from, a.Number, a.Answer, a.Load)
	if at != (Key{}) {
		w.lesson.errorsCame(m, at, values)
	}
	w.act(m, do)
}

func (w *world) release(n *node, a Action) {
	if n.source != nil {
		if !n.made[a.ID] {
			w.t.Fatalf("%s releases %v, which is not on its way", n.name, a.ID)
		}
		delete(n.made, a.ID)
		return
	}
	if _, has := n.memory[a.At]; !has && !n.received[a.At] {
		w.t.Fatalf("%s releases %v, which it does not hold", n.name, a.At)
	}
	delete(n.received, a.At)
	delete(n.memory, a.At)
	w.lesson.release(n, a.At)
}

func (w *world) compute(n *node, a Action) {
	took := n.forward
	if _, has := n.memory[a.At]; !has { // its first pass here
		if !n.received[a.At] {
			w.t.Fatalf("%s computes %v, which has not come", n.name, a.At)
		}
		delete(n.received, a.At)
		n.memory[a.At] = n.version
	}
	if held := len(n.memory); held > 2*(len(w.stages)-n.stage)+1 {
		w.t.Fatalf("%s holds %d micro-batches", n.name, held)
	}
	if a.Kind == ComputeBack {
		if took = 2 * n.forward; n.stage == len(w.stages)-1 {
			took += n.forward
		}
	}
	w.after(took, func() {
		if !n.dead {
			useless := w.useless != nil && a.Kind == ComputeBack && n.stage == len(w.stages)-1 && w.useless(a.ID)
			if !useless {
				w.lesson.compute(n, a)
			}
			w.act(n, n.holder.Computed(w.now, a.At, useless))
		}
	})
}

// die takes a member out of the world, with all that it holds; each other learns of it at a moment of its own.
func (w *world) die(n *node) {
	n.dead = true
	for _, name := range w.names() {
		w.after(100*time.Millisecond+time.Duration(w.rng.Int64N(int64(400*time.Millisecond))), func() { w.meet(w.nodes[name]) })
	}
}

// addUp checks that each side can say what became of every micro-batch that came to it.
func (w *world) addUp() {
	for _, name := range w.names() {
		switch n := w.nodes[name]; {
		case n.dead:
		case n.source != nil:
			if c := n.source.Counts(); c.Came != c.Done+c.Lost+uint64(len(n.made)) {
				w.t.Errorf("%s: %+v, and %d on their way", name, c, len(n.made))
			}
		default:
			if c, here := n.holder.Counts(), uint64(len(n.memory)+len(n.received)); c.Came != c.Done+c.Lost+here {
				w.t.Errorf("%s: %+v, and %d here", name, c, here)
			}
		}
	}
}

// counts are those of all sources that live.
func (w *world) counts() (sum Counts) {
	for _, n := range w.nodes {
		if n.source != nil && !n.dead {
			c := n.source.Counts()
			sum.Came, sum.Done, sum.Lost, sum.Again, sum.Late = sum.Came+c.Came, sum.Done+c.Done, sum.Lost+c.Lost, sum.Again+c.Again, sum.Late+c.Late
		}
	}
	return sum
}
