package simulate

import (
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// FirstServes is --server where none is named: the first of the flock serves.
const FirstServes = -1

// servingSettings name who serves the parameters in a simulated world, where peers have
// numbers in place of the ids that --server of run takes.
type servingSettings struct{ Serving int }

func (s *servingSettings) register(flags *pflag.FlagSet) {
	flags.IntVar(&s.Serving, settings.ServerFlag, FirstServes, "ps-*: number of the peer that serves the parameters, from 0; if it is lost, the run halts (default: the first of the flock)")
	flags.Lookup(settings.ServerFlag).DefValue = "" // -1 says nothing to a reader
}

// serverFault is what is wrong with --server.
func serverFault(s *Settings) error {
	switch {
	case s.Serving == FirstServes:
		return nil
	case !s.Serves():
		return cli.Faultf(settings.ServerFlag, "is for %s: with --strategy %s nobody serves the parameters", cli.List(settings.Servers()), s.Strategy)
	}
	return cli.Within(settings.ServerFlag, s.Serving, 0, s.Peers-1)
}

// simulatedMachine makes the algorithm of simulated peers.
func simulatedMachine(s *Settings) func(averaging.Config) (averaging.Machine, error) {
	strategy := s.StrategySettings
	if s.Serving != FirstServes {
		strategy.Server = string(peertest.SimulatedID(s.Serving))
	}
	return strategy.Machine(s.Batch)
}
