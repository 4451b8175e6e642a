package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// ringer is a ring AllReduce without any care for failures: what it takes to see that
// the world carries transfers, words and updates out.
type ringer struct {
	averaging.Machine // none
	self, n           int
	round, next       uint64 // this one, and that of which the next peer has its gradient
	here, begun       bool   // the gradient is there; sending has begun
	took, gave        int    // transfers of this round
	exchange          averaging.ExchangeID
	passing           []collective.Transfer // to be sent, in this order
	running           bool
	halted            bool
}

func (r *ringer) Traits() collective.Traits {
	return collective.Traits{Gradients: true, Messages: true}
}

func (r *ringer) peer(offset int) topology.PeerID { return nameOf((r.self + r.n + offset) % r.n) }

func (r *ringer) Decide(_ time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	switch e.Kind {
	case collective.GradientDone:
		r.here = true
		word := collective.Message{Kind: 1, Round: r.round}
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: collective.Load}}, collective.Action{Action: averaging.Action{Kind: collective.Tell, Peer: r.peer(-1)}, Message: word})
	case collective.Received:
		r.next = e.Message.Round + 1
	case collective.Offered:
		answer := collective.Action{Action: averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true}}
		if !r.here || e.Transfer.Round != r.round {
			answer.Kind, answer.Reason = averaging.Refuse, averaging.Round
		}
		return append(actions, answer)
	case averaging.Finished:
		if e.Inbound {
			r.took++
			if r.took < 2*(r.n-1) {
				r.pass((r.self-r.took)%r.n, r.took < r.n-1)
			}
		} else {
			r.gave++
			r.running = false
		}
	case collective.Updated:
		r.round++
		r.here, r.begun, r.took, r.gave = false, false, 0, 0
		return append(actions, collective.Action{Action: averaging.Action{Kind: averaging.Proceed}})
	case averaging.Failed, averaging.Refused, averaging.PeerLost:
		r.halted = true
		return append(actions, collective.Action{Action: averaging.Action{Kind: averaging.Halt, Reason: averaging.NoCoordinator}})
	}
	return r.goOn(actions)
}

// pass lets a part be sent after those before it.
func (r *ringer) pass(part int, add bool) {
	r.passing = append(r.passing, collective.Transfer{
		From: collective.Sum, Into: collective.Sum, Add: add, Part: (part + r.n) % r.n, Parts: r.n, Round: r.round,
	})
}

// goOn sends what there is to send, or updates when all has been sent and taken.
func (r *ringer) goOn(actions []collective.Action) []collective.Action {
	if !r.here || r.next <= r.round || r.running {
		return actions
	}
	if !r.begun {
		r.begun = true
		r.pass(r.self, true)
	}
	if len(r.passing) > 0 {
		r.exchange++
		r.running = true
		send := collective.Action{Action: averaging.Action{Kind: collective.Send, Peer: r.peer(1), Exchange: r.exchange}, Transfer: r.passing[0]}
		r.passing = r.passing[1:]
		return append(actions, send)
	}
	if r.took == 2*(r.n-1) && r.gave == r.took {
		return append(actions, collective.Action{Action: averaging.Action{Kind: collective.Update}})
	}
	return actions
}

// slope has a different gradient at each peer and step, of whole numbers.
type slope struct {
	steady
	velocity []tensor.Vector
	steps    func(peer int) time.Duration
}

func newSlope(peers, values int) *slope {
	s := &slope{steps: func(int) time.Duration { return 10 * time.Millisecond }}
	for range peers {
		s.velocity = append(s.velocity, make(tensor.Vector, values))
	}
	return s
}

func (s *slope) Duration(peer, _, _ int) time.Duration { return s.steps(peer) }

func (s *slope) Gradient(_, peer, step int, _, grad []float32) (loss float64, samples int, err error) {
	for i := range grad {
		grad[i] = float32((peer+1)*(step+1)%7 + i%5)
	}
	return 0, 4 * (peer + 1), nil
}

// Delta implements descent.
func (s *slope) Delta(peer int, x, grad []float32) {
	tensor.MomentumRates{Rate: 0.001, Momentum: 0.9}.Delta(grad, s.velocity[peer], grad, x)
}

// ringWorld is one in which every peer is a ringer.
func ringWorld(t testing.TB, peers, values int, codecName string, trainer *slope, link sim.Link) *flock {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := coding.ByName(codecName)
	if err != nil {
		t.Fatal(err)
	}
	f := &flock{t: t, scratch: make(tensor.Vector, values)}
	config := sim.Config{Task: trainer, Link: link, Terms: replica.Terms{Plan: coding.Uniform(codec)}, Rand: rand.New(rand.NewPCG(1, 1))}
	config.Hooks.Broke = func(peer, partner int, err error) { t.Errorf("peer %d with %d: %v", peer, partner, err) }
	for i := range peers {
		f.add(tensor.NewParams(layout), plan{}, i)
		config.Members = append(config.Members, sim.Member{
			ID: nameOf(i), Machine: &ringer{self: i, n: peers}, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: descending{trainer, i},
		})
	}
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	return f
}

// A ring of peers has the same bytes after each round, those of the weighted mean, at
// about 2(n−1)/n times the model's, with any codec that transfers take.
func TestRingOfGradients(t *testing.T) {
	const values = 40_000
	for _, name := range []string{"raw", "bf16", "int8"} {
		for _, n := range []int{2, 5} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				trainer := newSlope(n, values)
				f := ringWorld(t, n, values, name, trainer, sim.Link{Delay: time.Millisecond, Bandwidth: 1e8})
				f.world.Run(200 * time.Millisecond)
				f.world.Finish()
				f.world.Run(time.Hour)
				rounds := f.world.Counts(0).Steps
				if rounds < 5 || f.world.Pending() > 0 {
					t.Fatalf("%d rounds, and %d things are to come", rounds, f.world.Pending())
				}
				want := oracleOfSlope(trainer, n, values, rounds)
				f.replicas[0].Snapshot(f.scratch)
				limit := map[string]float64{"raw": 1e-6, "bf16": 1e-2, "int8": 2e-2}[name]
				if d := tensor.SquaredDistance(want, f.scratch); math.Sqrt(d) > limit*tensor.Norm2(want) {
					t.Errorf("the model is %g from the mean's, whose norm is %g", math.Sqrt(d), tensor.Norm2(want))
				}
				other := make(tensor.Vector, values)
				for i, r := range f.replicas {
					r.Snapshot(other)
					if tensor.SquaredDistance(other, f.scratch) != 0 {
						t.Errorf("peer %d has another model than peer 0", i)
					}
					c := f.world.Counts(i)
					if c.Steps != rounds || c.Updates != rounds || c.Initiated != 2*(n-1)*rounds || c.Served != c.Initiated {
						t.Errorf("peer %d counts %+v in %d rounds", i, c, rounds)
					}
					codec, _ := coding.ByName(name)
					ideal := float64(2*(n-1)*rounds*codec.Code.Size(values)) / float64(n)
					if over := float64(c.Sent)/ideal - 1; over < -0.001 || over > 0.04 {
						t.Errorf("peer %d has sent %d bytes, %.1f %% more than need be", i, c.Sent, 100*over)
					}
				}
			})
		}
	}
}

// oracleOfSlope is plain gradient descent on the weighted mean.
func oracleOfSlope(s *slope, n, values, rounds int) tensor.Vector {
	o := newSlope(1, values)
	x, mean, grad := make(tensor.Vector, values), make(tensor.Vector, values), make(tensor.Vector, values)
	for round := range rounds {
		clear(mean)
		total := 0
		for i := range n {
			_, samples, _ := s.Gradient(0, i, round, x, grad)
			tensor.Axpy(mean, float32(samples), grad)
			total += samples
		}
		tensor.Scale(mean, 1/float32(total))
		o.Delta(0, x, mean)
		tensor.Add(x, mean)
	}
	return x
}

// The course of a world does not depend on how many goroutines compute its gradients.
func TestForkedGradients(t *testing.T) {
	course := func(workers int) [32]byte {
		f := ringWorld(t, 5, 3000, "bf16", newSlope(5, 3000), sim.Link{Delay: time.Millisecond, Bandwidth: 1e6, Loss: 0.01})
		f.world.Fork(workers)
		f.world.Run(time.Second)
		return f.world.Digest()
	}
	if one := course(1); one != course(4) || one == [32]byte{} {
		t.Error("four workers take another course than one")
	}
}
