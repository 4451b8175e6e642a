// Package settings holds the flags of run, which most other commands take too: what they
// are, what is wrong with them, and what they mean to the library. It starts nothing.
package settings

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/topology"
)

// Settings are the flags of run, which local takes too. The zero values of
// Epochs, LR and Warmup stand for defaults that depend on other settings.
type Settings struct {
	Network
	dataSettings
	trainSettings
	outputSettings
	watchSettings
	LeastStep time.Duration // so long a step takes at least
}

// Names that flags take, beside those of packages zoo and quant.
const (
	ScheduleCosine   = "cosine"
	scheduleConstant = "constant"
	scheduleStep     = "step"

	EveryAuto   = "auto"
	augmentAuto = "auto"
)

func Schedules() []string { return []string{ScheduleCosine, scheduleConstant, scheduleStep} }
func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Defaults. Those of the training are the quickest that serve all data sets:
// glyphs end well above 97 %, and on fashion-mnist a higher rate is too high.
const (
	DefaultRun          = "murmuration"
	defaultMemory       = dataset.DefaultMemory >> 20
	defaultListen       = "0.0.0.0:0"
	Loopback            = "localhost:0" // what local listens on
	defaultJoinWait     = time.Minute
	defaultMinPeersWait = 30 * time.Second
	defaultEpochs       = 4.0
	tableEpochs         = 30.0 // rows are small and say little each
	defaultBatch        = 32
	defaultWarmup       = 0.05
)

// Register adds the flags to a command's; their values land in s.
func (s *Settings) Register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.Network.register(flags)
	cli.Group(flags, "Network", "listen", "join", "key", "run")
	s.dataSettings.register(flags)
	cli.Group(flags, topicData, "dataset", "data", "part", "model")
	s.Table.Register(flags)
	flags.StringVar(&s.Pipeline, "pipeline", "", "`FILE` of what the rows of tables are prepared by: read if it is there, else written once the members have found it (default: in the folder of --checkpoint)")
	flags.IntVar(&s.Table.ShareRows, shareRowsFlag, 0, "train on so many rows drawn from those of all peers that begin together, instead of one's own: rows LEAVE their peers, prepared (default: none does)")
	cli.Group(flags, TopicTables) // the example of local has what it takes
	s.trainSettings.register(flags)
	cli.Group(flags, topicExchanges, codecFlag, "strategy")
	flags.DurationVar(&s.LeastStep, stepTimeFlag, 0, "least time of a training step, such as 20ms: this machine then trains like a slower one, to try out unequal peers")
	cli.Group(flags, "Trying out") // not of simulate, whose own it has
	s.outputSettings.register(flags)
	s.watchSettings.register(flags)
	cli.Group(flags, "Checkpoints and results", "checkpoint", "json", "dashboard")
}

// Flags are those of run, which read and set these settings.
func (s *Settings) Flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	kept := *s
	s.Register(flags)
	*s = kept
	return flags
}

// Arguments are the flags of run that give these settings.
func (s Settings) Arguments() []string { return cli.Arguments(s.Flags()) }

// MaxPeers bounds --peers of simulated worlds, --min-peers and the parts of --part.
const MaxPeers = topology.MaxMembers

const stepTimeFlag = "step-time"

// maxStepTime bounds --step-time: an interrupt waits for the end of a step.
const maxStepTime = 10 * time.Second

// Validate reports all faults at once, as a fault of usage that names where each
// setting comes from.
func (s Settings) Validate(from cli.Origins) error {
	var slower cli.Faults
	slower.If(s.LeastStep < 0 || s.LeastStep > maxStepTime, stepTimeFlag, "%v: want 0 to %v", s.LeastStep, maxStepTime)
	faults := slices.Concat(slower, s.Network.Faults(), s.dataSettings.faults(), s.trainSettings.faults(), s.outputSettings.faults(), s.watchSettings.faults(), s.finalSettings.faults(s.Strategy))
	return from.Usage(faults...)
}

// Load resolves the flags of a command that takes settings. What they add up to
// is yet to be checked with validate.
func (s *Settings) Load(cmd *cobra.Command) (cli.Origins, error) {
	sources, err := cli.Resolve(cmd)
	if err != nil {
		return nil, err
	}
	return sources, s.settle(sources)
}

// settle lets --steps and --epochs, of which only one can hold, hide each other
// as a flag hides a line of the file, and refuses zeros that somebody wrote: for
// these flags zero stands for a default.
func (s *Settings) settle(sources cli.Origins) error {
	if err := s.redeem(sources); err != nil {
		return err
	}
	s.settlePolicy(sources)
	if s.IsText() && sources.Source("model") == cli.FromDefault {
		s.Model = nets.GPT
	}
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

// Passes are those of all peers together over all the data, unless --steps says how much
// there is to do.
func (s Settings) Passes() float64 {
	if s.IsTable() {
		return cmp.Or(s.Epochs, tableEpochs)
	}
	return cmp.Or(s.Epochs, defaultEpochs)
}

// Work is how much the flock has to do; a peer that trains alone is a flock of
// one that has its own part only.
func (s Settings) Work(data *dataset.Data) peer.Work {
	if s.Steps > 0 {
		return peer.Work{StepsPerPeer: s.Steps}
	}
	pictures := data.Total
	if s.Strategy == StrategyAlone {
		pictures = data.Len()
	}
	steps := math.Ceil(s.Passes() * float64(pictures) / float64(s.Batch))
	return peer.Work{Steps: uint64(max(steps, 1))}
}

// KnowOperator has the peer obey the operator whose key it has.
func (s *Settings) KnowOperator(log *zap.Logger) error {
	if s.OperatorKey == "" {
		return nil
	}
	key, err := keys.Read(s.OperatorKey, log)
	if err != nil {
		return err
	}
	id, err := keys.ID(key)
	switch {
	case err != nil:
		return err
	case s.Operator == "":
		s.Operator = string(id)
	case s.Operator != string(id):
		return cli.Usagef("--operator-key %s is the key of %s, but --operator says that the run obeys %s", s.OperatorKey, id, s.Operator)
	}
	return nil
}

// CheckFolders refuses files where folders are wanted. What is not there is seen
// later: a checkpoint's folder is made.
func (s Settings) CheckFolders() error {
	var faults cli.Faults
	for _, f := range []struct{ flag, path, remedy string }{
		{"data", s.Data, "give the folder that it is in"},
		{"checkpoint", s.Checkpoint, "give a folder; to begin with the values of a file, give it with --init"},
	} {
		if info, err := os.Stat(f.path); f.path != "" && err == nil && !info.IsDir() && !(f.flag == "data" && s.IsTable()) {
			faults.Add(cli.Faultf(f.flag, "%s is a file: %s", f.path, f.remedy))
		}
	}
	return errors.Join(faults...)
}

// Checkpoints is the folder of --checkpoint.
func (s Settings) Checkpoints() checkpoint.Folder {
	return checkpoint.Folder{Dir: s.Checkpoint, Run: s.Run, Dataset: s.Dataset, Model: s.Model, Keep: s.Keep}
}

// PipelineFile is the file of what rows are prepared by, empty if it is not kept.
func (s Settings) PipelineFile() string {
	if s.Pipeline == "" && s.Checkpoint != "" {
		return filepath.Join(s.Checkpoint, PipelineName)
	}
	return s.Pipeline
}

// PipelineName is Settings.Pipeline beside checkpoints, or those of several peers.
const PipelineName = "pipeline.json"

// IdentityPath is where the identity lasts: the file of --key, or one beside the
// checkpoints, whose peer it is.
func (s Settings) IdentityPath() string {
	if s.Key == "" && s.Checkpoint != "" {
		return filepath.Join(s.Checkpoint, identityFile)
	}
	return s.Key
}

// KnownPeers is the file beside the identity; one that does not last remembers nobody.
func (s Settings) KnownPeers() string {
	if path := s.IdentityPath(); path != "" {
		return path + keys.KnownSuffix
	}
	return ""
}

// Lasting is the key of a peer: that of --key, or the one beside the checkpoints, or a
// new one, which occupy keeps.
func (s Settings) Lasting(log *zap.Logger) (ed25519.PrivateKey, error) {
	if path := s.IdentityPath(); path != s.Key {
		key, err := keys.Read(path, log)
		if !errors.Is(err, fs.ErrNotExist) {
			return key, err
		}
	}
	return s.identity(log)
}

// Outside is what a process asks members with that takes no part in the run: it listens nowhere.
func (s Settings) Outside(log *zap.Logger) (peer.Admission, *p2pnet.Transport, error) {
	admission, err := s.Admission(log)
	key, fault := s.Lasting(log)
	if err := errors.Join(err, fault); err != nil {
		return admission, nil, cli.Config(err)
	}
	tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{}, Known: s.KnownPeers(), Log: log})
	return admission, tr, err
}

// Occupy keeps the identity in the folder of the checkpoints if it is given by no other
// file.
func (s Settings) Occupy(key ed25519.PrivateKey) error {
	path := s.IdentityPath()
	if path == s.Key {
		return nil
	}
	text, err := keys.Encode(key)
	if err != nil {
		return err
	}
	err = files.Create(path, keys.Mode, files.Text(text))
	if errors.Is(err, fs.ErrExist) {
		return nil // it is where the key comes from
	}
	if err != nil {
		return fmt.Errorf("keeping the identity beside the checkpoints: %w", err)
	}
	return nil
}

// RegisterTraining adds the flags of run that say what is learned and how. Which part
// is whose follows from the number of peers, and who serves has a number.
func (s *Settings) RegisterTraining(flags *pflag.FlagSet) {
	var all pflag.FlagSet
	s.Register(&all) // what is left out has its default
	all.VisitAll(func(f *pflag.Flag) {
		learning := slices.Contains([]string{topicData, topicTraining, topicExchanges}, cli.Topic(f))
		if learning && f.Name != "part" && f.Name != ServerFlag {
			flags.AddFlag(f)
		}
	})
}

// registerNamed adds some of the flags of run.
func (s *Settings) registerNamed(flags *pflag.FlagSet, names ...string) {
	var all pflag.FlagSet
	s.Register(&all) // what is left out has its default
	for _, name := range names {
		flags.AddFlag(all.Lookup(name))
	}
}

// RegisterMember adds the flags of run that say where a run is and who may ask there.
func (s *Settings) RegisterMember(flags *pflag.FlagSet) {
	s.registerNamed(flags, "join", "run", "run-key", "key", "json")
}

// RegisterSums adds the flags of run that a peer takes which sums, and trains nothing.
func (s *Settings) RegisterSums(flags *pflag.FlagSet) {
	names := []string{"listen", "join", "min-peers", "min-peers-wait", "run", "run-key", "allow", "key", "json", "log-level", "verbose", "report"}
	s.registerNamed(flags, names...)
	for _, name := range names {
		flags.Lookup(name).Annotations = nil
	}
}

// RegisterBridge adds the flags of run that a peer takes whose trainer is another process.
func (s *Settings) RegisterBridge(flags *pflag.FlagSet) {
	s.registerNamed(flags,
		"run", "listen", "join", "key", "allow", "run-key", "operator", membershipFlag, gossipKeyFlag,
		relayFlag, "relay-service", "hole-punch", unreachableFlag, LanesFlag, "steps", codecFlag, policyFlag, "quantized", "every", "budget", "consensus",
		finalFlag, finalWaitFlag, "name", "metrics", "pprof", "log-level", "verbose")
}

// The topics of the flags that simulate takes too.
const (
	topicData      = "Data and model"
	topicTraining  = "Training"
	topicExchanges = "Exchanges"
)
