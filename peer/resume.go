package peer

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// flagResumed: the steps of a member's record include those of its earlier lives, up to
// the checkpoint that it came back with.
const flagResumed = 1 << 3

// MaxPast bounds the lives that a Checkpoint tells apart, at most two of a member; what
// further ones have done is in its Inherited.
const MaxPast = 2 * maxDeparted

// Past is what one life of a member has done, or all lives up to one.
type Past struct {
	Peer        seam.PeerID
	Incarnation uint64
	Steps       uint64
	// Resumed tells that Steps include what earlier lives of the member had done.
	Resumed bool
}

// Saved is what a peer needs, beside its configuration, to go on in another life
// where it is now: Params as Config.Params, Optimizer for that of Config.Optimizer
// (see StatefulOptimizer), Checkpoint as Config.Network.State.Checkpoint.
type Saved struct {
	Params     tensor.Vector
	Optimizer  OptimizerState
	Checkpoint Checkpoint
}

// Save copies all that a checkpoint keeps into s, whose vectors it uses again if they
// have the right length. The parameters and the optimizer's state are those of one moment
// between two steps. A step that comes just then waits while the optimizer's vectors are
// copied, for no longer than the optimizer takes to make it.
func (p *Peer) Save(s *Saved) {
	// What was done is read first: the parameters may be a step ahead of it, never
	// behind.
	s.Checkpoint = p.checkpoint()
	if len(s.Params) != p.replica.Len() {
		s.Params = make(tensor.Vector, p.replica.Len())
	}
	if stateful, ok := p.config.Optimizer.(StatefulOptimizer); ok {
		p.optimizing.Lock()
		lent := stateful.State()
		p.optimizing.Unlock()
		s.Optimizer.makeRoom(lent) // so that no step waits for new memory
	}
	p.replica.ConsistentAt(s.Params, func(begin func()) {
		p.optimizing.Lock()
		defer p.optimizing.Unlock()
		begin()
		p.saveOptimizer(&s.Optimizer)
	})
}

// checkpoint is what lies behind the parameters now.
func (p *Peer) checkpoint() Checkpoint {
	own := p.counters.steps.Load()
	c := Checkpoint{
		Steps: p.counters.head.Load() + own, FlockSteps: p.flock.total(own),
		Own: own, Incarnation: p.incarnation.Load(),
	}
	c.Past, c.Inherited, c.Peers = p.flock.past()
	c.Orders = p.control.all()
	return c
}

// tellsWho tells whether a checkpoint says who did what lies behind the model: who has
// made no step of its own knows that of the others.
func (c Checkpoint) tellsWho() bool { return c.Own > 0 || c.Incarnation > 0 }

// resume takes up what an earlier life has left, before anybody hears of this one.
func (p *Peer) resume() {
	c := p.config.Network.State.Checkpoint
	if !c.tellsWho() {
		return
	}
	p.counters.steps.Store(c.Own)
	p.counters.resumed = c.Own
	p.counters.head.Store(c.Steps - min(c.Own, c.Steps))
	p.incarnation.Store(c.Incarnation + 1)
	p.flock.resume(p.Self(), c)
}

// recall obeys what the operator had said when the checkpoint was saved. What is not
// signed by the operator of this life is left out, as if a stranger had said it.
func (c *control) recall(orders [][]byte) {
	for _, message := range orders[:min(len(orders), maxStanding)] {
		c.judge(message)
	}
}

// resumedFlag is flagResumed for a peer whose steps are not of this life alone.
func (p *Peer) resumedFlag() uint8 {
	if p.counters.resumed > 0 {
		return flagResumed
	}
	return 0
}

// past is what the others have done, each member by itself, what is known only as a sum,
// and how many peers there were at once.
func (f *flock) past() (lives []Past, inherited, peers uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := append(slices.Collect(maps.Keys(f.accounts)), f.departed.Keys()...)
	slices.Sort(ids)
	inherited = f.inherited
	for _, id := range ids {
		a := f.accountOf(id)
		if more := a.lives(id); len(lives)+len(more) <= MaxPast {
			lives = append(lives, more...)
		} else {
			inherited = plus(inherited, a.done())
		}
	}
	return lives, inherited, uint64(f.participants.Load())
}

// resume takes over what a peer knew of the others when its checkpoint was saved: none
// of them is here until it is heard of again.
func (f *flock) resume(self seam.PeerID, c Checkpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inherited = c.Inherited
	lives := slices.Clone(c.Past)
	slices.SortFunc(lives, func(a, b Past) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	members := map[seam.PeerID]bool{self: true}
	for _, l := range lives {
		if l.Peer == self {
			continue
		}
		members[l.Peer] = true
		r := seam.Record{Incarnation: l.Incarnation, Steps: l.Steps}
		if l.Resumed {
			r.Flags = flagResumed
		}
		f.keep(l.Peer, f.accountOf(l.Peer).with(r, math.MaxUint64))
	}
	if c.Peers == 0 { // of an earlier release
		c.Peers = uint64(len(members))
	}
	f.participants.Store(int64(min(c.Peers, math.MaxInt32)))
	f.tally()
}

// atLeast raises the estimate of a peer that knows the members of its flock from a
// checkpoint to what others say. It does not go to their account, as what inherit finds
// does: they may count what members did after their checkpoints, and will do again.
func (f *flock) atLeast(total, own uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.others.Store(max(total-min(total, own), f.others.Load()))
}
