package peertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// running is a simulation under way.
type running struct {
	Simulation
	world  *sim.World
	layout *tensor.Layout
	here   []bool
	parted
	trainer  *trainer
	partners []map[int]struct{}
	scratch  tensor.Vector // of all replicas: one exchange computes at a time
	lying    *rand.Rand
	record   *recorder
	aimed    aimed

	curve  []Point
	events int
	ended  time.Duration // when the work was done; negative before
	gone   int
	broke  error // the last error between peers, or why one stopped
	fault  error // that ends the run
}

// The purposes of random sources, beside the seed.
const (
	chanceOfLoss = iota + 1
	chanceOfLies
	chanceOfTime
	chanceOfMachine = 1 << 20 // plus the number of the peer
)

func newRunning(s Simulation) (*running, error) {
	r := &running{
		Simulation: s, layout: s.Task.Params().Layout(), here: make([]bool, s.Peers), parted: newParted(s),
		partners: make([]map[int]struct{}, s.Peers), lying: rand.New(rand.NewPCG(s.Seed, chanceOfLies)),
		ended: -1,
	}
	r.scratch = make(tensor.Vector, min(r.layout.Len(), replica.MaxSliceLen))
	changes := inOrder(append(s.World.Links.beginning(s.Peers), s.World.Changes...))
	if s.World.Replay != nil {
		changes = s.World.Replay.changes
	}
	r.aimed.running = r
	r.record = newRecorder(s.Watch.Record, s)
	r.trainer = newTrainer(r)
	config, err := r.config(latecomers(changes))
	if err != nil {
		return nil, err
	}
	if r.world, err = sim.New(config); err != nil {
		return nil, err
	}
	r.world.Fork(runtime.GOMAXPROCS(0))
	for _, c := range changes {
		r.record.change(c)
		if c.At == 0 && c.Kind != Crash && c.Kind != Leave && c.Kind != Arrive {
			r.apply(c) // links are there before anything moves
			continue
		}
		r.world.After(c.At, func() { r.apply(c) })
	}
	return r, nil
}

// config is the configuration of the world.
func (r *running) config(late map[int]bool) (sim.Config, error) {
	c := sim.Config{
		Topology: r.Exchange.Topology, Task: r.trainer, Pace: r.Exchange.Pace, Stall: r.Stall,
		Sites: sim.Sites{Of: r.World.Links.Sites, Across: sim.Link(r.World.Links.Across)},
		Hooks: sim.Hooks{
			Opened: r.opened,
			Broke:  func(peer, _ int, err error) { r.broke = fmt.Errorf("peer %d: %w", peer, err) },
			Failed: func(peer int, err error) { r.fail(fmt.Errorf("peer %d: %w", peer, err)) },
		},
		Rand: rand.New(rand.NewPCG(r.Seed, chanceOfLoss)),
	}
	if r.World.Replay != nil {
		c.Ends = r.World.Replay.ends
	}
	if r.record != nil {
		c.Hooks.Lost = func(a, b, segments int) {
			r.record.write(Line{At: r.world.Now(), Did: didLose, Peer: a, Other: &b, Segments: segments})
		}
		c.Hooks.Proposed = func(peer int, to topology.PeerID) {
			r.record.write(Line{At: r.world.Now(), Did: didPropose, Peer: peer, Partner: to})
		}
	}
	for i := range r.Peers {
		m := sim.Member{ID: SimulatedID(i), Later: late[i]}
		if r.stages[i] = i % r.cut(); !m.Later {
			var err error
			if m, err = r.member(i); err != nil {
				return c, err
			}
		}
		c.Members = append(c.Members, m)
	}
	var terms []replica.Terms
	for stage := range r.cut() {
		one, err := r.replica(stage, r.Task.Params(), r.options())
		if err != nil {
			return c, err
		}
		terms = append(terms, replica.Terms{Plan: r.Exchange.Codec.Plan(one.JointLayers(), coding.Codec{}), Window: simulatedWindow})
	}
	if c.Terms = terms[0]; r.Pipeline != nil {
		c.Pipeline = &sim.Pipeline{Terms: terms, Batch: r.Pipeline.Batch, Rounds: r.Pipeline.Rounds, Chains: r.Pipeline.Chains, Work: newStaged(r.trainer)}
	}
	return c, nil
}

// SimulatedID is the identity of peer i in a Simulation.
func SimulatedID(i int) topology.PeerID { return topology.PeerID(fmt.Sprintf("peer%04d", i)) }

func (r *running) options() replica.Options {
	return replica.Options{SliceLen: r.Exchange.SliceLen, Scratch: r.scratch}
}

// member makes peer i anew.
func (r *running) member(i int) (sim.Member, error) {
	rep, err := r.replica(r.stages[i], r.Task.Params(), r.options())
	if err != nil {
		return sim.Member{}, err
	}
	machine, err := r.Exchange.NewMachine(SimulatedID(i), rand.New(rand.NewPCG(r.Seed, chanceOfMachine+uint64(i))))
	if err != nil {
		return sim.Member{}, err
	}
	r.replicas[i], r.here[i] = rep, true
	r.trainer.renew(i, collective.Of(machine).Traits().Gradients)
	return sim.Member{
		ID: SimulatedID(i), Role: r.World.Replay.role(i), Machine: machine, Replica: rep, Optimizer: r.optimizer(r.stages[i], r.Optimizer), Ledger: replica.NewLedger(rep), Stage: r.stages[i],
		Place: r.World.Links.place(i),
	}, nil
}

// opened notes the two partners, and applies the lies of faulty peers.
func (r *running) opened(s *sim.Stream) {
	from, to := s.From(), s.To()
	for _, pair := range [][2]int{{from, to}, {to, from}} {
		if r.partners[pair[0]] == nil {
			r.partners[pair[0]] = make(map[int]struct{})
		}
		r.partners[pair[0]][pair[1]] = struct{}{}
		if lie, lies := r.World.Lies[pair[0]]; lies && !r.trainer.peers[pair[0]].averages && r.replicas[pair[1]] != nil {
			r.showLie(lie, pair[0], pair[1])
		}
	}
}

// showLie replaces the model of a liar by the values that it shows a partner.
func (r *running) showLie(lie Lie, liar, partner int) {
	full := make(tensor.Vector, r.layout.Len())
	r.replicas[partner].Snapshot(full)
	shown := r.replicas[partner].CompactShared(full)
	lie(r.lying, shown)
	if err := r.replicas[liar].RestoreShared(shown); err != nil {
		r.fail(fmt.Errorf("the lie of peer %d: %w", liar, err))
	}
}

// apply makes a change happen.
func (r *running) apply(c Change) {
	switch c.Kind {
	case Crash, Leave:
		if !r.here[c.Peer] {
			return
		}
		r.here[c.Peer] = false
		r.gone++
		if c.Kind == Crash {
			r.world.Crash(c.Peer)
		} else {
			r.world.Leave(c.Peer)
		}
	case Arrive:
		if r.here[c.Peer] {
			return
		}
		if r.Pipeline != nil {
			r.stages[c.Peer] = r.world.Neediest()
		}
		m, err := r.member(c.Peer)
		if err == nil {
			err = r.world.Arrive(c.Peer, m)
		}
		if err != nil {
			r.fail(fmt.Errorf("arrival of peer %d: %w", c.Peer, err))
		}
	case cut:
		r.world.Cut(c.Peer, c.other)
	case heal:
		r.world.Heal(c.Peer, c.other)
	case relink, replug:
		r.fail(c.relink(r.world, r.Peers))
	}
}

// fail ends the run for a reason; the first one counts.
func (r *running) fail(err error) {
	if r.fault == nil {
		r.fault = err
	}
}

var errNothing = errors.New("nothing")

// rest is how long activity may go on once the work is done: longer than any timeout for a
// partner.
const rest = 2 * time.Minute

// run lets the world run until the work is done and all activity has ended. The recording
// is complete however it ends.
func (r *running) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.record.finish()) }()
	slice := 20 * min(r.World.Compute.Step, time.Minute) // ctx is not looked at within one
	for r.fault == nil && ctx.Err() == nil && r.ended < 0 {
		switch {
		case r.world.Pending() == 0:
			return fmt.Errorf("%w at %s, with %d of %d steps made; the last that went wrong: %w",
				ErrStandstill, r.world.Now(), r.trainer.made, r.trainer.target(), cmp.Or(r.broke, errNothing))
		case r.lost(r.world) != nil:
			return r.lost(r.world)
		case r.world.Now() >= r.Limit:
			return fmt.Errorf("%w: %s, with %d of %d steps made", ErrLimit, r.Limit, r.trainer.made, r.trainer.target())
		}
		r.events += r.world.Run(min(r.world.Now()+slice, r.Limit))
	}
	for r.fault == nil && ctx.Err() == nil && r.world.Pending() > 0 && r.world.Now() < r.ended+rest {
		r.events += r.world.Run(r.world.Now() + slice)
	}
	if r.fault != nil {
		return r.fault
	}
	return context.Cause(ctx)
}

// advanced is called after each step.
func (r *running) advanced() {
	progress := r.trainer.progress()
	for len(r.curve) < r.Watch.Points && progress*float64(r.Watch.Points) >= float64(len(r.curve)+1) {
		p := r.point(true)
		r.curve = append(r.curve, p)
		if r.Watch.Point != nil {
			r.Watch.Point(p)
		}
	}
	n := len(r.curve)
	arrived := r.Watch.Stop && n > 0 && r.curve[n-1].Mean >= r.Watch.Target
	if r.ended < 0 && (progress >= 1 || r.aimed.over(arrived)) {
		r.ended = r.world.Now()
		r.world.After(0, r.world.Finish)
	}
}

// outcome is the result of the run.
func (r *running) outcome() Outcome {
	o := Outcome{
		Seconds: r.ended.Seconds(), Steps: r.trainer.made, Samples: r.trainer.sampled(), Curve: r.curve, Final: r.point(false),
		TargetSeconds: -1, Events: r.events, Digest: r.world.Digest(), StoppedBy: r.aimed.stoppedBy(), Best: r.aimed.kept(),
	}
	if r.ended < 0 {
		o.Seconds = r.world.Now().Seconds()
	}
	o.Final.Seconds = o.Seconds
	moved, values := int64(0), int64(0)
	for i := range r.Peers {
		c := r.world.Counts(i)
		o.Each = append(o.Each, PeerOutcome{
			Steps: c.Steps, Bytes: c.Sent, Exchanges: c.Initiated + c.Served, Partners: len(r.partners[i]),
			Waited: r.trainer.peers[i].waited, Here: r.here[i],
		})
		o.Traffic.Exchanges += uint64(c.Initiated)
		o.Traffic.Refused += uint64(c.Refused)
		o.Traffic.Failed += uint64(c.Failed)
		o.Traffic.InDoubt += uint64(c.InDoubt)
		o.Traffic.Bytes += c.Sent
		o.Traffic.Across += c.Across
		moved += c.Moved
		values += c.Values
	}
	o.Traffic.Lost = r.gone
	r.tell(r.world, &o)
	o.Traffic.BitsPerParameter = 8 * float64(moved) / float64(values)
	for _, p := range append(r.curve, o.Final) {
		if r.Watch.Target > 0 && p.Mean >= r.Watch.Target {
			o.TargetSeconds = p.Seconds
			break
		}
	}
	return o
}

// point evaluates the flock at this moment, on part of the data (glance) or on all.
func (r *running) point(glance bool) Point {
	p := Point{Seconds: r.world.Now().Seconds(), Progress: r.trainer.progress(), Loss: r.trainer.meanLoss(), Consensus: r.consensus()}
	for i := range r.Peers {
		p.Bytes += r.world.Counts(i).Sent
		p.Across += r.world.Counts(i).Across
	}
	most := r.Watch.Evaluate
	if glance {
		most = glanced
	}
	chosen := r.chosen(most)
	accuracies, losses := r.evaluate(chosen, glance)
	p.Mean, p.Min, p.Max = meanAndRange(accuracies)
	p.TestLoss, p.LeastLoss, p.MostLoss = meanAndRange(losses)
	return p
}

// meanAndRange is the mean of values, 0 of none, with the least and the greatest, NaN of none.
func meanAndRange(values []float64) (mean, least, most float64) {
	if len(values) == 0 {
		return 0, math.NaN(), math.NaN()
	}
	for _, v := range values {
		mean += v / float64(len(values))
	}
	least, most = slices.Min(values), slices.Max(values)
	return min(max(mean, least), most), least, most // the mean of equal values may be rounded above them
}

// honest are the peers that are present and do not lie.
func (r *running) honest() (honest []int) {
	for i, here := range r.here {
		if _, lies := r.World.Lies[i]; here && !lies {
			honest = append(honest, i)
		}
	}
	return honest
}

// chosen are at most so many models of the honest peers, evenly spread, each as those who have its parts.
func (r *running) chosen(most int) (chosen [][]int) {
	models := r.models(r.honest())
	n := min(most, len(models))
	for k := range n {
		chosen = append(chosen, models[k*len(models)/n])
	}
	return chosen
}

// evaluate evaluates peers, several at once.
func (r *running) evaluate(chosen [][]int, glance bool) (accuracies, losses []float64) {
	accuracies, losses = make([]float64, len(chosen)), make([]float64, len(chosen))
	var group sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(chosen))
	for first := range workers {
		group.Go(func() {
			x := make(tensor.Vector, r.layout.Len())
			for k := first; k < len(chosen); k += workers {
				r.read(chosen[k], x)
				accuracies[k], losses[k] = r.Task.Evaluate(x, glance)
			}
		})
	}
	group.Wait()
	return accuracies, losses
}

// consensus is the root mean square distance of the honest peers' models from their mean.
func (r *running) consensus() float64 {
	squared := 0.0
	for _, all := range r.holders(r.honest()) {
		if len(all) == 0 {
			continue
		}
		x := make(tensor.Vector, r.replicas[all[0]].Len())
		squared += math.Pow(spread(len(all), func(i int) tensor.Vector {
			r.replicas[all[i]].Snapshot(x)
			return x
		}), 2)
	}
	return math.Sqrt(squared)
}
