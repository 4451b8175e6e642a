// Package search is the command search: it finds good settings for run or fit, on processes of this machine, with
// members elsewhere, or in virtual time. Package peer/search decides. Begin with file.go, then member.go.
package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/compare"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

const (
	defaultPeers = 4
	maxPeers     = 64
	maxSimulated = 1000
)

// options are the flags of search.
type options struct {
	settings.Settings
	Peers     int
	Simulate  bool
	Journal   string
	Resume    bool
	Out, Plot string
	shared    bool // all members are processes of this machine, with the same data
}

// Command makes the command search.
func Command(std cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "search SPACE.yaml",
		Short: "Find good settings of a training or a learner, by many trials of which most end early",
		Long: `Search tries settings of a space, each on some of the peers, and ends the worse ones
early: of those that have been trained up to a rung, one in so many goes on to the next
(asynchronous successive halving). It prints a table, and the best with --out as a file
for the --config of run or fit.`,
		Annotations: map[string]string{cli.Details: `Without --join or --listen, the peers are processes of this machine, which divide the data
among those that train a trial. With them this process is one member, and trains on --data of its own; the others come with the
same file. Nobody leads: all decide the same from what they tell each other. One that is
killed loses what it was training; another trains it again. With --simulate it all takes place in
virtual time.

With --journal FILE what is found is kept, models in a folder beside it; --resume goes on
with it. The file has the keys run (flags of run) or fit (flags of fit), space, method (asha,
random or grid), settings, points, steps, least, reduce, members, seed, and world (flags of
simulate); examples/gossipnode/search/example.yaml explains each.`},
		Example: `  gossipnode search examples/gossipnode/search/example.yaml --plot search.png --out best.yaml
  gossipnode search SPACE.yaml --journal search.json --resume
  gossipnode search SPACE.yaml --simulate --peers 8
  gossipnode search SPACE.yaml --data DIR --join 192.0.2.7:4001`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("search takes one file of a space, and %d are given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.load(cmd, args[0])
			if err != nil {
				return err
			}
			return o.run(s, cmd.Flags(), args[0], std)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *options) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.IntVar(&o.Peers, "peers", defaultPeers, "peers that search, on this machine or with --simulate")
	flags.BoolVar(&o.Simulate, "simulate", false, "search in virtual time")
	flags.StringVar(&o.Data, "data", "", "folder or file of this member's data, instead of that in the file")
	flags.StringVar(&o.Journal, "journal", "", "`FILE` to keep what is found in, and models in a folder beside it")
	flags.BoolVar(&o.Resume, "resume", false, "go on with what --journal has")
	flags.StringVar(&o.Out, "out", "", "`FILE` to write the best settings to, for --config")
	flags.StringVar(&o.Plot, "plot", "", "`FILE` to draw the score by step of each trial into, as .png or .svg")
	cli.Group(flags, "Search", "peers", "simulate", "journal", "resume", "out", "plot", "data")
	o.RegisterSums(flags)
	cli.Group(flags, "Members", "listen", "join")
	cli.TakeFile(flags)
}

// load reads flags and file, and returns all that is wrong with them.
func (o *options) load(cmd *cobra.Command, path string) (*sought, error) {
	from, err := o.Load(cmd)
	if err != nil {
		return nil, err
	}
	elsewhere := from.Source("listen") != cli.FromDefault || len(o.Join) > 0
	var faults cli.Faults
	faults.Add(o.Network.Faults()...)
	most := maxPeers
	if o.Simulate {
		most = maxSimulated
		faults.If(elsewhere, "simulate", "is for virtual time: leave out --listen and --join")
		faults.If(o.Journal != "", "journal", "is not for --simulate, whose results a seed gives again")
	}
	faults.Add(cli.Within("peers", o.Peers, 1, most), compare.PlotFault("plot", o.Plot), cli.Unwritable("out", o.Out))
	if !o.Report {
		faults.Add(journalFault(o.Journal, o.Resume))
		faults.If(elsewhere && from.Source("peers") != cli.FromDefault, "peers", "are those of this machine: leave it out where --listen or --join are given")
	}
	if o.shared = o.Report; !elsewhere {
		o.Listen = nil
	}
	s, err := read(path, o.Data)
	if err != nil {
		faults.Add(fmt.Errorf("reading the space: %s: %v", path, err)) // its faults are of no flag of this command
	}
	return s, from.Usage(faults...)
}

// run searches, and keeps and prints the result.
func (o *options) run(s *sought, flags *pflag.FlagSet, path string, std cli.Streams) (err error) {
	if o.Report {
		parent, _, _ := cli.UntilParentGone(context.Background(), std.In)
		ctx, release := cli.UntilSignal(parent, func() { os.Exit(cli.ExitFailed) })
		defer release()
		tell := watch.LineReporter(std.Out)
		r, err := o.asMember(ctx, s, tell, std)
		tell(outcome(r, err))
		if err != nil {
			return cli.Reported{Cause: err}
		}
		return nil
	}
	if o.Resume { // says once what all would say
		if _, _, err := s.resumed(o.Journal, func(string) {}); err != nil {
			return cli.Config(err)
		}
	}
	var r Result
	switch {
	case o.Simulate:
		ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
		defer release()
		r, err = simulated(ctx, s, o.Peers, std.Err)
	case o.Listen == nil && len(o.Join) == 0:
		r, err = o.local(s, flags, path, std)
	default:
		ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
		defer release()
		r, err = o.asMember(ctx, s, watch.TextReporter(std.Err), std)
	}
	if errors.Is(err, cli.ErrInterrupted) && o.Journal != "" {
		return fmt.Errorf("%w: what was found is in %s: go on with --resume", err, o.Journal)
	}
	if err != nil {
		return err
	}
	return errors.Join(s.keep(&r, o.Out, o.Plot), cli.Print(r, o.JSON, std))
}

// asMember searches as one member.
func (o *options) asMember(ctx context.Context, s *sought, tell watch.Reporter, std cli.Streams) (r Result, err error) {
	m := &member{sought: s, options: *o, tell: tell, log: o.NewLog(std.Err)}
	if o.Resume {
		warn := func(text string) { tell(watch.Report{Kind: watch.ReportNews, Said: text}) }
		if m.report.Results, m.models, err = s.resumed(o.Journal, warn); err != nil {
			return r, cli.Config(err)
		}
	}
	parts := 1
	if o.shared {
		parts = min(max(s.config.Members, 1), o.MinPeers)
	}
	if err := s.open(ctx, s.all(nil), parts); err != nil {
		return r, err
	}
	if m.network, err = join(ctx, *o, s, std.Err, tell); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	m.begin()
	tell(watch.Report{Kind: watch.ReportReady, Said: "searching"}) // from now on the others go on if one fails
	return m.run(ctx)
}

// local searches as several processes of this machine.
func (o *options) local(s *sought, flags *pflag.FlagSet, path string, std cli.Streams) (Result, error) {
	ctx, kill, release := supervise.UntilSignal(false)
	defer release()
	peers := supervise.New(supervise.Config{
		Launch: func(number int, join []string, events chan<- supervise.Event) (*supervise.Member, error) {
			args := []string{"search", path, "--report", "--listen=" + settings.Loopback, fmt.Sprintf("--min-peers=%d", o.Peers)}
			for _, address := range join {
				args = append(args, "--join="+address)
			}
			own := cli.Arguments(flags, "report", "listen", "join", "min-peers", "json", "out", "plot", "peers", cli.ConfigFlag)
			return supervise.Process(number, o.Peers, append(args, own...), events)
		},
		Line: func(number int, r *watch.Report) string {
			if number > 0 || r.Kind == watch.ReportStarted {
				return ""
			}
			return r.Said
		},
		Display: watch.NewDisplay(std.Err, fmt.Sprintf("%s: %s, %s", s.Method, cli.Plural(uint64(len(s.list)), "setting"), cli.Plural(uint64(o.Peers), "peer")), watch.Doing{Begun: time.Now(), Counted: "result", Idle: "waiting for others"}),
	}, o.Peers)
	peers.Run(ctx, kill)
	for _, row := range peers.Rows {
		if row.Done != nil {
			var r Result
			if err := json.Unmarshal(row.Done.Fitted, &r); err != nil {
				return r, fmt.Errorf("reading the result of a peer: %w", err)
			}
			return r, nil
		}
	}
	return Result{}, cmp.Or(peers.Fault, supervise.ErrAllKilled)
}

// outcome is the last report of a peer.
func outcome(r Result, err error) watch.Report {
	if err == nil {
		var text []byte
		if text, err = json.Marshal(r); err == nil {
			return watch.Report{Kind: watch.ReportResult, Fitted: text}
		}
	}
	return watch.Failed(err)
}
