// Package local is the command local: several peers on this machine, as processes or
// goroutines. Begin with flock.go.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/history"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
)

const (
	defaultPeers = 4
	maxPeers     = 1000 // each is a process
)

// Command makes the command local.
func Command(std cli.Streams) *cobra.Command {
	var (
		s         settings.Settings
		peers     int
		holders   int
		inProcess bool
	)
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Train as several peers on this machine",
		Long: `Local starts several peers on this machine, each with its own part of the data,
shows how they get on, and ends when they have done the work. They are separate
processes that share nothing: kill one, and the others go on.`,
		Annotations: map[string]string{cli.Details: `It takes the flags of run, but --key, --allow and --part: each peer gets an identity
of its own, and its own part, port and subfolder of --checkpoint. A port in --listen or
--metrics is that of the first peer; the others take those that follow.

They begin to train together. The result counts each exchange once, with what
peers that were lost had done when last heard of; consensus_distance is the
root mean square distance from their mean of the models that peers have ended with,
measured at the end over those that finished (within some percent, as consensus_peers
tells of how many); null where that are fewer than two.

Ctrl-C asks all of them to leave in good order; a second one kills them.`},
		Example: `  gossipnode local
  gossipnode local --peers 8 --dataset mnist --data DIR --epochs 3 --json
  gossipnode local --strategy alone --model softmax
  gossipnode local --dataset csv --data FILE --target 'arr_delay>15'`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			if err := adapt(&s, peers, holders, sources); err != nil {
				return err
			}
			if err := s.CheckFolders(); err != nil {
				return cli.Config(err)
			}
			return runLocal(s, peers, holders, inProcess, std)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&peers, "peers", defaultPeers, "number of peers")
	flags.IntVar(&holders, "holders", 0, "peers beside those that hold the data, in equal parts, and do not train; the others then hold none (--hops, --hand-out)")
	flags.BoolVar(&inProcess, "in-process", false, "peers are goroutines of this process instead of processes")
	cli.Group(flags, "Peers", "peers")
	s.Register(flags)
	cli.OnlyHelpAll(flags, "key", "part")
	for name, value := range map[string]string{"listen": settings.Loopback, "min-peers": "all of them"} {
		flags.Lookup(name).DefValue = value // shown by --help; adapt sets the value
	}
	cli.TakeFile(flags)
	return cmd
}

// adapt checks the settings of a local run. Where the defaults of local
// differ from run's, it sets those of local.
func adapt(s *settings.Settings, peers, holders int, sources cli.Origins) error {
	if peers < 1 || peers > maxPeers {
		return sources.Usage(cli.Faultf("peers", "%d: want 1 to %d", peers, maxPeers))
	}
	var faults cli.Faults
	faults.If(holders < 0 || holders > maxPeers, "holders", "%d: want 0 to %d", holders, maxPeers)
	faults.If(s.EndsStay, settings.EndsStayFlag, "is for run: give each peer its data, and --train-only to those without")
	faults.If(s.Hold, "hold", "is for run: give --holders with the number of those that hold the data")
	faults.If(s.TrainOnly || s.HoldAndTrain, "train-only", "and --hold-and-train are for run: with --holders, the other peers train only")
	faults.If(holders > 0 && s.Strategy == settings.StrategyAlone, "holders", "%d: with --strategy %s nobody takes what they hold", holders, s.Strategy)
	faults.If(holders > 0 && s.TaskFile != "", "tasks", "are for peers that have all the data: leave out --holders")
	if faults = append(faults, s.Unused(holders > 0, holders > 0)...); len(faults) > 0 {
		return sources.Usage(faults...)
	}
	for _, name := range []string{"key", "part", "allow"} {
		if sources.Source(name) != cli.FromDefault {
			return sources.Usage(cli.Faultf(name, "is for run: local gives each peer its own"))
		}
	}
	if s.Server != "" {
		return sources.Usage(cli.Faultf(settings.ServerFlag, "is for run: local gives each peer a new identity, so leave it out, and the first of the flock serves"))
	}
	if sources.Source("listen") == cli.FromDefault {
		s.Listen = []string{settings.Loopback}
	}
	if sources.Source("min-peers") == cli.FromDefault || holders > 0 && s.IsTable() {
		s.MinPeers = peers + holders
	}
	if s.ServeOnly && s.Servers >= peers {
		return sources.Usage(cli.Faultf(settings.ServeOnlyFlag, "%d of %d peers would serve only: one must train", s.Servers, peers))
	}
	s.Part = fmt.Sprintf("0/%d", max(cmp.Or(holders, peers), 1))
	if err := s.Validate(sources); err != nil {
		return err
	}
	for name, addresses := range map[string][]string{"listen": s.Listen, "metrics": {s.Metrics}} {
		if _, err := nextPorts(addresses, peers+holders-1); err != nil {
			return fmt.Errorf("%s %w", sources.Name(name), err)
		}
	}
	return nil
}

// forMember is the settings of the peer with this number. Holders have the numbers after the peers that train.
func forMember(s settings.Settings, number, peers, holders int, join []string) settings.Settings {
	trainers := peers
	if s.ServeOnly {
		trainers -= s.Servers
	}
	s.ServeOnly = number >= trainers && number < peers
	s.Part = fmt.Sprintf("%d/%d", number%trainers, trainers)
	if s.Hold, s.TrainOnly = number >= peers, holders > 0 && number < peers; s.Hold {
		s.Part, s.Hops = fmt.Sprintf("%d/%d", number-peers, holders), 1
	} else if s.TrainOnly {
		s.Part, s.Shard, s.Data, s.HandOut = "", settings.ShardIID, "", settings.HandOuts()[0]
	}
	s.Join = join
	s.JSON = false
	s.Listen, _ = nextPorts(s.Listen, number) // adapt has checked it
	metrics, _ := nextPorts([]string{s.Metrics}, number)
	s.Metrics = metrics[0]
	watchMember(&s, number)
	if s.IsTable() {
		s.Pipeline = s.PipelineFile() // all peers share one file
	}
	if s.Checkpoint != "" {
		s.Checkpoint = filepath.Join(s.Checkpoint, fmt.Sprintf("peer-%d", number))
	}
	return s
}

// nextPorts adds by to the ports of addresses. It keeps port 0, with which the
// system chooses one, and empty addresses.
func nextPorts(addresses []string, by int) ([]string, error) {
	next := make([]string, len(addresses))
	for i, address := range addresses {
		if address == "" {
			continue
		}
		host, text, err := net.SplitHostPort(address)
		if err != nil {
			return nil, cli.Usagef("%q: want host:port, from which local can count up", address)
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port > 0 && int(port)+by > 1<<16-1 {
			return nil, cli.Usagef("%q: want a port from 0 to 65535, for the last peer too", address)
		}
		if port > 0 {
			port += uint64(by)
		}
		next[i] = net.JoinHostPort(host, strconv.FormatUint(port, 10))
	}
	return next, nil
}

// runLocal runs the peers and prints their common result.
func runLocal(s settings.Settings, peers, holders int, inProcess bool, std cli.Streams) error {
	start := processes(peers + holders)
	if inProcess {
		var source *rows.Source
		if s.IsTable() {
			var err error
			if source, err = rows.Open(context.Background(), s.Rows(), true); err != nil {
				return err
			}
		}
		start = goroutines(source)
	}
	if err := history.Begin(s.History, s.Trace, s.Checkpoint != ""); err != nil {
		return cli.Config(err)
	}
	ctx, kill, release := supervise.UntilSignal(inProcess)
	defer release()
	forget, err := drawOperator(&s)
	defer forget()
	if err != nil {
		return err
	}
	if stays := s.Stays(std.Err); stays {
		s.DashboardStay = settings.StayYes
	} else {
		s.DashboardStay = settings.StayNo
	}
	learn := "learn"
	if peers == 1 {
		learn = "learns"
	}
	title := fmt.Sprintf("%s: %s %s %s with %s, %s, %s", s.Run, cli.Plural(uint64(peers), "peer"), learn, s.Dataset, s.Model, s.Strategy, s.CodecName())
	if holders > 0 {
		title += fmt.Sprintf(", on the data of %s", cli.Plural(uint64(holders), "holder"))
	}
	f := newFlock(s, peers, holders, start, std.Err, title)
	total, err := f.run(ctx, kill)
	if total.Peers > 0 {
		if printed := cli.Print(total, s.JSON, std); printed != nil {
			err = errors.Join(printed, err)
		}
	}
	f.Stay(ctx, kill)
	return err
}
