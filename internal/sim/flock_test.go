package sim_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// flock is a world under test, with what is needed to look into it.
type flock struct {
	t        testing.TB
	world    *sim.World
	replicas []*replica.Replica
	ledgers  []*replica.Ledger
	scratch  tensor.Vector
}

// plan says how a flock under test is made. The zero value of a field but peers
// and values is useful.
type plan struct {
	seed      uint64
	peers     int
	values    int // parameters of each
	sliceLen  int
	codec     string // raw
	every     int    // 1
	burst     int
	unclipped bool
	hidden    int           // the first so many peers are unreachable
	halves    bool          // exchanges have half the weight, whatever runs besides
	merge     bool          // at the end
	wait      time.Duration // of the merge, 1 s
	weighed   bool          // in the merge, each peer by its number plus 1
	deadline  func(peer int) time.Duration
	inbound   int                                             // exchanges that a peer serves at once, 1
	retry     time.Duration                                   // after a failure, 20 ms
	machine   func(peer int) averaging.Machine                // in the place of AD-PSGD, unless it gives nil
	stranger  func(peer int) bool                             // that is no member
	place     func(peer int) topology.Place                   // as it tells
	initial   func(rng *rand.Rand, peer int, x tensor.Vector) // uniform in [-1, 1)
	optimizer func(peer int) optim.Optimizer                  // in the place of asIs
	config    sim.Config                                      // all but the members, the codec and the source
}

func newFlock(t testing.TB, p plan) *flock {
	t.Helper()
	f := &flock{t: t, scratch: make(tensor.Vector, p.values)}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{p.values}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(p.seed, 1))
	for i := range p.peers {
		params := tensor.NewParams(layout)
		if p.initial == nil {
			for j := range params.Vector() {
				params.Vector()[j] = rng.Float32()*2 - 1
			}
		} else {
			p.initial(rng, i, params.Vector())
		}
		f.add(params, p, i)
	}
	config := p.config
	for i := range p.peers {
		config.Members = append(config.Members, f.member(p, i))
	}
	codec, err := coding.ByName(cmpOr(p.codec, "raw"))
	if err != nil {
		t.Fatal(err)
	}
	if config.Terms.Plan == nil {
		config.Terms.Plan = coding.Uniform(codec)
	}
	config.Rand = rand.New(rand.NewPCG(p.seed, 2))
	config.Hooks.Failed = func(peer int, err error) { t.Errorf("peer %d: %v", peer, err) }
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *flock) add(params *tensor.Params, p plan, i int) {
	r, err := replica.New(params, replica.Options{SliceLen: p.sliceLen, Unclipped: p.unclipped})
	if err != nil {
		f.t.Fatal(err)
	}
	f.replicas = append(f.replicas, r)
	f.ledgers = append(f.ledgers, replica.NewLedger(r))
}

// nameOf is the identity of a peer in these tests.
func nameOf(peer int) topology.PeerID { return topology.PeerID(fmt.Sprintf("peer%02d", peer)) }

// roles are those of so many peers.
func roles(t testing.TB, peers int) []topology.Role {
	t.Helper()
	members := make([]topology.Member, peers)
	for i := range members {
		members[i].ID = nameOf(i)
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	roles := make([]topology.Role, peers)
	for i := range roles {
		m, _ := view.Lookup(nameOf(i))
		roles[i] = m.Role
	}
	return roles
}

func (f *flock) member(p plan, i int) sim.Member {
	id := nameOf(i)
	config := averaging.Config{
		Self: id, Pace: averaging.Pace{Every: max(p.every, 1), Burst: p.burst}, RetryAfter: cmp.Or(p.retry, 20*time.Millisecond), MaxInbound: p.inbound,
		Rand: rand.New(rand.NewPCG(p.seed, uint64(100+i))),
	}
	if p.deadline != nil {
		config.Deadline = p.deadline(i)
	}
	machine, err := averaging.NewADPSGD(config)
	if err != nil {
		f.t.Fatal(err)
	}
	member := sim.Member{ID: id, Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: asIs{}, Unreachable: i < p.hidden}
	if p.place != nil {
		member.Place = p.place(i)
	}
	if p.stranger != nil {
		member.Stranger = p.stranger(i)
	}
	if p.machine != nil {
		if other := p.machine(i); other != nil {
			member.Machine = other
		}
	}
	if p.optimizer != nil {
		member.Optimizer = p.optimizer(i)
	}
	switch {
	case p.merge:
		member.Machine = merging(f.t, machine, i, p.weight(i), cmp.Or(p.wait, time.Second))
	case p.halves:
		member.Machine = halving{machine}
	}
	return member
}

// cmpOr is a if it is not empty, else b.
func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// sum is the sum of all peers' parameters in float64.
func (f *flock) sum() []float64 {
	sum := make([]float64, len(f.scratch))
	for _, r := range f.replicas {
		r.Snapshot(f.scratch)
		for j, x := range f.scratch {
			sum[j] += float64(x)
		}
	}
	return sum
}

// drift is ‖b − a‖₂/‖a‖₂.
func drift(a, b []float64) float64 {
	var moved, norm float64
	for i := range a {
		moved += (b[i] - a[i]) * (b[i] - a[i])
		norm += a[i] * a[i]
	}
	return math.Sqrt(moved / norm)
}

// spread is the root mean square distance of the peers' parameters from their
// mean, per parameter.
func (f *flock) spread() float64 {
	mean := f.sum()
	for j := range mean {
		mean[j] /= float64(len(f.replicas))
	}
	squared := 0.0
	for _, r := range f.replicas {
		r.Snapshot(f.scratch)
		for j, x := range f.scratch {
			squared += (float64(x) - mean[j]) * (float64(x) - mean[j])
		}
	}
	return math.Sqrt(squared / float64(len(f.replicas)*len(f.scratch)))
}

// total adds the counts of all peers up.
func (f *flock) total() (all sim.Counts) {
	for i := range f.replicas {
		c := f.world.Counts(i)
		all.Steps += c.Steps
		all.Initiated += c.Initiated
		all.Served += c.Served
		all.Failed += c.Failed
		all.Refused += c.Refused
		all.Declined += c.Declined
		all.InDoubt += c.InDoubt
		all.Applied += c.Applied
		all.Dropped += c.Dropped
		all.Retransmitted += c.Retransmitted
		all.Sent += c.Sent
		all.Moved += c.Moved
	}
	return all
}

// idle trains nothing, at a pace that differs from peer to peer.
type idle struct{}

func (idle) Duration(peer, step, _ int) time.Duration {
	return time.Duration(8+peer%5) * time.Millisecond
}

func (idle) Step(_, _ int, _, delta []float32) { clear(delta) }

func TestFlockOfReplicasAgrees(t *testing.T) {
	for _, n := range []int{2, 5, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := newFlock(t, plan{
				seed: 3, peers: n, values: 50, sliceLen: 16,
				config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}},
			})
			before, apart := f.sum(), f.spread()
			f.world.Run(4 * time.Second)
			all := f.total()
			if d := drift(before, f.sum()); d > 1e-6 {
				t.Errorf("the sum moved by %g of itself", d)
			}
			if left := f.spread(); left > 1e-3*apart {
				t.Errorf("the peers are %g apart after %+v, and were %g", left, all, apart)
			}
			if all.Initiated == 0 || all.Failed > 0 {
				t.Errorf("counted %+v", all)
			}
			t.Logf("spread %g to %g, %+v", apart, f.spread(), all)
		})
	}
}
