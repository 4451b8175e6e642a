package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// Names of the strategies.
const (
	strategyADPSGD    = "adpsgd"
	strategyDPSGD     = "dpsgd"
	strategyAllReduce = "allreduce"
	strategyBSP       = "ps-bsp"
	strategyASP       = "ps-asp"
	strategySSP       = "ps-ssp"
	strategyDSSP      = "ps-dssp"
	strategyAlone     = "alone"
)

func strategies() []string {
	return []string{
		strategyADPSGD, strategyDPSGD, strategyAllReduce, strategyBSP, strategyASP, strategySSP, strategyDSSP, strategyAlone,
	}
}

// servers are the strategies with a peer that serves.
func servers() []string {
	return []string{strategyBSP, strategyASP, strategySSP, strategyDSSP}
}

// Defaults of how far apart the workers of a server may be, in steps.
const (
	defaultStaleness    = 3
	defaultStalenessMax = 15
)

// strategySettings say how peers train together, and what only some ways of it know.
type strategySettings struct {
	Strategy     string
	Server       string
	Staleness    int
	StalenessMax int
	Balance      bool
}

func (s *strategySettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Strategy, "strategy", strategyADPSGD, "how peers train together: "+cli.List(strategies())+" (docs/TUNING.md says when)")
	flags.StringVar(&s.Server, serverFlag, "", "ps-*: peer id of who serves the parameters, the same for all peers (default: the peers elect one, and another if it is lost)")
	flags.IntVar(&s.Staleness, stalenessFlag, defaultStaleness, "ps-ssp and ps-dssp: by how many steps a peer may be ahead of the slowest; with ps-dssp, by how many always")
	flags.IntVar(&s.StalenessMax, stalenessMaxFlag, defaultStalenessMax, "ps-dssp: by how many steps a peer may be ahead of the slowest at most")
	flags.BoolVar(&s.Balance, balanceFlag, false, "allreduce and ps-bsp: share the pictures of a step out as the peers are fast, --batch being their mean; adpsgd: have each peer take --every times its speed, beside the mean of all, as steps between two exchanges")
}

// The flags that not every strategy knows.
const (
	serverFlag       = "server"
	stalenessFlag    = "staleness"
	stalenessMaxFlag = "staleness-max"
	balanceFlag      = "balance"
)

// gradients tells whether peers average gradients rather than models.
func (s strategySettings) gradients() bool {
	return s.Strategy == strategyAllReduce || s.serves()
}

// serves tells whether one peer serves the parameters.
func (s strategySettings) serves() bool { return strings.HasPrefix(s.Strategy, "ps-") }

// divides tells whether the pictures of a step are divided by speed.
func (s strategySettings) divides() bool { return s.Balance && s.Strategy != strategyADPSGD }

// paced tells whether peers decide for themselves how often to exchange.
func (s strategySettings) paced() bool {
	return s.Strategy == strategyADPSGD || s.Strategy == strategyAlone
}

// faults are what is wrong with the settings that belong to strategies.
func (s strategySettings) faults() []error {
	faults := []error{cli.OneOf("strategy", s.Strategy, strategies())}
	fault := func(flag, format string, args ...any) { faults = append(faults, cli.Faultf(flag, format, args...)) }
	switch {
	case s.Server == "":
	case !s.serves():
		fault(serverFlag, "is for %s: with --strategy %s nobody serves the parameters", cli.List(servers()), s.Strategy)
	case !strings.HasPrefix(s.Server, peerIDPrefix):
		fault(serverFlag, "%q: want a peer id, as keygen prints it: %s...", s.Server, peerIDPrefix)
	}
	switch bounded := s.Strategy == strategySSP || s.Strategy == strategyDSSP; {
	case s.Staleness != defaultStaleness && !bounded:
		fault(stalenessFlag, "is for %s and %s: --strategy %s has no such bound", strategySSP, strategyDSSP, s.Strategy)
	case s.Staleness < 0 || s.Staleness > baseline.MaxStaleness:
		fault(stalenessFlag, "%d: want 0 to %d steps", s.Staleness, baseline.MaxStaleness)
	}
	switch {
	case s.StalenessMax != defaultStalenessMax && s.Strategy != strategyDSSP:
		fault(stalenessMaxFlag, "is for %s: with --strategy %s leave it out", strategyDSSP, s.Strategy)
	case s.Strategy == strategyDSSP && (s.StalenessMax < s.Staleness || s.StalenessMax > baseline.MaxStaleness):
		fault(stalenessMaxFlag, "%d: want at least --staleness, which is %d, and at most %d", s.StalenessMax, s.Staleness, baseline.MaxStaleness)
	}
	if s.Balance && s.Strategy != strategyAllReduce && s.Strategy != strategyBSP && s.Strategy != strategyADPSGD {
		fault(balanceFlag, "is for %s, %s and %s: with --strategy %s leave it out", strategyADPSGD, strategyAllReduce, strategyBSP, s.Strategy)
	}
	return faults
}

// combinations are what is wrong with settings that the strategy has no use for.
func (s trainSettings) combinations() []error {
	var faults []error
	fault := func(flag, format string, args ...any) { faults = append(faults, cli.Faultf(flag, format, args...)) }
	if !s.paced() {
		if s.Every != everyAuto && s.Every != "1" {
			fault("every", "%q: with --strategy %s peers talk in every step: leave it out, or use --strategy %s", s.Every, s.Strategy, strategyADPSGD)
		}
		if s.Budget != "" {
			fault("budget", "is for %s: with --strategy %s peers talk in every step; a coarser --codec makes that cheaper", strategyADPSGD, s.Strategy)
		}
		if s.Consensus {
			fault("consensus", "is for %s: with --strategy %s peers talk in every step", strategyADPSGD, s.Strategy)
		}
	}
	if pace, err := s.pace(); err == nil && s.Balance && s.Strategy == strategyADPSGD && pace.Every == 0 {
		fault(balanceFlag, "scales a number of steps: give one with --every, as in --every 8 (with auto, each peer finds its own)")
	}
	if policy, err := s.policy(); err == nil && s.gradients() && !oneWay(policy) {
		flag := codecFlag
		if s.Policy != "" {
			flag = policyFlag
		}
		fault(flag, "a lattice code needs a model near to it at the other end, and --strategy %s sends gradients: want raw, bf16, fp16 or int8", s.Strategy)
	}
	return faults
}

// oneWay tells whether a policy has only codecs that need nothing at the other end.
func oneWay(policy quant.Policy) bool {
	names := []string{policy.Codec, policy.Exact}
	for _, rule := range policy.Rules {
		names = append(names, rule.Codec)
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		codec, err := quant.ByName(name)
		return name == quant.Auto || err == nil && codec.Lattice != (quant.Lattice{})
	})
}

// machine makes the algorithm, for peers with batches of so many pictures; nil is the
// one that a peer has by itself.
func (s strategySettings) machine(batch int) func(averaging.Config) (averaging.Machine, error) {
	if s.Strategy == strategyADPSGD {
		return nil
	}
	return func(c averaging.Config) (averaging.Machine, error) {
		config := baseline.Config{Self: c.Self, Deadline: c.Deadline, Server: topology.PeerID(s.Server)}
		if s.divides() {
			config.Batch = batch
		}
		switch s.Strategy {
		case strategyDPSGD:
			return baseline.NewDPSGD(config)
		case strategyAllReduce:
			return baseline.NewAllReduce(config)
		case strategyBSP:
			return baseline.NewParamServer(config, baseline.BSP{})
		case strategyASP:
			return baseline.NewParamServer(config, baseline.ASP{})
		case strategySSP:
			gate, err := baseline.NewSSP(s.Staleness)
			if err != nil {
				return nil, err
			}
			return baseline.NewParamServer(config, gate)
		case strategyDSSP:
			gate, err := baseline.NewDSSP(s.Staleness, s.StalenessMax)
			if err != nil {
				return nil, err
			}
			return baseline.NewParamServer(config, gate)
		}
		return baseline.Alone{}, nil
	}
}
