// Package compare is the command compare: several strategies in the same simulated worlds.
package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/quant"
)

const (
	defaultTarget        = 0.9
	defaultComparePoints = 20
	peersFlag            = "peers"
)

// compareSettings are the flags of compare.
type compareSettings struct {
	simulate.Settings
	Strategies string
	Suite      string
	Plot       string
	given      string // the flags of the race that are set, as a text
}

// Command makes the command that races strategies in the same worlds.
func Command(std cli.Streams) *cobra.Command {
	var s compareSettings
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Race several strategies in the same simulated worlds",
		Long: `Compare lets each strategy train in the same simulated world, one after the other: the
same compute times, links, coming and going, data and initial values. It prints a table
for each world, and with --plot draws accuracy against virtual time and against bytes.

` + simulate.CostModel + `

The worlds of --suite are made of the one that the other flags describe:

` + suiteHelp() + `
A strategy may have a codec of its own, and other flags of training and exchanges, as in
'adpsgd:lattice6+4 every=16 lr=0.02' (of a value with commas, ; stands for them), and a
number of peers, as in 'alone peers=1'. With --sites 'adpsgd blind=true' is what one
does whose peers do not tell where they are. If one has stages, as in 'adpsgd stages=2', the
table says for what share of the time each stage was busy, and the second
picture is accuracy against passes over the data.

In the tables, s/epoch is virtual time for one pass of all peers over all the data,
target the virtual time until --target was first seen, waiting the share of the time
for which trainers were kept waiting by the algorithm. Times per epoch are compared with
those in the first world, in lengths of a step where these differ.`,
		Example: `  gossipnode compare --model softmax
  gossipnode compare --strategies adpsgd,adpsgd:lattice6+4,alone --link 100,40
  gossipnode compare --strategies 'adpsgd:lattice6+4 every=16 burst=4, diloco:int8 every=64 lr=0.02'
  gossipnode compare --sites 2 --across 20,60 --strategies 'adpsgd, adpsgd blind=true'
  gossipnode compare --suite all --dataset mnist --data DIR --epochs 2 --plot race.png
  gossipnode compare --suite slow-10,slow-100 --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if f.Name != "plot" && f.Name != "json" {
					value := strings.Trim(f.Value.String(), "[]")
					if f.Name == "strategies" && strings.Contains(value, " ") {
						value = "'" + value + "'"
					}
					s.given += " --" + f.Name + " " + value
				}
			})
			return s.run(sources, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.Strategies, "strategies", strings.Join(settings.Strategies(), ","), "strategies to race, each with :CODEC after it if it is to have its own, and FLAG=VALUE after a space")
	flags.StringVar(&s.Suite, "suite", homogeneous, "worlds to race in: all, or names from the list above")
	flags.StringVar(&s.Plot, "plot", "", "`file` to draw the race into, as .png or .svg")
	s.Settings.Register(flags)
	cli.OnlyHelpAll(flags, "crash", "replay", "evaluate", "slow-link", "sites")
	s.Target, s.Points = defaultTarget, defaultComparePoints
	for _, name := range []string{"target", "points"} {
		flags.Lookup(name).DefValue = flags.Lookup(name).Value.String() // for --help
	}
	for _, name := range []string{"strategy", "record"} {
		_ = flags.MarkHidden(name) // fails only for a flag that does not exist
	}
	return cmd
}

// suiteHelp lists the suites.
func suiteHelp() string {
	text := ""
	for _, s := range suites() {
		text += fmt.Sprintf("  %-14s %s\n", s.name, s.about)
	}
	return text
}

// racer is a strategy, its codec, and its own values of other flags, as in lr=0.02.
type racer struct {
	strategy, codec, name string
	own                   []string
}

// set sets what is the racer's own.
func (r racer) set(s *simulate.Settings) error {
	s.Take(r.strategy, r.codec)
	for _, own := range r.own {
		flag, value, _ := strings.Cut(own, "=")
		var err error
		switch flag {
		case peersFlag:
			s.Peers, err = strconv.Atoi(value)
		case simulate.BlindFlag:
			s.Blind, err = strconv.ParseBool(value)
		default:
			err = s.SetTraining(flag, strings.ReplaceAll(value, ";", ","))
		}
		if err != nil {
			return cli.Faultf("strategies", "%s: %v", r.name, err)
		}
	}
	return nil
}

func (r racer) serves() bool { return settings.StrategySettings{Strategy: r.strategy}.Serves() }

// racers returns the racers of --strategies.
func (s *compareSettings) racers() ([]racer, error) {
	var racers []racer
	for _, name := range strings.Split(s.Strategies, ",") {
		r := racer{name: strings.TrimSpace(name), codec: s.Codec}
		head, own, _ := strings.Cut(r.name, " ")
		r.own = strings.Fields(own)
		strategy, codec, coded := strings.Cut(head, ":")
		if r.strategy = strategy; coded {
			r.codec = codec
		}
		for _, err := range []error{cli.OneOf("strategies", strategy, settings.Strategies()), cli.OneOf("strategies", r.codec, quant.Names())} {
			if err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(racers, func(other racer) bool { return other.name == r.name }) {
			return nil, cli.Faultf("strategies", "%q is there twice", r.name)
		}
		racers = append(racers, r)
	}
	return racers, nil
}

// race is the results in one world.
type race struct {
	World   string    `json:"world"`
	Results []entrant `json:"results"`
	about   string
}

// entrant is the result of one strategy in a race.
type entrant struct {
	Name string `json:"name"`
	simulate.Result
	// SecondsPerEpoch is the virtual time in which all peers together pass all the data once. StepSeconds is that of
	// a step of a peer that is not slow.
	SecondsPerEpoch float64 `json:"seconds_per_epoch"`
	StepSeconds     float64 `json:"step_seconds"`
	epochs          float64
}

// sited tells whether bytes of a race went from one site to another.
func (r race) sited() bool {
	return slices.ContainsFunc(r.Results, func(e entrant) bool { return e.BytesAcross > 0 })
}

// staged tells whether some models of a race have stages.
func (r race) staged() bool {
	return slices.ContainsFunc(r.Results, func(e entrant) bool { return len(e.Stages) > 0 })
}

func (s *compareSettings) run(sources cli.Origins, std cli.Streams) error {
	racers, err := s.racers()
	worlds, err2 := suitesNamed(s.Suite)
	if err := sources.Usage(err, err2, PlotFault("plot", s.Plot)); err != nil {
		return err
	}
	if s.Serving != simulate.FirstServes && !slices.ContainsFunc(racers, racer.serves) {
		return sources.Usage(cli.Faultf(settings.ServerFlag, "is for %s: none of them is in --strategies", cli.List(settings.Servers())))
	}
	peers := s.Peers
	for _, racer := range racers {
		one := s.Settings
		if err := racer.set(&one); err != nil {
			return sources.Usage(err)
		}
		if _, err := one.Check(sources); err != nil {
			return err
		}
		if s.Replay != "" {
			peers = one.Peers // that was recorded
		}
	}
	for _, world := range worlds { // checks all worlds before the first race
		if err := s.worldFault(world, peers); err != nil {
			return sources.Usage(err)
		}
	}
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	data := map[string]*simulate.Simulated{} // by the division of the data
	var races []race
	for _, world := range worlds {
		r := race{World: world.name, about: world.about}
		for _, racer := range racers {
			e, err := s.enter(ctx, world, racer, sources, data, std.Err)
			if err != nil {
				return fmt.Errorf("%s in world %s: %w", racer.name, world.name, err)
			}
			r.Results = append(r.Results, e)
		}
		races = append(races, r)
		out := std.Out
		if s.JSON {
			out = std.Err
		}
		fmt.Fprint(out, table(r, races[0]))
	}
	if s.Plot != "" {
		title := fmt.Sprintf("%s, %s with %s: batch %d, seed %d", cli.Plural(uint64(peers), "peer"), s.Dataset, s.Model, s.Batch, s.Seed)
		if err := plotRaces(s.Plot, title, "gossipnode compare"+s.given, races); err != nil {
			return err
		}
	}
	if !s.JSON {
		return nil
	}
	return json.NewEncoder(std.Out).Encode(struct {
		Peers int    `json:"peers"`
		Seed  uint64 `json:"seed"`
		Races []race `json:"races"`
	}{peers, s.Seed, races})
}

// worldFault returns an error if a world does not fit the settings.
func (s *compareSettings) worldFault(world suite, peers int) error {
	switch {
	case s.Replay != "" && !world.replays:
		return cli.Faultf("suite", "%s changes what --replay takes over from the recording: leave one of them out", world.name)
	case world.least > peers:
		return cli.Faultf("suite", "%s is a world of at least %d peers: want so many with --peers", world.name, world.least)
	}
	return nil
}

// enter runs one strategy in one world.
func (s *compareSettings) enter(ctx context.Context, in suite, by racer, sources cli.Origins, data map[string]*simulate.Simulated, progress io.Writer) (_ entrant, err error) {
	one := s.Settings
	one.Record = ""
	if err := by.set(&one); err != nil {
		return entrant{}, err
	}
	one.Slow, one.SlowLink = slices.Clone(one.Slow), slices.Clone(one.SlowLink)
	in.change(&one)
	world, err := one.Check(sources)
	if err != nil {
		return entrant{}, err
	}
	began := time.Now()
	parts := fmt.Sprint(one.Peers, one.Shard)
	if data[parts] == nil {
		if data[parts], err = simulate.PrepareAll(ctx, one.Settings, one.Peers); err != nil {
			return entrant{}, err
		}
	}
	fmt.Fprintf(progress, "%s: %s\n", in.name, by.name)
	result, err := data[parts].Train(ctx, one, world, func(simulation *peertest.Simulation) {
		if in.churn {
			comeAndGo := churn(one.Seed, one.Peers, one.Expected(simulation.Work))
			simulation.World.Changes = append(simulation.World.Changes, comeAndGo...)
		}
	})
	if err != nil {
		return entrant{}, err
	}
	e := entrant{Name: by.name, Result: result, StepSeconds: one.StepTime.Seconds()}
	e.WallSeconds = time.Since(began).Seconds()
	epochs := float64(e.Steps) * float64(one.Pictures()) / float64(data[parts].First.Data.Total) / float64(one.StepsOfBatch())
	e.SecondsPerEpoch, e.epochs = e.Seconds/epochs, epochs
	return e, nil
}
