package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// load resolves the flags of a command that takes settings. What they add up to
// is yet to be checked with validate.
func (s *settings) load(cmd *cobra.Command) (cli.Origins, error) {
	sources, err := cli.Resolve(cmd)
	if err != nil {
		return nil, err
	}
	return sources, s.settle(sources)
}

// settle lets --steps and --epochs, of which only one can hold, hide each other
// as a flag hides a line of the file, and refuses zeros that somebody wrote: for
// these flags zero stands for a default.
func (s *settings) settle(sources cli.Origins) error {
	s.settlePolicy(sources)
	switch steps, epochs := sources.Source("steps"), sources.Source("epochs"); {
	case steps > epochs:
		s.Epochs, sources["epochs"] = 0, cli.Origin{}
	case epochs > steps:
		s.Steps, sources["steps"] = 0, cli.Origin{}
	}
	for name, zero := range map[string]bool{"steps": s.Steps == 0, "epochs": s.Epochs == 0, "lr": s.LR == 0} {
		if zero && sources.Source(name) != cli.FromDefault {
			return sources.Usage(cli.Faultf(name, "0: want a positive number"))
		}
	}
	return nil
}
