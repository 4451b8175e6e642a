package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/quant"
)

// settings are the flags of run, which local takes too. The zero values of
// Epochs, LR and Warmup stand for defaults that depend on other settings.
type settings struct {
	networkSettings
	dataSettings
	trainSettings
	outputSettings
	watchSettings
}

// networkSettings say who the peer is and whom it trains with.
type networkSettings struct {
	Listen       []string
	Join         []string
	Key          string
	Allow        string
	RunKey       string
	Operator     string
	Run          string
	MinPeers     int
	MinPeersWait time.Duration
	Membership   string
	GossipKey    string
	Relay        []string
	RelayService bool
	HolePunch    bool
	Unreachable  string
	Lanes        int
}

// dataSettings say what is learned from what.
type dataSettings struct {
	Dataset   string
	Data      string
	Shard     string
	Part      string
	Augment   string
	Normalize string
	Memory    int
	Model     string
	Init      string
	Seed      uint64
}

// trainSettings say how it is learned.
type trainSettings struct {
	Steps     uint64
	Epochs    float64
	Batch     int
	LR        float64
	Optimizer string
	Schedule  string
	Warmup    float64
	Codec     string
	Every     string
	Budget    string
	Consensus bool
	Quantized string
	Policy    string
	strategySettings
}

// outputSettings say what is written where.
type outputSettings struct {
	checkpointSettings
	finalSettings
	Metrics  string
	Pprof    bool
	JSON     bool
	Verbose  bool
	LogLevel string
	// Report makes a peer tell a parent process what it does: JSON lines on
	// standard output, a first step when a line comes on standard input, and an end
	// when that ends.
	Report bool
}

// Names that flags take, beside those of packages zoo and quant.
const (
	optimizerSGD      = "sgd"
	optimizerMomentum = "momentum"
	optimizerAdamW    = "adamw"

	scheduleCosine   = "cosine"
	scheduleConstant = "constant"
	scheduleStep     = "step"

	everyAuto   = "auto"
	augmentAuto = "auto"
)

func optimizers() []string { return []string{optimizerSGD, optimizerMomentum, optimizerAdamW} }
func schedules() []string  { return []string{scheduleCosine, scheduleConstant, scheduleStep} }
func logLevels() []string  { return []string{"debug", "info", "warn", "error"} }

// Defaults. Those of the training are the quickest that serve all data sets:
// glyphs end well above 97 %, and on fashion-mnist a higher rate is too high.
const (
	defaultRun          = "murmuration"
	defaultMemory       = dataset.DefaultMemory >> 20
	defaultListen       = "0.0.0.0:0"
	defaultMinPeersWait = 30 * time.Second
	defaultEpochs       = 4.0
	defaultBatch        = 32
	defaultRateSGD      = 0.1
	defaultRateMomentum = 0.03
	defaultRateAdamW    = 0.001
	defaultWarmup       = 0.05
)

// register adds the flags to a command's; their values land in s.
func (s *settings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.networkSettings.register(flags)
	s.dataSettings.register(flags)
	s.trainSettings.register(flags)
	s.outputSettings.register(flags)
	s.watchSettings.register(flags)
}

func (s *networkSettings) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.Listen, "listen", []string{defaultListen}, "host:port or multiaddr to listen on; repeatable")
	flags.StringArrayVar(&s.Join, "join", nil, "host:port or multiaddr of a member to join; repeatable")
	flags.StringVar(&s.Key, "key", "", "file of the identity, made by keygen (default: a new one each time)")
	flags.StringVar(&s.Allow, "allow", "", "file of the ids of the peers that may take part, one a line, read again when it changes (default: all)")
	flags.StringVar(&s.RunKey, "run-key", "", "file of a key that all peers of the run share, made by keygen --run-key: who does not know it is kept out")
	flags.StringVar(&s.Operator, "operator", "", "peer id of who may pause, stop and change the run, the same for all peers; see control (default: nobody)")
	flags.StringVar(&s.Run, "run", defaultRun, "name of what is trained together, the same for all peers")
	flags.IntVar(&s.MinPeers, "min-peers", 1, "begin to train when so many members are here, this one included")
	flags.StringVar(&s.Membership, membershipFlag, carrierAuto, "what news of members travels by: "+cli.List(carriers())+fmt.Sprintf(" (datagrams in a flock of more than %d)", swim.WideAbove))
	flags.StringVar(&s.GossipKey, gossipKeyFlag, "", "`file` of the keys that encrypt news of members, one of 64 hexadecimal digits a line, the first to encrypt with; the same for all peers (default: none)")
	flags.StringArrayVar(&s.Relay, relayFlag, nil, "multiaddr with /p2p/ID of a member that runs with --relay-service, through which others reach this peer if they cannot dial it (behind a NAT); repeatable")
	flags.BoolVar(&s.RelayService, "relay-service", false, "pass on the connections of members that cannot be dialled, and tell others whether they can be; all that goes through the relay goes through this machine")
	flags.BoolVar(&s.HolePunch, "hole-punch", false, "try to make connections through a relay direct; both ends need it")
	flags.StringVar(&s.Unreachable, unreachableFlag, unreachableAuto, "whether others cannot dial this peer, so that it begins its exchanges itself: "+cli.List(unreachables())+" (a relay of the run that can be dialled from here finds out)")
	flags.Lookup(unreachableFlag).NoOptDefVal = unreachableYes
	flags.IntVar(&s.Lanes, lanesFlag, peer.DefaultLanes, fmt.Sprintf("connections that an exchange uses at once, 1 to %d; of two peers that differ the smaller number counts (docs/TUNING.md)", maxLanes))
	flags.DurationVar(&s.MinPeersWait, "min-peers-wait", defaultMinPeersWait, "begin to train after this time whoever is here")
}

func (s *dataSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Dataset, "dataset", dataset.Datasets()[0], "data set: "+cli.List(dataset.Datasets()))
	flags.StringVar(&s.Data, "data", "", "folder of the data set's files, as data fetch makes it; glyphs needs none. images are your own: train/CLASS/*.jpg and test/CLASS/*.jpg (or .png), or WebDataset shards train*.tar and test*.tar (or .tar.gz)")
	flags.StringVar(&s.Shard, "shard", "iid", "how the data is cut into parts: iid, dirichlet=ALPHA for skewed labels, or files, of which each peer reads its own only")
	flags.StringVar(&s.Part, "part", "", "I/N, this peer's part of the data, from 0 (default: all; of glyphs a quarter)")
	flags.StringVar(&s.Augment, "augment", augmentAuto, "how training pictures are varied: none, flip, crop, flip+crop (by up to 4 pixels), or auto: flip+crop for cifar10, none for others")
	flags.StringVar(&s.Normalize, "normalize", "", "MEAN/SCALE of the pictures, or for each channel, as in 0.5,0.5,0.4/0.2,0.2,0.3; the same for all peers (default: the data set's own; of images as measured in the folder)")
	flags.IntVar(&s.Memory, "memory", defaultMemory, "MiB of decoded training pictures to keep; a part of images or cifar10 that does not fit is read and decoded again in each pass")
	flags.StringVar(&s.Model, "model", nets.Names()[0], "model: "+cli.List(nets.Names()))
	flags.StringVar(&s.Init, "init", "", "safetensors file of the initial values, the same for all peers (default: made from --seed)")
	flags.Uint64Var(&s.Seed, "seed", 1, "seed of the initial values, the parts and the drawn pictures, the same for all peers")
}

func (s *trainSettings) register(flags *pflag.FlagSet) {
	flags.Uint64Var(&s.Steps, "steps", 0, "work to do: so many steps times the number of peers, instead of --epochs")
	flags.Float64Var(&s.Epochs, "epochs", 0, fmt.Sprintf("work to do: so many passes of all peers together over all the data (default %v)", defaultEpochs))
	flags.IntVar(&s.Batch, "batch", defaultBatch, "pictures in a step")
	flags.Float64Var(&s.LR, "lr", 0, fmt.Sprintf("learning rate (default %v for sgd, %v for momentum, %v for adamw)", defaultRateSGD, defaultRateMomentum, defaultRateAdamW))
	flags.StringVar(&s.Optimizer, "optimizer", optimizerMomentum, "optimizer: "+cli.List(optimizers()))
	flags.StringVar(&s.Schedule, "schedule", scheduleCosine, "course of the learning rate: "+cli.List(schedules()))
	flags.Float64Var(&s.Warmup, "warmup", defaultWarmup, "share of the work over which the learning rate rises, 0 to 1")
	flags.StringVar(&s.Codec, codecFlag, quant.DefaultName, "codec of what is exchanged: "+cli.List(append(quant.Names(), quant.Auto))+" (by each link)")
	flags.StringVar(&s.Quantized, quantizedFlag, defaultQuantized, "`percent` of what is exchanged that may take fewer than 16 bits a value, if the codec does")
	flags.StringVar(&s.Policy, policyFlag, "", "YAML `file` that says how each joint layer of the model is coded, instead of --codec and --quantized (docs/TUNING.md)")
	s.strategySettings.register(flags)
	flags.StringVar(&s.Every, "every", everyAuto, "adpsgd: steps between two exchanges, auto (as few as the link allows), or drift=C: when the model has moved by C steps' lengths")
	flags.StringVar(&s.Budget, "budget", "", "most that the exchanges which this peer initiates may move, such as 2GB/h (default: no bound)")
	flags.BoolVar(&s.Consensus, "consensus", false, "talk more often early and late in the run, as the distance between models asks for")
}

func (s *outputSettings) register(flags *pflag.FlagSet) {
	s.checkpointSettings.register(flags)
	s.finalSettings.register(flags)
	flags.StringVar(&s.Metrics, "metrics", "", "host:port to serve Prometheus metrics, /healthz and /readyz on (default: none)")
	flags.BoolVar(&s.Pprof, "pprof", false, "serve profiles under /debug/pprof/ too, where --metrics is: who can reach it can slow this process down")
	flags.BoolVar(&s.JSON, "json", false, "print the result as one JSON object, the last line of standard output")
	flags.BoolVarP(&s.Verbose, "verbose", "v", false, "log everything, as --log-level debug")
	flags.StringVar(&s.LogLevel, "log-level", "info", "least level that is logged: "+cli.List(logLevels()))
	flags.BoolVar(&s.Report, "report", false, "report to a parent process")
	_ = flags.MarkHidden("report") // fails only for a flag that does not exist
}

// arguments are the flags of run that give these settings.
func (s settings) arguments() []string {
	var copied settings
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	copied.register(flags)
	copied = s
	var args []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() == f.DefValue {
			return
		}
		if values, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range values.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}

// epochs is the number of passes to make, if --steps does not say otherwise.
func (s trainSettings) epochs() float64 {
	if s.Epochs == 0 {
		return defaultEpochs
	}
	return s.Epochs
}

// rate is the full learning rate.
func (s trainSettings) rate() float64 {
	if s.LR != 0 {
		return s.LR
	}
	switch s.Optimizer {
	case optimizerSGD:
		return defaultRateSGD
	case optimizerAdamW:
		return defaultRateAdamW
	}
	return defaultRateMomentum
}
