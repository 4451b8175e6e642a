package peertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// running is a simulation under way.
type running struct {
	Simulation
	world    *sim.World
	layout   *tensor.Layout
	replicas []*replica.Replica // nil for who has not come
	here     []bool
	trainer  *trainer
	partners []map[int]struct{}
	lies     map[int]Attack
	lying    *rand.Rand
	record   *recorder

	curve  []Point
	events int
	ended  time.Duration // when the work was done; negative before
	lost   int
	broke  error // what last went wrong between peers, or made one stop
	fault  error // that ends the run
}

// The purposes of random sources, beside the seed.
const (
	chanceOfLoss = iota + 1
	chanceOfLies
	chanceOfTime
	chanceOfMachine = 1 << 20 // and one a peer
)

func newRunning(s Simulation) (*running, error) {
	r := &running{
		Simulation: s, layout: s.Task.Params().Layout(), replicas: make([]*replica.Replica, s.Peers), here: make([]bool, s.Peers),
		partners: make([]map[int]struct{}, s.Peers), lies: map[int]Attack{}, lying: rand.New(rand.NewPCG(s.Seed, chanceOfLies)),
		ended: -1,
	}
	for _, a := range s.World.Attacks {
		r.lies[a.Peer] = a
	}
	changes := inOrder(append(s.World.Links.beginning(s.Peers), s.World.Changes...))
	if s.World.Replay != nil {
		changes = s.World.Replay.Changes
	}
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

// config is that of the world.
func (r *running) config(late map[int]bool) (sim.Config, error) {
	c := sim.Config{
		Trainer: r.trainer, Stall: r.Exchange.Stall,
		Hooks: sim.Hooks{Opened: r.opened, Broke: func(peer, _ int, err error) { r.broke = fmt.Errorf("peer %d: %w", peer, err) }},
		Rand:  rand.New(rand.NewPCG(r.Seed, chanceOfLoss)),
	}
	if r.record != nil {
		c.Hooks.Lost = r.hearLoss
	}
	for i := range r.Peers {
		m := sim.Member{ID: SimulatedID(i), Later: late[i]}
		if !m.Later {
			var err error
			if m, err = r.member(i); err != nil {
				return c, err
			}
		}
		c.Members = append(c.Members, m)
	}
	whole, err := replica.New(r.Task.Params(), replica.Options{SliceLen: r.Exchange.SliceLen})
	if err != nil {
		return c, err
	}
	c.Terms.Plan = r.Exchange.Codec.Plan(whole.JointLayers(), quant.Codec{})
	c.Terms.Window = r.Exchange.Window
	if c.Terms.Window == 0 {
		c.Terms.Window = replica.MaxWindow
	}
	return c, nil
}

// SimulatedID is the identity of peer i in a Simulation.
func SimulatedID(i int) topology.PeerID { return topology.PeerID(fmt.Sprintf("peer%04d", i)) }

// member makes peer i anew.
func (r *running) member(i int) (sim.Member, error) {
	rep, err := replica.New(r.Task.Params(), replica.Options{SliceLen: r.Exchange.SliceLen})
	if err != nil {
		return sim.Member{}, err
	}
	machine, err := r.Exchange.Machine(averaging.Config{
		Self: SimulatedID(i), Pace: r.Exchange.Pace, Deadline: r.Exchange.Deadline, MaxInbound: r.Exchange.Inbound,
		Rand: rand.New(rand.NewPCG(r.Exchange.Seed, chanceOfMachine+uint64(i))),
	})
	if err != nil {
		return sim.Member{}, err
	}
	r.replicas[i], r.here[i] = rep, true
	r.trainer.renew(i)
	return sim.Member{
		ID: SimulatedID(i), Machine: aware(machine, r, i), Replica: rep, Ledger: replica.NewLedger(rep, replica.LedgerOptions{}),
	}, nil
}

// opened notes who speaks with whom, and lets liars lie.
func (r *running) opened(s *sim.Stream) {
	from, to := s.From(), s.To()
	for _, pair := range [][2]int{{from, to}, {to, from}} {
		if r.partners[pair[0]] == nil {
			r.partners[pair[0]] = make(map[int]struct{})
		}
		r.partners[pair[0]][pair[1]] = struct{}{}
		if lie, lies := r.lies[pair[0]]; lies && !r.trainer.peers[pair[0]].averages && r.replicas[pair[1]] != nil {
			r.showLie(lie, pair[0], pair[1])
		}
	}
}

// showLie replaces the model of a liar by what it shows a partner.
func (r *running) showLie(lie Attack, liar, partner int) {
	full := make(tensor.Vector, r.layout.Len())
	r.replicas[partner].Snapshot(full)
	shown := r.replicas[partner].CompactShared(full)
	lie.tell(r.lying, shown)
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
		r.lost++
		if c.Kind == Crash {
			r.world.Crash(c.Peer)
		} else {
			r.world.Leave(c.Peer)
		}
	case Arrive:
		if r.here[c.Peer] {
			return
		}
		m, err := r.member(c.Peer)
		if err == nil {
			err = r.world.Arrive(c.Peer, m)
		}
		if err != nil {
			r.fail(fmt.Errorf("arrival of peer %d: %w", c.Peer, err))
		}
	case Cut:
		r.world.Cut(c.Peer, c.Other)
	case Heal:
		r.world.Heal(c.Peer, c.Other)
	default:
		r.fail(r.relink(c))
	}
}

// relink changes links and ports.
func (r *running) relink(c Change) error {
	link := sim.Link{Delay: c.Link.Delay, Bandwidth: c.Link.Bandwidth, Loss: c.Link.Loss}
	switch {
	case c.Kind == Replug && c.Peer == Everybody:
		for i := range r.Peers {
			if err := r.world.SetPort(i, c.Port); err != nil {
				return err
			}
		}
	case c.Kind == Replug:
		return r.world.SetPort(c.Peer, c.Port)
	case c.Peer == Everybody:
		return r.world.SetLinks(link)
	case c.Other == Everybody:
		for i := range r.Peers {
			if i != c.Peer {
				if err := r.world.SetLink(c.Peer, i, link); err != nil {
					return err
				}
			}
		}
	default:
		return r.world.SetLink(c.Peer, c.Other, link)
	}
	return nil
}

// hearLoss records losses on a link.
func (r *running) hearLoss(a, b, segments int) { r.record.lost(r.world.Now(), a, b, segments) }

// fail ends the run for a reason; the first one counts.
func (r *running) fail(err error) {
	if r.fault == nil {
		r.fault = err
	}
}

// rest is how long a world may take to come to rest once the work is done: longer than
// partners are waited for.
const rest = 2 * time.Minute

// run lets the world run until the work is done and all have come to rest. However it
// ends, what was recorded by then is whole.
func (r *running) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.record.finish()) }()
	slice := 20 * r.World.Compute.Step
	for r.fault == nil && ctx.Err() == nil && r.ended < 0 {
		switch {
		case r.world.Pending() == 0:
			return fmt.Errorf("%w at %s, with %d of %d steps made; the last that went wrong: %w",
				ErrStandstill, r.world.Now(), r.trainer.made, r.trainer.target(), r.lastFault())
		case r.world.Now() >= r.Limit:
			return fmt.Errorf("%w: %s, with %d of %d steps made", ErrLimit, r.Limit, r.trainer.made, r.trainer.target())
		}
		r.events += r.world.Run(r.world.Now() + slice)
	}
	for r.fault == nil && ctx.Err() == nil && r.world.Pending() > 0 && r.world.Now() < r.ended+rest {
		r.events += r.world.Run(r.world.Now() + slice)
	}
	if r.fault != nil {
		return r.fault
	}
	return ctx.Err()
}

// lastFault is what last went wrong between peers.
func (r *running) lastFault() error {
	if r.broke == nil {
		return errors.New("nothing")
	}
	return r.broke
}

// advanced is told that a step was made.
func (r *running) advanced() {
	progress := r.trainer.progress()
	for len(r.curve) < r.Watch.Points && progress*float64(r.Watch.Points) >= float64(len(r.curve)+1) {
		p := r.point(true)
		r.curve = append(r.curve, p)
		if r.Watch.Point != nil {
			r.Watch.Point(p)
		}
	}
	if (progress >= 1 || r.arrived()) && r.ended < 0 {
		r.ended = r.world.Now()
		r.world.After(0, r.world.Finish)
	}
}

// arrived tells whether the run is to end for what it has reached.
func (r *running) arrived() bool {
	n := len(r.curve)
	return r.Watch.Stop && n > 0 && r.curve[n-1].Mean >= r.Watch.Target
}

// outcome is what the run has come to.
func (r *running) outcome() Outcome {
	o := Outcome{
		Seconds: r.ended.Seconds(), Steps: r.trainer.made, Samples: r.trainer.sampled(), Curve: r.curve, Final: r.point(false),
		TargetSeconds: -1, Events: r.events, Digest: r.world.Digest(),
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
		moved += c.Moved
		values += c.Values
	}
	o.Traffic.Lost = r.lost
	o.Traffic.BitsPerParameter = 8 * float64(moved) / float64(values)
	for _, p := range append(r.curve, o.Final) {
		if r.Watch.Target > 0 && p.Mean >= r.Watch.Target {
			o.TargetSeconds = p.Seconds
			break
		}
	}
	return o
}
