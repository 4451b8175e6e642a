package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	defaultPeers = 4
	loopback     = "127.0.0.1:0"
	// localLogLevel: what peers say in ordinary times is for who watches one.
	localLogLevel = "warn"
)

// newLocal makes the command that is several peers on this machine.
func newLocal(std cli.Streams) *cobra.Command {
	var (
		s         settings
		peers     int
		inProcess bool
	)
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Train as several peers on this machine",
		Long: `Local starts several peers on this machine, each with its own part of the data,
shows how they get on, and ends when they have done the work. They are separate
processes that share nothing: kill one, and the others go on.

It takes the flags of run, but --key, --allow and --part: each peer gets an identity
of its own, and its own part, port and subfolder of --checkpoint. A port in --listen or
--metrics is that of the first peer; the others take those that follow.

They begin to train together. The result counts each exchange once, with what
peers that were lost had done when last heard of; consensus_distance is the mean
of what the peers that finished estimate, as measured by their last exchanges.

Ctrl-C asks all of them to leave in good order; a second one kills them.`,
		Example: `  gossipnode local
  gossipnode local --peers 8 --dataset mnist --data DIR --epochs 3 --json
  gossipnode local --strategy alone --model softmax
  gossipnode local --config FILE`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.load(cmd)
			if err != nil {
				return err
			}
			if err := s.adaptToLocal(peers, sources); err != nil {
				return err
			}
			if err := s.checkFolders(); err != nil {
				return err
			}
			return runLocal(s, peers, inProcess, std)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&peers, "peers", defaultPeers, "number of peers")
	flags.BoolVar(&inProcess, "in-process", false, "peers are goroutines of this process instead of processes")
	s.register(flags)
	for name, value := range map[string]string{"listen": loopback, "min-peers": "all of them", "log-level": localLogLevel} {
		flags.Lookup(name).DefValue = value // for --help; adaptToLocal sees to it
	}
	flags.String(cli.ConfigFlag, "", "YAML file with the same keys as the flags")
	return cmd
}

// adaptToLocal checks the settings of a local run, and makes them those of its
// first peer where the defaults of local are others than run's.
func (s *settings) adaptToLocal(peers int, sources cli.Origins) error {
	if peers < 1 || peers > maxPeers {
		return sources.Usage(cli.Faultf("peers", "%d: want 1 to %d", peers, maxPeers))
	}
	for _, name := range []string{"key", "part", "allow"} {
		if sources.Source(name) != cli.FromDefault {
			return sources.Usage(cli.Faultf(name, "is for run: local gives each peer its own"))
		}
	}
	if s.Server != "" {
		return sources.Usage(cli.Faultf(serverFlag, "is for run: local gives each peer a new identity, so leave it out, and the peers elect a server"))
	}
	if sources.Source("listen") == cli.FromDefault {
		s.Listen = []string{loopback}
	}
	if sources.Source("min-peers") == cli.FromDefault {
		s.MinPeers = peers
	}
	if sources.Source("log-level") == cli.FromDefault {
		s.LogLevel = localLogLevel
	}
	s.Part = fmt.Sprintf("0/%d", peers)
	if err := s.validate(sources); err != nil {
		return err
	}
	if _, err := nextPorts(s.Listen, peers-1); err != nil {
		return fmt.Errorf("%s %w", sources.Name("listen"), err)
	}
	if _, err := nextPorts([]string{s.Metrics}, peers-1); err != nil {
		return fmt.Errorf("%s %w", sources.Name("metrics"), err)
	}
	return nil
}

// forMember is the settings of one peer of several.
func (s settings) forMember(number, peers int, join []string) settings {
	s.Part = fmt.Sprintf("%d/%d", number, peers)
	s.Join = join
	s.JSON = false
	s.Listen, _ = nextPorts(s.Listen, number) // adaptToLocal has seen to it
	if s.Metrics != "" {
		next, _ := nextPorts([]string{s.Metrics}, number)
		s.Metrics = next[0]
	}
	s.watchMember(number)
	if s.Checkpoint != "" {
		s.Checkpoint = filepath.Join(s.Checkpoint, fmt.Sprintf("peer-%d", number))
	}
	return s
}

// nextPorts are addresses whose ports are by so many higher; port 0, which lets
// the system choose, stays, as does an address that is empty.
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
func runLocal(s settings, peers int, asGoroutines bool, std cli.Streams) error {
	var start launcher = inProcess{}
	kill := make(chan struct{})
	killed := func() { os.Exit(cli.ExitFailed) }
	if !asGoroutines {
		children, err := newProcesses(peers)
		if err != nil {
			return err
		}
		start, killed = children, func() { close(kill) }
	}
	ctx, release := cli.UntilSignal(context.Background(), killed)
	defer release()
	forget, err := s.drawOperator()
	if err != nil {
		return err
	}
	defer forget()
	learn := "learn"
	if peers == 1 {
		learn = "learns"
	}
	title := fmt.Sprintf("%s: %s %s %s with %s, %s, %s", s.Run, cli.Plural(uint64(peers), "peer"), learn, s.Dataset, s.Model, s.Strategy, s.codecName())
	total, err := newFlock(s, peers, start, newDisplay(std.Err, title)).run(ctx, kill)
	if total.Peers > 0 {
		if printed := printResult(total, s.JSON, std); printed != nil {
			return printed
		}
	}
	return err
}
