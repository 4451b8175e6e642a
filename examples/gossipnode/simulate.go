package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

const defaultPoints = 10

// simulateSettings are the flags of simulate.
type simulateSettings struct {
	settings
	worldSettings
	servingSettings
	Evaluate int
	Points   int
	Target   float64
	Record   string
}

// costModel is how virtual time passes, for the help of the commands that make it.
const costModel = `Virtual time is made of two things. A gradient step takes --step-time, give or take
--jitter, and --slow times longer for some: it is a figure that you state, not one
measured here, so that how fast this machine is changes no result. With --balance it
is that of a step of --batch pictures, and more take longer. Bytes take the
time that --link gives them: each peer has one connection, which all its partners
share, each way. Processor time of exchanges and optimizers takes none.`

// newSimulate makes the command that trains in virtual time.
func newSimulate(std cli.Streams) *cobra.Command {
	var s simulateSettings
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Train as many peers in virtual time, on links and machines as you describe them",
		Long: `Simulate trains as run does, on the same data with the same machines, models and
frames, in one process and in virtual time: a flock of hundreds, a straggler, a slow
link or a crash take no longer than their gradients.

` + costModel + `

The same seed gives the same result, byte for byte, but for wall_seconds, from the same
build on machines whose arithmetic, which the result names, is the same. (That of avx2 and
of avx512 comes to the same. That of the plain loops, which a processor without them and
the build tag purego have, and that of another architecture round otherwise: digest differs,
and figures in late digits.) In the result, seconds are virtual, consensus_distance is the root mean square distance of all models
from their mean, and test_accuracy that of --evaluate peers.

With --record FILE what happens is written as lines of JSON: how long each step took,
links, coming and going, who proposed an exchange and what was lost. With --replay FILE
another codec or strategy trains in that world: compute times, links, coming and going
are taken over; losses are drawn again, and who talks to whom follows anew. Crashes are
noticed by the others after ` + peertest.DetectTime.String() + `.`,
		Example: `  gossipnode simulate --peers 64 --slow 3=100
  gossipnode simulate --peers 16 --link 100,40 --codec lattice6+4 --dataset mnist --data DIR
  gossipnode simulate --crash 3@20s --arrive 3@40s --record world.jsonl
  gossipnode simulate --replay world.jsonl --strategy alone --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.load(cmd)
			if err != nil {
				return err
			}
			return s.run(sources, std)
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func (s *simulateSettings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.worldSettings.register(flags)
	flags.IntVar(&s.Evaluate, "evaluate", peertest.DefaultEvaluate, "number of peers whose models are evaluated")
	flags.IntVar(&s.Points, "points", defaultPoints, "number of times that the models are looked at on the way")
	flags.Float64Var(&s.Target, "target", 0, "accuracy whose time is told, 0 to 1")
	flags.StringVar(&s.Record, "record", "", "`file` to write what happens in the world to")
	s.registerTraining(flags)
	s.servingSettings.register(flags)
	flags.BoolVar(&s.JSON, "json", false, "print the result as one JSON object, the last line of standard output")
	flags.String(cli.ConfigFlag, "", "YAML file with the same keys as the flags")
}

// registerTraining adds the flags of run that say what is learned and how. Which part
// is whose follows from the number of peers, and who serves has a number.
func (s *settings) registerTraining(flags *pflag.FlagSet) {
	var all pflag.FlagSet
	all.SortFlags = false
	s.networkSettings.register(&all) // for their defaults, which validate looks at
	s.outputSettings.register(&all)
	s.dataSettings.register(&all)
	s.trainSettings.register(&all)
	var taken pflag.FlagSet
	taken.SortFlags = false
	var data dataSettings
	var train trainSettings
	data.register(&taken)
	train.register(&taken)
	taken.VisitAll(func(f *pflag.Flag) {
		if f.Name != "part" && f.Name != serverFlag {
			flags.AddFlag(all.Lookup(f.Name))
		}
	})
}

// check reports all faults of the flags, and gives the world that they describe.
func (s *simulateSettings) check(sources cli.Origins) (peertest.World, error) {
	world, err := s.world()
	if err != nil {
		return world, sources.Usage(err)
	}
	if err := s.readReplay(&world); err != nil {
		return world, sources.Usage(cli.Faultf("replay", "%v", err))
	}
	world.Compute.Samples = s.Batch
	s.Part = fmt.Sprintf("0/%d", s.Peers)
	if err := s.validate(sources); err != nil {
		return world, err
	}
	if policy, _ := s.policy(); policy.Choosing() {
		return world, sources.Usage(cli.Faultf("codec", "auto: simulated links are not measured: name a codec"))
	}
	if !(s.Target >= 0 && s.Target <= 1) {
		return world, sources.Usage(cli.Faultf("target", "%v: want an accuracy from 0 to 1", s.Target))
	}
	return world, sources.Usage(present([]error{s.serverFault(), cli.Within("evaluate", s.Evaluate, 1, maxPeers), cli.Within("points", s.Points, 0, maxEvaluations)})...)
}

// maxEvaluations bounds --points.
const maxEvaluations = 10_000

// run simulates and prints the result.
func (s *simulateSettings) run(sources cli.Origins, std cli.Streams) (err error) {
	world, err := s.check(sources)
	if err != nil {
		return err
	}
	began := time.Now()
	data, err := s.prepareAll(s.Peers)
	if err != nil {
		return err
	}
	task, err := data.begin(s.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.Close()) }()
	simulation, err := s.simulation(task, world)
	if err != nil {
		return err
	}
	if s.Record != "" {
		file, err := os.Create(s.Record)
		if err != nil {
			return fmt.Errorf("recording the world: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		simulation.Watch.Record = file
	}
	fmt.Fprintf(std.Err, "%s learn %s with %s, %s, %s, in virtual time\n", cli.Plural(uint64(s.Peers), "peer"), s.Dataset, s.Model, s.Strategy, s.codecName())
	simulation.Watch.Point = func(p peertest.Point) { fmt.Fprint(std.Err, pointLine(p)) }
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	outcome, err := peertest.Simulate(ctx, simulation)
	if err != nil {
		return err
	}
	return s.print(outcome, time.Since(began), std)
}

// pointLine tells how a run gets on.
func pointLine(p peertest.Point) string {
	return fmt.Sprintf("%4.0f %%  %8.2f s  %s (%s to %s)  models %.3g apart  %s sent\n",
		100*p.Progress, p.Seconds, percent(cli.Number(p.Mean)), percent(cli.Number(p.Min)), percent(cli.Number(p.Max)), p.Consensus, cli.Size(uint64(p.Bytes)))
}

// simulation is the run in package peertest's terms.
func (s *simulateSettings) simulation(task *simulatedTask, world peertest.World) (peertest.Simulation, error) {
	policy, err := s.codecs(task.first)
	if err != nil {
		return peertest.Simulation{}, err
	}
	pace, err := s.pace()
	if err != nil {
		return peertest.Simulation{}, err
	}
	whole := s.settings
	whole.Strategy = strategyADPSGD // the work is that of the flock, whoever talks to whom
	simulation := peertest.Simulation{
		Peers: s.Peers, Task: task, Optimizer: s.newOptimizer,
		Schedule: peer.Schedule{Rate: s.rate(), Warmup: s.Warmup}, Work: whole.work(task.first.data),
		Exchange: peer.Exchange{Pace: pace, Codec: policy, Seed: s.Seed, Machine: s.simulatedMachine()},
		World:    world, Seed: s.Seed,
		Watch: peertest.Watch{Evaluate: s.Evaluate, Points: s.Points, Target: s.Target},
	}
	simulation.Schedule.Shape, simulation.Schedule.At = shapeOf(s.Schedule)
	return simulation, nil
}

// print prints the result.
func (s *simulateSettings) print(o peertest.Outcome, took time.Duration, std cli.Streams) error {
	r := s.result(o)
	r.WallSeconds = took.Seconds()
	var words io.Writer = std.Out
	if s.JSON {
		words = std.Err
	}
	if _, err := fmt.Fprint(words, r.summary()); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	if !s.JSON {
		return nil
	}
	return encode(std.Out, r)
}
