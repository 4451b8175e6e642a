package baseline_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// width is how many slices a model of this world has, of one number each.
const width = 7

type vector [width]float64

// world runs rivals against each other in virtual time: every word, offer and slice is
// delayed at random, words and transfers are lost, peers come, die and are done at
// different moments. Models are a few small integers, so that sums are exact. It checks
// what every machine owes its runtime; a test adds what its algorithm promises.
type world struct {
	t        failer
	rng      *rand.Rand
	queue    sim.Queue
	peers    map[topology.PeerID]*node
	names    []topology.PeerID
	make     func(topology.PeerID) collective.Machine
	loss     float64                                    // of words
	drops    func(from *node, a collective.Action) bool // what is lost for certain
	breaks   float64                                    // of transfers
	maxDelay time.Duration
	copying  time.Duration // that a slice of parameters takes beside that
	patience time.Duration // within which a trainer is answered
	staged   bool          // trainers tell of the last values of a gradient before the others are there
	onStep   func(*node)   // a trainer was let go on
	onAction func(*node, collective.Action)
	trace    func(format string, args ...any)
	show     func(*node, string)
	describe func(collective.Message) string
	overlay  *topology.Overlay // the newest
	progress int
	deaths   int
	views    int
}

// node is a peer of the world.
type node struct {
	world          *world
	id             topology.PeerID
	machine        collective.Machine
	alive, over    bool
	frozen         bool
	waiting        bool
	asked          time.Duration
	x, gradient    vector
	velocity       vector // of an optimizer with momentum
	samples        float64
	sum, weight    vector
	timers         [collective.TimerKinds]collective.Action
	outbound       map[averaging.ExchangeID]*transfer
	inbound        map[string]*transfer
	lastID         averaging.ExchangeID
	steps, updates int
	settled        bool
	halted         averaging.Reason
	ready          int         // of the gradient, the values from here on have been told of; width if none
	told           int         // as ready, of this or of one that was lost
	updating       [width]bool // by part
	period         func() time.Duration
	met            int // exchanges completed
	started        bool
	batch          int                // samples that the machine wants, 0 if any
	given          int                // samples of a gradient, random if 0
	viewed         int                // the newest view
	held           []collective.Event // while it stood still
	stopped        bool               // so did its trainer
}

// transfer is one under way.
type transfer struct {
	from, to *node
	id       averaging.ExchangeID
	t        collective.Transfer
	exchange bool
	accepted bool
	dead     bool // at the sender's side
	stopped  bool // at the receiver's side
}

func (x *transfer) key() string { return fmt.Sprint(x.from.id, "/", x.id) }

// failer is a test, or one try of a property.
type failer interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

func newWorld(t failer, seed uint64, make func(topology.PeerID) collective.Machine) *world {
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), peers: map[topology.PeerID]*node{}, make: make,
		maxDelay: 5 * time.Millisecond, patience: time.Minute, trace: func(string, ...any) {},
	}
}

func (w *world) delay() time.Duration {
	return time.Millisecond + time.Duration(w.rng.Int64N(int64(w.maxDelay)))
}

// join brings a peer up, which copies the model of one that is there.
func (w *world) join(id topology.PeerID, period func() time.Duration) *node {
	n := &node{
		world: w, id: id, machine: w.make(id), alive: true, period: period,
		outbound: map[averaging.ExchangeID]*transfer{}, inbound: map[string]*transfer{},
	}
	for _, other := range w.names {
		if p := w.peers[other]; p.alive {
			n.x = p.x
			break
		}
	}
	if size := n.machine.Traits().Size; size != nil {
		size.SetLength(width, true)
	}
	w.peers[id] = n
	w.names = append(w.names, id)
	return n
}

// view tells all who is there, each after a delay of its own.
func (w *world) view(most time.Duration) {
	var members []topology.Member
	for _, id := range w.names {
		if w.peers[id].alive {
			members = append(members, topology.Member{ID: id, ServesOnly: w.peers[id].machine.Traits().ServesOnly})
		}
	}
	view, err := topology.Ring.View(members)
	if err != nil {
		w.t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		w.t.Fatal(err)
	}
	w.overlay = overlay
	w.views++
	number := w.views
	for _, m := range members {
		late := time.Duration(0)
		if most > 0 {
			late = time.Duration(w.rng.Int64N(int64(most)))
		}
		w.queue.After(late, func() {
			if w.peers[m.ID].viewed > number {
				return // a newer one has come first
			}
			w.peers[m.ID].viewed = number
			w.peers[m.ID].tell(collective.Event{Event: averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay}})
		})
	}
}

// start lets the trainer of a peer begin.
func (n *node) start() {
	n.started = true
	n.train()
}

func (n *node) train() {
	took := n.period()
	if n.world.staged {
		n.world.queue.After(took/3, n.stage)
	}
	n.world.queue.After(took, func() {
		if n.stopped = n.frozen; !n.alive {
			return
		}
		n.ready = 0
		if n.waiting, n.asked = true, n.world.queue.Now(); !n.world.staged {
			n.compute()
		}
		asked := n.asked
		n.world.queue.After(n.world.patience, func() {
			if n.alive && n.waiting && n.asked == asked && n.halted == 0 {
				n.world.t.Fatalf("at %s, %s waits since %s", n.world.queue.Now(), n.id, asked)
			}
		})
		if n.machine.Traits().Gradients {
			n.tell(collective.Event{
				Event:   averaging.Event{Kind: collective.GradientDone, Progress: float64(n.world.progress) / 1e3},
				Samples: int(n.samples),
				Initial: n.updates == 0 && n.x == vector{},
			})
		} else {
			for i := range n.x {
				if !n.over {
					n.x[i] -= n.gradient[i]
				}
			}
			n.tell(collective.Event{Event: averaging.Event{Kind: averaging.StepDone}})
		}
	})
}

// compute makes a gradient.
func (n *node) compute() {
	n.samples = float64(1 + n.world.rng.IntN(4))
	if n.given > 0 {
		n.samples = float64(n.given)
	}
	if n.batch > 0 {
		n.samples = float64(n.batch)
	}
	for i := range n.gradient {
		n.gradient[i] = float64(n.world.rng.IntN(9) - 4)
	}
}

// stage tells of the last values of the next gradient, and now and then that it is lost, and of another.
func (n *node) stage() {
	if !n.alive {
		return
	}
	n.compute()
	for from := n.world.rng.IntN(width + 1); ; from /= 2 {
		n.ready, n.told = from, from
		n.tell(collective.Event{
			Event:   averaging.Event{Kind: collective.GradientReady, Progress: float64(n.world.progress) / 1e3},
			Samples: int(n.samples), From: from, Initial: n.updates == 0 && n.x == vector{},
		})
		if n.world.rng.IntN(20) == 0 {
			n.ready = width
			n.tell(collective.Event{Event: averaging.Event{Kind: collective.GradientLost}})
			n.compute()
		}
		if from < 2 {
			return
		}
	}
}

// die ends a peer. Its transfers break off; the others notice after a while, or never.
func (w *world) die(id topology.PeerID, notice time.Duration) {
	n := w.peers[id]
	n.alive = false
	w.deaths++
	w.trace("%s dies", id)
	for _, other := range w.names {
		p := w.peers[other]
		for _, x := range p.outbound {
			if x.to == n {
				w.queue.After(w.delay(), func() { x.end(false) })
			}
		}
		for _, x := range p.inbound {
			if x.from == n {
				w.queue.After(w.delay(), func() { x.end(false) })
			}
		}
		if notice > 0 && p.alive {
			w.queue.After(time.Duration(w.rng.Int64N(int64(notice))), func() {
				p.tell(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: id}})
			})
		}
	}
	if notice > 0 {
		w.queue.After(notice, func() { w.view(notice) })
	}
}

// freeze stops a peer in the middle of everything: nobody hears of it, nothing breaks off.
func (w *world) freeze(id topology.PeerID) {
	w.deaths++
	w.trace("%s freezes", id)
	w.peers[id].alive, w.peers[id].frozen = false, true
}

// finish tells a peer that the run is over.
func (n *node) finish() {
	n.over = true
	n.tell(collective.Event{Event: averaging.Event{Kind: averaging.RunOver}})
}

// settle lets the world come to its end and checks that all machines have.
func (w *world) settle(spread time.Duration) {
	for _, id := range w.names {
		w.queue.After(time.Duration(w.rng.Int64N(int64(spread))), func() {
			if w.peers[id].alive {
				w.peers[id].finish()
			}
		})
	}
	w.queue.Run(w.queue.Now() + spread + 2*w.patience)
	for _, id := range w.names {
		n := w.peers[id]
		if n.alive && (n.waiting && n.halted == 0 || !n.settled) {
			w.t.Errorf("%s: waiting %t, settled %t after the run", id, n.waiting, n.settled)
		}
	}
	if n := w.queue.Len(); n > 0 {
		w.t.Errorf("%d things are due long after the run", n)
	}
}

// coordinator is who coordinates, as most of those say who live.
func (w *world) coordinator() topology.PeerID { return w.coordinatorOf(0) }

// coordinatorOf is who serves a part.
func (w *world) coordinatorOf(part int) topology.PeerID {
	votes, first := map[topology.PeerID]int{}, topology.PeerID("")
	for _, id := range w.names {
		var says topology.PeerID
		switch m := w.peers[id].machine.(type) {
		case interface{ Coordinator() topology.PeerID }:
			says = m.Coordinator()
		case *baseline.ParamServers:
			says = m.Coordinators()[part]
		default:
			continue
		}
		if !w.peers[id].alive {
			continue
		}
		if votes[says]++; votes[says] > votes[first] {
			first = says
		}
	}
	return first
}

// halted tells whether somebody's training is.
func (w *world) halted() bool {
	for _, p := range w.peers {
		if p.alive && p.halted != 0 {
			return true
		}
	}
	return false
}
