package main

import (
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// elected is --server where peers elect who serves.
const elected = -1

// servingSettings name who serves the parameters in a simulated world, where peers have
// numbers in place of the ids that --server of run takes.
type servingSettings struct{ Serving int }

func (s *servingSettings) register(flags *pflag.FlagSet) {
	flags.IntVar(&s.Serving, serverFlag, elected, "ps-*: number of the peer that serves the parameters, from 0; if it is lost, the run fails (default: the peers elect one, and another if it is lost)")
	flags.Lookup(serverFlag).DefValue = "" // -1 says nothing to a reader
}

// serverFault is what is wrong with --server.
func (s *simulateSettings) serverFault() error {
	switch {
	case s.Serving == elected:
		return nil
	case !s.serves():
		return cli.Faultf(serverFlag, "is for %s: with --strategy %s nobody serves the parameters", cli.List(servers()), s.Strategy)
	}
	return cli.Within(serverFlag, s.Serving, 0, s.Peers-1)
}

// simulatedMachine makes the algorithm of simulated peers.
func (s *simulateSettings) simulatedMachine() func(averaging.Config) (averaging.Machine, error) {
	strategy := s.strategySettings
	if s.Serving != elected {
		strategy.Server = string(peertest.SimulatedID(s.Serving))
	}
	return strategy.machine(s.Batch)
}
