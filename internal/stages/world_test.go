package stages

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// world is a flock of stages in virtual time: members compute and links carry, and nothing else takes time.
type world struct {
	t      testing.TB
	now    time.Duration
	agenda agenda
	serial int
	link   time.Duration
	nodes  map[topology.PeerID]*node
	stages [][]topology.PeerID
	done   int
	lesson *lesson // nil where values do not matter
}

// node is a member: a source, a holder, or both.
type node struct {
	name    topology.PeerID
	stage   int
	forward time.Duration
	source  *Source
	holder  *Holder
	dead    bool
	// what its memory holds, by micro-batch; versions of the forward passes are checked
	memory   map[ID]uint64
	versions map[uint64]int
	version  uint64
	received map[ID]bool // and not computed yet
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
	w := &world{t: t, link: time.Millisecond, nodes: map[topology.PeerID]*node{}, stages: make([][]topology.PeerID, stages)}
	for s := range stages {
		for i := range members {
			w.add(s, i, forward(s, i))
		}
	}
	for i := range sources {
		name := topology.PeerID(fmt.Sprint("source", i))
		w.nodes[name] = &node{name: name, stage: -1, source: NewSource(name, window), memory: map[ID]uint64{}}
		w.tick(w.nodes[name])
	}
	return w
}

func (w *world) add(stage, i int, forward time.Duration) *node {
	h, err := NewHolder(Config{Stage: stage, Stages: len(w.stages)})
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{name: topology.PeerID(fmt.Sprintf("s%d.%d", stage, i)), stage: stage, forward: forward, holder: h,
		memory: map[ID]uint64{}, versions: map[uint64]int{}, received: map[ID]bool{}}
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

// meet tells all members who is there.
func (w *world) meet() {
	for _, name := range w.names() {
		n := w.nodes[name]
		if n.dead {
			continue
		}
		if n.source != nil {
			w.act(n, n.source.Members(w.now, w.alive(0)))
			continue
		}
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
	w.meet()
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

// tick looks for what is overdue, as often as the member says.
func (w *world) tick(n *node) {
	w.after(lookAgain, func() {
		if n.dead {
			return
		}
		if n.source != nil {
			w.act(n, n.source.Tick(w.now))
		} else {
			w.act(n, n.holder.Tick(w.now))
		}
		w.tick(n)
	})
}

func (w *world) feed(n *node) {
	for n.source != nil && !n.dead && n.source.Room() > 0 {
		id, do := n.source.Make(w.now)
		n.memory[id] = 0
		w.act(n, do)
	}
}

// to delivers a message to a member that lives.
func (w *world) to(name topology.PeerID, do func(n *node)) {
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
		case SendForward:
			if _, has := n.memory[a.ID]; !has {
				w.t.Fatalf("%s sends %v on, which it does not hold", n.name, a.ID)
			}
			values := w.lesson.onwards(n, a.ID)
			w.to(a.To, func(m *node) {
				w.lesson.came(m, a.ID, values)
				if _, has := m.memory[a.ID]; !has {
					m.received[a.ID] = true // before it may be refused
				}
				w.act(m, m.holder.Forward(w.now, a.ID, n.name))
			})
		case SendBack, Refuse:
			if a.Kind == Refuse {
				delete(n.received, a.ID)
			}
			values := w.lesson.backwards(n, a)
			w.to(a.To, func(m *node) {
				if a.Kind == SendBack {
					w.lesson.errorsCame(m, a.ID, values)
				}
				if m.source != nil {
					w.act(m, m.source.Back(w.now, a.ID, n.name, a.Load, a.Kind == Refuse))
					w.feed(m)
				} else {
					w.act(m, m.holder.Back(w.now, a.ID, n.name, a.Load, a.Kind == Refuse))
				}
			})
		case ComputeForward, ComputeBack:
			w.compute(n, a)
		case Step:
			for v := range n.versions {
				if n.versions[v] > 0 && v < n.version {
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
			if v, has := n.memory[a.ID]; n.received[a.ID] {
				delete(n.received, a.ID)
			} else if !has {
				w.t.Fatalf("%s releases %v, which it does not hold", n.name, a.ID)
			} else if n.versions != nil {
				n.versions[v]--
			}
			w.lesson.release(n, a.ID)
			delete(n.memory, a.ID)
			if n.source != nil {
				w.done++
			}
		}
	}
}

func (w *world) compute(n *node, a Action) {
	took := n.forward
	if _, has := n.memory[a.ID]; !has { // its first pass here
		if !n.received[a.ID] {
			w.t.Fatalf("%s computes %v, which has not come", n.name, a.ID)
		}
		delete(n.received, a.ID)
		n.memory[a.ID] = n.version
		n.versions[n.version]++
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
			w.lesson.compute(n, a)
			w.act(n, n.holder.Computed(w.now, a.ID, false))
		}
	})
}
