// Package simulate is the command simulate: it trains like run, in virtual time.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	defaultPoints = 10
	// maxEvaluations bounds --points.
	maxEvaluations = 10_000
	// FirstServes is the default of --server: the first peer serves.
	FirstServes = -1
)

// Settings are the flags of simulate.
type Settings struct {
	settings.Settings
	worldSettings
	// Serving is the number of the peer that serves the parameters. Simulated peers have numbers, where --server of
	// run takes an id.
	Serving  int
	Evaluate int
	Points   int
	Target   float64
	Record   string
}

// CostModel explains virtual time in the help of commands that simulate.
const CostModel = `Virtual time is made of two things. A gradient step takes --step-time, give or take
--jitter, and --slow times longer for some: it is a figure that you state, not one
measured here, so that how fast this machine is changes no result. With --balance it
is that of a step of --batch pictures, and more take longer. Bytes take the
time that --link gives them: each peer has one connection, which all its partners
share, each way. Processor time of exchanges and optimizers takes none.`

// Command makes the command simulate.
func Command(std cli.Streams) *cobra.Command {
	var s Settings
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Train as many peers in virtual time, on links and machines as you describe them",
		Long: `Simulate trains as run does, on the same data with the same machines, models and
frames, in one process and in virtual time: a flock of hundreds, a straggler, a slow
link or a crash take no longer than their gradients.

` + CostModel + `

The same seed gives the same result, byte for byte, but for wall_seconds, from the same
build on machines whose arithmetic, which the result names, is the same. (That of avx2 and
of avx512 comes to the same. That of the plain loops, which a processor without them and
the build tag purego have, and that of another architecture round otherwise: digest differs,
and figures in late digits.) In the result, seconds are virtual, consensus_distance is the root mean square distance of all models
from their mean, and test_accuracy that of --evaluate peers. --until and --deadline judge
these peers too, as often as those of run do, in virtual time; evaluating takes none of it.
A peer whose part of the data is
smaller than --batch takes all of it in each step.

With --record FILE what happens is written as lines of JSON: how long each step took,
links, coming and going, who proposed an exchange and what was lost. With --replay FILE
another codec or strategy trains in that world: compute times, links, coming and going
are taken over; losses are drawn again, and who talks to whom follows anew. Crashes are
noticed by the others after 5s.

With --sites K the peers are at several places, each with a connection to the others that
its peers share, as --across says. They tell where they are, as run --site does, or with
--blind do not, and the overlay takes all links for alike. The result tells how many
bytes went across.

With --stages K each peer trains one of K stages of the model, as in run: peer P begins
with stage P modulo K. A stage takes its share of --step-time by the products of its
layers; the result tells for what share of the time each was busy, and how many
micro-batches were sent again or dropped.`,
		Example: `  gossipnode simulate --peers 64 --slow 3=100
  gossipnode simulate --peers 16 --link 100,40 --codec lattice6+4 --dataset mnist --data DIR
  gossipnode simulate --crash 3@20s --arrive 3@40s --record world.jsonl
  gossipnode simulate --sites 2 --across 20,60 --target 0.9
  gossipnode simulate --peers 6 --stages 3 --model cnn --step-time 1s --slow 4=10
  gossipnode simulate --replay world.jsonl --strategy alone --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			return s.run(sources, std)
		},
	}
	s.Register(cmd.Flags())
	return cmd
}

func (s *Settings) Register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.worldSettings.register(flags)
	cli.Group(flags, "World", "peers", "step-time", "slow", "link", "slow-link", "sites", "crash", "replay")
	flags.IntVar(&s.Evaluate, "evaluate", 32, "number of peers whose models are evaluated")
	flags.IntVar(&s.Points, "points", defaultPoints, "number of times that the models are looked at on the way")
	flags.Float64Var(&s.Target, "target", 0, "accuracy whose time is told, 0 to 1")
	flags.StringVar(&s.Record, "record", "", "`file` to write what happens in the world to")
	cli.Group(flags, "Measures", "evaluate")
	s.RegisterTraining(flags)
	flags.IntVar(&s.Serving, settings.ServerFlag, FirstServes,
		"ps-*: number of the peer that serves the parameters, from 0; if it is lost, another serves (default: the first of the flock)")
	flags.Lookup(settings.ServerFlag).DefValue = "" // -1 means nothing to a reader
	cli.Group(flags, "Exchanges")
	flags.BoolVar(&s.JSON, "json", false, "print the result as one JSON object, the last line of standard output")
	cli.TakeFile(flags)
}

// Check returns all errors of the flags, and the world that they describe.
func (s *Settings) Check(sources cli.Origins) (peertest.World, error) {
	world, err := s.world()
	if err != nil {
		return world, sources.Usage(err)
	}
	if err := s.readReplay(&world); err != nil {
		return world, sources.Usage(cli.Faultf("replay", "%v", err))
	}
	world.Compute.Samples = s.Pictures()
	s.Part = fmt.Sprintf("0/%d", s.Peers)
	if s.IsTable() {
		return world, sources.Usage(cli.Faultf("dataset", "%s: tables are for run and local", s.Dataset))
	}
	if err := s.Validate(sources); err != nil {
		return world, err
	}
	if policy, _ := s.CodecPolicy(); policy.Choosing() {
		return world, sources.Usage(cli.Faultf("codec", "auto: simulated links are not measured: name a codec"))
	}
	if !(s.Target >= 0 && s.Target <= 1) {
		return world, sources.Usage(cli.Faultf("target", "%v: want an accuracy from 0 to 1", s.Target))
	}
	var faults cli.Faults
	if k := s.ModelStages(); k > 1 {
		faults.If(s.Peers < k, "stages", "%d: there are %d peers, and each stage needs one", k, s.Peers)
		faults.If(len(s.Attack) > 0 || s.Record != "" || s.Replay != "", "stages", "%d: leave out --attack, --record and --replay, which are for whole models", k)
	}
	faults.If(len(s.Table.Stages.List) > 0, "stages", "want a number: files of stages prepare rows of tables")
	faults.If(s.Sites > 1 && (s.Record != "" || s.Replay != ""), "sites", "%d: leave out --record and --replay, which know no sites", s.Sites)
	faults.If(s.ServeOnly, settings.ServeOnlyFlag, "is for run and local")
	faults.If(s.EndsStay, settings.EndsStayFlag, "is for run: no rows travel here")
	faults.If(s.Gives() || s.TrainOnly, "hold", "--hold-and-train and --train-only are for run and local: no rows travel here")
	if faults = append(faults, s.Unused(false, false)...); len(faults) > 0 {
		return world, sources.Usage(faults...)
	}
	return world, sources.Usage(s.serverFault(), cli.Within("evaluate", s.Evaluate, 1, settings.MaxPeers), cli.Within("points", s.Points, 0, maxEvaluations))
}

// run simulates and prints the result.
func (s *Settings) run(sources cli.Origins, std cli.Streams) (err error) {
	world, err := s.Check(sources)
	if err != nil {
		return err
	}
	began := time.Now()
	data, err := PrepareAll(context.Background(), s.Settings, s.Peers)
	if err != nil {
		return err
	}
	var record io.Writer
	if s.Record != "" {
		file, err := os.Create(s.Record)
		if err != nil {
			return fmt.Errorf("recording the world: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		record = file
	}
	fmt.Fprintf(std.Err, "%s learn %s with %s, %s, %s, in virtual time\n", cli.Plural(uint64(s.Peers), "peer"), s.Dataset, s.Model, s.Strategy, s.CodecName())
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	r, err := data.Train(ctx, *s, world, func(simulation *peertest.Simulation) {
		simulation.Watch.Record = record
		simulation.Watch.Point = func(p peertest.Point) { fmt.Fprint(std.Err, pointLine(p)) }
	})
	if err != nil {
		return err
	}
	r.WallSeconds = time.Since(began).Seconds()
	return cli.Print(r, s.JSON, std)
}

// pointLine describes the progress of a run.
func pointLine(p peertest.Point) string {
	return fmt.Sprintf("%4.0f %%  %8.2f s  %s (%s to %s)  models %.3g apart  %s sent\n",
		100*p.Progress, p.Seconds, cli.Percent(cli.Number(p.Mean)), cli.Percent(cli.Number(p.Min)), cli.Percent(cli.Number(p.Max)), p.Consensus, cli.Size(uint64(p.Bytes)))
}

// serverFault returns an error if --server is wrong.
func (s *Settings) serverFault() error {
	switch {
	case s.Serving == FirstServes:
		return nil
	case !s.Serves():
		return cli.Faultf(settings.ServerFlag, "is for %s: with --strategy %s nobody serves the parameters",
			cli.List(settings.Servers()), s.Strategy)
	case s.Servers > 1:
		return cli.Faultf(settings.ServerFlag, "names one server: with --%s leave it out, and the peers serve in turn", settings.ServersFlag)
	}
	return cli.Within(settings.ServerFlag, s.Serving, 0, s.Peers-1)
}

// Simulation returns the run as package peertest needs it.
func (s *Settings) Simulation(task *simulatedTask, world peertest.World) (peertest.Simulation, error) {
	policy, err := task.First.Codecs(s.Settings)
	if err != nil {
		return peertest.Simulation{}, err
	}
	pace, err := s.Pace()
	if err != nil {
		return peertest.Simulation{}, err
	}
	strategy := s.StrategySettings
	if s.Serving != FirstServes {
		strategy.Server = string(peertest.SimulatedID(s.Serving))
	}
	whole := s.Settings
	whole.Strategy = settings.StrategyADPSGD // the amount of work is the flock's, for each strategy
	work := whole.Work(task.First.Data)
	if work.Until, err = s.Aim(); err != nil {
		return peertest.Simulation{}, err
	}
	simulation := peertest.Simulation{
		Peers: s.Peers, Task: task, Optimizer: func() optim.Optimizer { return s.NewOptimizer(task.First.Params.Layout()) },
		Schedule: s.Course(), Work: work,
		Exchange: peer.Exchange{Pace: pace, Codec: policy, Topology: strategy.Shape(), Machine: strategy.Machine(s.Batch, s.Outer())},
		World:    world, Seed: s.Seed,
		Watch: peertest.Watch{Evaluate: s.Evaluate, Points: s.Points, Target: s.Target},
	}
	if simulation.World.Compute.Step, err = wholeTakes(s, nets.Layers(task.First.Model)); err != nil {
		return simulation, err
	}
	if s.ModelStages() > 1 {
		if simulation.Pipeline, err = cut(s, nets.Layers(task.First.Model), world); err != nil {
			return simulation, err
		}
	}
	return simulation, s.updateFault(simulation.Work)
}

// steps are those of each peer, if all make as many.
func (s *Settings) steps(work peer.Work) uint64 {
	return cmp.Or(work.StepsPerPeer, work.Steps/uint64(s.Peers))
}

// updateFault is an error if peers with local steps would make no update: the run would teach nobody anything.
func (s *Settings) updateFault(work peer.Work) error {
	steps := s.steps(work)
	if every := s.Outer().Every; s.Local() && steps < uint64(every) {
		return cli.Usage(cli.Faultf("every", "%d: each of %d peers makes %d steps, so there is no update: give a smaller number, or more --epochs or --steps", every, s.Peers, steps))
	}
	return nil
}

// Take sets the strategy and the codec of a racer, and resets settings that only other strategies have.
func (s *Settings) Take(strategy, codec string) {
	s.Strategy, s.Codec = strategy, codec
	if !s.Paced() {
		s.Budget, s.Consensus, s.Burst, s.OuterMomentum, s.OuterRate = "", false, 0, 0, 0
		if !s.Local() {
			s.Every = settings.EveryAuto
		}
	}
	if s.Strategy != settings.StrategyDSSP {
		s.StalenessMax = settings.DefaultStalenessMax
		if s.Strategy != settings.StrategySSP {
			s.Staleness = settings.DefaultStaleness
		}
	}
	fixed := s.Strategy == settings.StrategyADPSGD && s.Every != settings.EveryAuto
	s.Balance = s.Balance && (s.Strategy == settings.StrategyAllReduce || s.Strategy == settings.StrategyBSP || fixed)
	if !s.Linked() || s.Strategy == settings.StrategyAllReduce && s.Shape() == topology.Star {
		s.Topology = ""
	}
	if !s.Serves() {
		s.Serving, s.Servers = FirstServes, 1
	}
}

// Expected is about how long a run takes if nobody waits.
func (s *Settings) Expected(work peer.Work) time.Duration {
	return time.Duration(s.steps(work)) * s.StepTime
}
