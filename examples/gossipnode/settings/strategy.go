package settings

import (
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
	StrategyADPSGD    = "adpsgd"
	strategyDPSGD     = "dpsgd"
	StrategyAllReduce = "allreduce"
	strategyDiLoCo    = "diloco"
	strategyLocalSGD  = "local-sgd"
	StrategyBSP       = "ps-bsp"
	StrategyASP       = "ps-asp"
	StrategySSP       = "ps-ssp"
	StrategyDSSP      = "ps-dssp"
	StrategyAlone     = "alone"
)

func Strategies() []string {
	return []string{
		StrategyADPSGD, strategyDPSGD, StrategyAllReduce, strategyDiLoCo, strategyLocalSGD, StrategyBSP, StrategyASP, StrategySSP, StrategyDSSP, StrategyAlone,
	}
}

// Servers are the strategies with a parameter server.
func Servers() []string {
	return []string{StrategyBSP, StrategyASP, StrategySSP, StrategyDSSP}
}

// Defaults of the most steps that a worker may be ahead of the slowest.
const (
	DefaultStaleness    = 3
	DefaultStalenessMax = 15
)

// StrategySettings choose the strategy of training together, and the settings of some strategies.
type StrategySettings struct {
	Strategy     string
	Topology     string
	Server       string
	Servers      int
	ServeOnly    bool // this peer serves, and does not train
	Factors      bool
	Staleness    int
	StalenessMax int
	Balance      bool
	GlobalBatch  int
	Activations  string // codec of what goes from stage to stage
	EndsStay     bool   // the first and the last stage stay with the data
}

func (s *StrategySettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Strategy, "strategy", StrategyADPSGD, cli.List(Strategies())+" (docs/TUNING.md says when)")
	flags.StringVar(&s.Topology, topologyFlag, "", "links between peers, the same for all: "+cli.List(Shapes())+" (default: exponential; with dpsgd ring); see gossipnode topology")
	flags.StringVar(&s.Server, ServerFlag, "", "ps-*: peer id of who serves the parameters, the same for all peers (default: the first of the flock); if it is lost another serves")
	flags.IntVar(&s.Servers, ServersFlag, 1, "ps-*: number of peers among which the parameters are divided, each of which serves its part, the same for all peers")
	flags.BoolVar(&s.ServeOnly, ServeOnlyFlag, false, "ps-*: serve parameters, before peers that train do, and do not train; in local the last --servers peers serve only")
	flags.BoolVar(&s.Factors, factorsFlag, false, "ps-*: send gradients of wide dense layers in two factors, where these are fewer bytes (codec raw). The rows of each batch are in them, and leave this peer")
	flags.IntVar(&s.Staleness, stalenessFlag, DefaultStaleness, "ps-ssp and ps-dssp: by how many steps a peer may be ahead of the slowest; with ps-dssp, by how many always")
	flags.IntVar(&s.StalenessMax, stalenessMaxFlag, DefaultStalenessMax, "ps-dssp: by how many steps a peer may be ahead of the slowest at most")
	flags.BoolVar(&s.Balance, balanceFlag, false, "work in proportion to speed: pictures of a step (allreduce, ps-bsp; --batch is the mean), steps between two exchanges (adpsgd; --every is the mean)")
	flags.IntVar(&s.GlobalBatch, GlobalBatchFlag, 0, "pictures in a step of all peers together, divided among those of the moment (ps-*, adpsgd: by speed); instead of --batch")
	flags.BoolVar(&s.EndsStay, EndsStayFlag, false, "--stages K, 3 or more: first and last stage stay with the data, and so do rows and labels; peers without data (--train-only) train the stages between")
	flags.StringVar(&s.Activations, activationsFlag, activationCodecs()[0], "--stages: codec of what goes from stage to stage, and back: "+cli.List(activationCodecs()))
}

// maxGlobalBatch bounds --global-batch: a peer alone takes it as one batch.
const maxGlobalBatch = 1 << 20

// The flags that only some strategies use.
const (
	topologyFlag     = "topology"
	ServerFlag       = "server"
	ServersFlag      = "servers"
	ServeOnlyFlag    = "serve-only"
	factorsFlag      = "factors"
	stalenessFlag    = "staleness"
	stalenessMaxFlag = "staleness-max"
	balanceFlag      = "balance"
	GlobalBatchFlag  = "global-batch"
)

// Shapes are the values of --topology.
func Shapes() (names []string) {
	for _, s := range topology.Shapes() {
		names = append(names, s.String())
	}
	return names
}

// Linked tells whether peers of the strategy speak over links of a shape.
func (s StrategySettings) Linked() bool {
	return s.Strategy == StrategyADPSGD || s.Strategy == strategyDPSGD || s.Strategy == StrategyAllReduce
}

// Shape is the shape of the links between peers; of an unknown name it is the default.
func (s StrategySettings) Shape() topology.Shape {
	shape, err := topology.ParseShape(s.Topology)
	if err != nil && s.Strategy == strategyDPSGD {
		return topology.Ring
	}
	return shape
}

// gradients tells whether peers average gradients rather than models.
func (s StrategySettings) gradients() bool {
	return s.Strategy == StrategyAllReduce || s.Local() || s.Serves()
}

// Overlaps tells whether peers send a part of a gradient while they compute the rest.
func (s StrategySettings) Overlaps() bool { return s.gradients() && !s.Local() }

// Local tells whether peers make steps of their own between two updates of the flock's model.
func (s StrategySettings) Local() bool {
	return s.Strategy == strategyDiLoCo || s.Strategy == strategyLocalSGD
}

// Serves tells whether one peer serves the parameters.
func (s StrategySettings) Serves() bool { return strings.HasPrefix(s.Strategy, "ps-") }

// Divides tells whether the pictures of a step are divided by speed.
func (s StrategySettings) Divides() bool {
	return s.GlobalBatch > 0 || s.Balance && s.Strategy != StrategyADPSGD
}

// Paced tells whether peers decide for themselves how often to exchange.
func (s StrategySettings) Paced() bool {
	return s.Strategy == StrategyADPSGD || s.Strategy == StrategyAlone
}

// faults are the errors in the settings of strategies.
func (s StrategySettings) faults() []error {
	var faults cli.Faults
	faults.Add(cli.OneOf("strategy", s.Strategy, Strategies()))
	if s.Topology != "" {
		_, err := topology.ParseShape(s.Topology)
		faults.If(err != nil, topologyFlag, "%q: want %s", s.Topology, cli.List(Shapes()))
	}
	faults.If(s.Topology != "" && !s.Linked(), topologyFlag, "is for %s, %s and %s: with --strategy %s leave it out", StrategyADPSGD, strategyDPSGD, StrategyAllReduce, s.Strategy)
	faults.If(s.Shape() == topology.Star && s.Strategy == StrategyAllReduce, topologyFlag, "a star that sums all gradients is what --strategy %s does: use that", StrategyBSP)
	bounded, dynamic := s.Strategy == StrategySSP || s.Strategy == StrategyDSSP, s.Strategy == StrategyDSSP
	faults.If(s.Server != "" && !s.Serves(), ServerFlag, "is for %s: with --strategy %s nobody serves the parameters", cli.List(Servers()), s.Strategy)
	faults.If(s.Server != "" && s.Serves() && !strings.HasPrefix(s.Server, PeerIDPrefix),
		ServerFlag, "%q: want a peer id, as keygen prints it: %s...", s.Server, PeerIDPrefix)
	faults.If(s.Servers != 1 && !s.Serves(), ServersFlag, "is for %s: with --strategy %s nobody serves the parameters", cli.List(Servers()), s.Strategy)
	faults.If(s.ServeOnly && !s.Serves(), ServeOnlyFlag, "is for %s: with --strategy %s nobody serves the parameters", cli.List(Servers()), s.Strategy)
	faults.If(s.Factors && !s.Serves(), factorsFlag, "is for %s: with --strategy %s no gradient is sent by itself", cli.List(Servers()), s.Strategy)
	faults.If(s.Servers < 1 || s.Servers > baseline.MaxServers, ServersFlag, "%d: want 1 to %d", s.Servers, baseline.MaxServers)
	faults.If(s.Servers != 1 && s.Server != "", ServerFlag, "names one server: with --%s leave it out, and the peers serve in turn", ServersFlag)
	faults.If(!bounded && s.Staleness != DefaultStaleness, stalenessFlag, "is for %s and %s: --strategy %s has no such bound", StrategySSP, StrategyDSSP, s.Strategy)
	faults.If(bounded && (s.Staleness < 0 || s.Staleness > baseline.MaxStaleness), stalenessFlag, "%d: want 0 to %d steps", s.Staleness, baseline.MaxStaleness)
	faults.If(!dynamic && s.StalenessMax != DefaultStalenessMax, stalenessMaxFlag, "is for %s: with --strategy %s leave it out", StrategyDSSP, s.Strategy)
	faults.If(dynamic && (s.StalenessMax < s.Staleness || s.StalenessMax > baseline.MaxStaleness),
		stalenessMaxFlag, "%d: want at least --staleness, which is %d, and at most %d", s.StalenessMax, s.Staleness, baseline.MaxStaleness)
	faults.If(s.GlobalBatch > 0 && s.Balance, balanceFlag, "leave it out: --%s divides the pictures of a step, by speed where the strategy allows for it", GlobalBatchFlag)
	faults.If(s.GlobalBatch < 0 || s.GlobalBatch > maxGlobalBatch, GlobalBatchFlag, "%d: want a number of pictures up to %d", s.GlobalBatch, maxGlobalBatch)
	faults.If(s.Balance && s.Strategy != StrategyAllReduce && s.Strategy != StrategyBSP && s.Strategy != StrategyADPSGD,
		balanceFlag, "is for %s, %s and %s: with --strategy %s leave it out", StrategyADPSGD, StrategyAllReduce, StrategyBSP, s.Strategy)
	return faults
}

// Machine returns a function that makes the algorithm, for peers with batches of so many
// pictures, and what makes an update if there are local steps. It returns nil for adpsgd, the
// default of package peer.
func (s StrategySettings) Machine(batch int, outer baseline.Outer) func(averaging.Config) (averaging.Machine, error) {
	if s.Strategy == StrategyADPSGD {
		return nil
	}
	return func(c averaging.Config) (averaging.Machine, error) {
		config := baseline.Config{Self: c.Self, Deadline: c.Deadline, Server: topology.PeerID(s.Server), GlobalBatch: s.GlobalBatch, ServeOnly: s.ServeOnly, Topology: s.Shape()}
		if s.Balance {
			config.Batch = batch
		}
		switch s.Strategy {
		case StrategyAlone:
			return baseline.Alone{}, nil
		case strategyDPSGD:
			return baseline.NewDPSGD(config)
		case StrategyAllReduce:
			return baseline.NewAllReduce(config)
		case strategyDiLoCo, strategyLocalSGD:
			return baseline.NewDiLoCo(config, outer)
		}
		gate, err := s.gate()
		if err != nil {
			return nil, err
		}
		if s.Servers > 1 {
			return baseline.NewParamServers(config, make([]topology.PeerID, s.Servers), gate)
		}
		return baseline.NewParamServer(config, gate)
	}
}

// ActivationCodec is the codec of --activations.
func (s StrategySettings) ActivationCodec() quant.Codec {
	codec, _ := quant.ByName(s.Activations) // Validate has checked it
	return codec
}

// gate decides when a worker of a parameter server may go on.
func (s StrategySettings) gate() (baseline.Gate, error) {
	switch s.Strategy {
	case StrategyASP:
		return baseline.ASP{}, nil
	case StrategySSP:
		return baseline.NewSSP(s.Staleness)
	case StrategyDSSP:
		return baseline.NewDSSP(s.Staleness, s.StalenessMax)
	}
	return baseline.BSP{}, nil
}
