// Package settings holds the flags of run, many of which other commands take too. It registers
// them, checks their values, and turns them into configurations of the library. It starts nothing.
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
	untilSettings
	outputSettings
	watchSettings
	LeastStep time.Duration // the least time of a step
}

// Names that are values of flags, besides those of packages zoo and quant.
const (
	ScheduleCosine   = "cosine"
	scheduleConstant = "constant"
	scheduleStep     = "step"

	EveryAuto   = "auto"
	augmentAuto = "auto"
)

func Schedules() []string { return []string{ScheduleCosine, scheduleConstant, scheduleStep} }
func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Defaults. Those of training are the fastest that work for all data sets: glyphs
// reach well above 97 % accuracy, and for fashion-mnist a higher rate is too high.
const (
	DefaultRun          = "murmuration"
	defaultMemory       = dataset.DefaultMemory >> 20
	defaultListen       = "0.0.0.0:0"
	Loopback            = "localhost:0" // what local listens on
	defaultJoinWait     = time.Minute
	defaultMinPeersWait = 30 * time.Second
	defaultEpochs       = 4.0
	tableEpochs         = 30.0 // a row is small, and a model learns little from it
	defaultBatch        = 32
	defaultWarmup       = 0.05
)

// Register adds the flags to those of a command. They set the fields of s.
func (s *Settings) Register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.Network.register(flags)
	cli.Group(flags, "Network", "listen", "join", "key", "run")
	s.dataSettings.register(flags)
	cli.Group(flags, topicData, "dataset", "data", "part", "model")
	s.Table.Register(flags)
	flags.StringVar(&s.Pipeline, "pipeline", "", "`FILE` of what the rows of tables are prepared by: read if it is there, else written once the members have found it (default: in the folder of --checkpoint)")
	flags.IntVar(&s.Table.ShareRows, shareRowsFlag, 0, "train on so many rows drawn from those of all peers that begin together, instead of one's own: rows LEAVE their peers, prepared (default: none does)")
	cli.Group(flags, TopicTables) // names no flags for the short help: the example of local shows them
	s.trainSettings.register(flags)
	cli.Group(flags, topicExchanges, codecFlag, "strategy")
	flags.DurationVar(&s.LeastStep, stepTimeFlag, 0, "least time of a training step, such as 20ms: this machine then trains like a slower one, to try out unequal peers")
	cli.Group(flags, "Trying out") // simulate does not take it: it has its own
	s.following.register(flags)
	s.untilSettings.register(flags)
	s.outputSettings.register(flags)
	s.watchSettings.register(flags)
	cli.Group(flags, "Checkpoints and results", "checkpoint", "json", "dashboard")
}

// Flags is the set of run's flags, which read and set these settings.
func (s *Settings) Flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	kept := *s
	*s = Settings{} // what it holds is no default
	s.Register(flags)
	*s = kept
	return flags
}

// Arguments are the arguments of run that give these settings.
func (s Settings) Arguments() []string { return cli.Arguments(s.Flags()) }

// MaxPeers bounds --peers of simulated worlds, --min-peers and the parts of --part.
const MaxPeers = topology.MaxMembers

const stepTimeFlag = "step-time"

// maxStepTime bounds --step-time.
const maxStepTime = 10 * time.Second

// Validate reports all faults at once, in a usage error that names the source of each
// setting.
func (s Settings) Validate(from cli.Origins) error {
	var own cli.Faults
	own.If(s.Hold && s.Dashboard != "", "dashboard", "a member that holds data and does not train has none: give it to one that trains")
	own.If(s.Serve != "" && (s.Hold || s.IsText()), serveFlag, "needs a peer that trains on pictures or a table; gossipnode sample writes text")
	own.If(s.TaskFile != "" && max(from.Source("steps"), from.Source("epochs")) > cli.FromDefault, "tasks", "are the work to do: leave out --steps and --epochs")
	own.If(s.TaskFile != "" && s.Accumulate > 1, accumulateFlag, "tasks are done in steps of one batch: leave it out")
	own.If(s.LeastStep < 0 || s.LeastStep > maxStepTime, stepTimeFlag, "%v: want 0 to %v", s.LeastStep, maxStepTime)
	faults := slices.Concat(own, s.Network.Faults(), s.dataSettings.faults(), s.trainSettings.faults(), s.untilSettings.faults(), s.ends(), followFaults(s, from), s.outputSettings.faults(), s.watchSettings.faults(), s.finalSettings.faults(s.Strategy), pipelined(s))
	return from.Usage(faults...)
}

// Load reads the flags of a command from their sources. Call Validate after it,
// which checks the values.
func (s *Settings) Load(cmd *cobra.Command) (cli.Origins, error) {
	sources, err := cli.Resolve(cmd)
	if err != nil {
		return nil, err
	}
	return sources, s.settle(sources)
}

// settle keeps only one of --steps and --epochs, the one from the source of higher
// rank: a flag overrides a line of the file. It refuses zeros that the user gave, as
// zero stands for the default of these flags.
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
	if s.GlobalBatch != 0 && sources.Source("batch") != cli.FromDefault {
		return sources.Usage(cli.Faultf(GlobalBatchFlag, "%d: --batch says how many pictures each peer takes, and this how many all take: give one of them", s.GlobalBatch))
	}
	for name, zero := range map[string]bool{"steps": s.Steps == 0, "epochs": s.Epochs == 0, "lr": s.LR == 0} {
		if zero && sources.Source(name) != cli.FromDefault {
			return sources.Usage(cli.Faultf(name, "0: want a positive number"))
		}
	}
	return nil
}

// Passes is the number of passes that all peers together make over all the data. It is not
// used if --steps is given.
func (s Settings) Passes() float64 {
	switch {
	case s.Follow != "" && s.IsTable():
		return cmp.Or(s.Epochs, followTableEpochs)
	case s.Follow != "":
		return cmp.Or(s.Epochs, followEpochs)
	case s.IsTable():
		return cmp.Or(s.Epochs, tableEpochs)
	}
	return cmp.Or(s.Epochs, defaultEpochs)
}

// Work is the amount of work of the flock. With the strategy alone, the flock is
// this peer, and the data its own part.
func (s Settings) Work(data *dataset.Data) peer.Work {
	if s.Steps > 0 {
		return peer.Work{StepsPerPeer: s.Steps}
	}
	pictures := data.Total
	if s.Strategy == StrategyAlone {
		pictures = data.Len()
	}
	if s.GlobalBatch > 0 { // each round takes one, whoever is there
		return peer.Work{StepsPerPeer: uint64(max(math.Ceil(s.Passes()*float64(pictures)/float64(s.GlobalBatch)), 1))}
	}
	steps := math.Ceil(s.Passes() * float64(pictures) / float64(s.Pictures()))
	return peer.Work{Steps: uint64(max(steps, 1)) * uint64(s.StepsOfBatch())}
}

// ModelStages is into how many stages the model is cut; 1 if all peers train the whole.
func (s Settings) ModelStages() int { return max(s.Table.Stages.Model, 1) }

// StepsOfBatch is how many steps are made of a batch: each stage makes one, but in rounds, where each peer brings a batch, and makes one.
func (s Settings) StepsOfBatch() int {
	if s.Strategy == StrategyAllReduce {
		return 1
	}
	return s.ModelStages()
}

// Drawn is the number of examples that batches are drawn with.
func (s Settings) Drawn() int {
	if s.ModelStages() > 1 {
		examples, _ := s.MicroBatch()
		return examples
	}
	return s.trainSettings.Drawn()
}

// KnowOperator sets Operator to the id of --operator-key's key, which must not contradict --operator.
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

// CheckFolders refuses files in place of folders. It allows missing ones: a checkpoint
// folder is created later, and the loader reports a missing data folder.
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
	if info, err := os.Stat(s.Follow); s.Follow != "" && (err != nil || !info.IsDir()) {
		faults.Add(cli.Faultf(followFlag, "%s is no folder: make it, and let files come into it", s.Follow))
	}
	return errors.Join(faults...)
}

// Checkpoints is the folder of --checkpoint.
func (s Settings) Checkpoints() checkpoint.Folder {
	return checkpoint.Folder{Dir: s.Checkpoint, Run: s.Run, Dataset: s.Dataset, Model: s.Model, Keep: s.Keep}
}

// PipelineFile is the path of the file with the pipeline that prepares rows, empty if it is not kept.
func (s Settings) PipelineFile() string {
	if s.Pipeline == "" && s.Checkpoint != "" {
		return filepath.Join(s.Checkpoint, PipelineName)
	}
	return s.Pipeline
}

// PipelineName is the file name of the pipeline in a folder of checkpoints, or of several peers' checkpoints.
const PipelineName = "pipeline.json"

// IdentityPath is the file that keeps the identity: that of --key, or one in the folder of
// the checkpoints. It is empty if the identity is not kept.
func (s Settings) IdentityPath() string {
	if s.Key == "" && s.Checkpoint != "" {
		return filepath.Join(s.Checkpoint, identityFile)
	}
	return s.Key
}

// KnownPeers is the file, beside the identity, that remembers peers; empty if the identity is not kept.
func (s Settings) KnownPeers() string {
	if path := s.IdentityPath(); path != "" {
		return path + keys.KnownSuffix
	}
	return ""
}

// Lasting is the key of a peer: that of --key, or the one beside the checkpoints, or a
// new one, which Occupy can save.
func (s Settings) Lasting(log *zap.Logger) (ed25519.PrivateKey, error) {
	if path := s.IdentityPath(); path != s.Key {
		key, err := keys.Read(path, log)
		if !errors.Is(err, fs.ErrNotExist) {
			return key, err
		}
	}
	return s.identity(log)
}

// Outside makes an admission and a transport for a process that only asks members: it does not listen.
func (s Settings) Outside(log *zap.Logger) (peer.Admission, *p2pnet.Transport, error) {
	admission, err := s.Admission(log)
	key, fault := s.Lasting(log)
	if err := errors.Join(err, fault); err != nil {
		return admission, nil, cli.Config(err)
	}
	tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{}, Known: s.KnownPeers(), Log: log})
	return admission, tr, err
}

// Occupy saves the identity in the folder of the checkpoints, unless --key names its
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
		return nil // the key was read from this file
	}
	if err != nil {
		return fmt.Errorf("keeping the identity beside the checkpoints: %w", err)
	}
	return nil
}

// RegisterTraining adds the flags of run that choose data, model and training. It leaves out
// --part and --server: the command itself gives each peer its part, and names the server.
func (s *Settings) RegisterTraining(flags *pflag.FlagSet) {
	var all pflag.FlagSet
	s.Register(&all) // flags that are left out keep their defaults
	all.VisitAll(func(f *pflag.Flag) {
		learning := slices.Contains([]string{topicData, topicTraining, topicExchanges}, cli.Topic(f)) || slices.Contains([]string{untilFlag, deadlineFlag, stagesFlag}, f.Name)
		if learning && f.Name != "part" && f.Name != ServerFlag {
			flags.AddFlag(f)
		}
	})
}

// SetTraining sets a flag of training or of exchanges to a value.
func (s *Settings) SetTraining(flag, value string) error {
	flags := s.Flags()
	if f := flags.Lookup(flag); f == nil || !slices.Contains([]string{topicTraining, topicExchanges}, cli.Topic(f)) && flag != stagesFlag {
		return fmt.Errorf("--%s is no flag of training or exchanges", flag)
	}
	return flags.Set(flag, value)
}

// registerNamed adds some of the flags of run.
func (s *Settings) registerNamed(flags *pflag.FlagSet, names ...string) {
	var all pflag.FlagSet
	s.Register(&all) // flags that are left out keep their defaults
	for _, name := range names {
		flags.AddFlag(all.Lookup(name))
	}
}

// RegisterMember adds the flags of run that a command needs to ask the members of a run.
func (s *Settings) RegisterMember(flags *pflag.FlagSet) {
	s.registerNamed(flags, "join", "run", "run-key", "key", "json")
}

// RegisterSums adds the flags of run for a peer that takes part in sums, and trains no model, and others by name.
func (s *Settings) RegisterSums(flags *pflag.FlagSet, others ...string) {
	names := append([]string{"listen", "join", "min-peers", "min-peers-wait", "run", "run-key", "allow", "key", "json", "log-level", "verbose", "report"}, others...)
	s.registerNamed(flags, names...)
	for _, name := range names {
		flags.Lookup(name).Annotations = nil
	}
}

// RegisterBridge adds the flags of run for a peer whose trainer is another process.
func (s *Settings) RegisterBridge(flags *pflag.FlagSet) {
	s.registerNamed(flags,
		"run", "listen", "join", "key", "allow", "run-key", "operator", membershipFlag, gossipKeyFlag,
		relayFlag, "relay-service", "hole-punch", uplinkFlag, siteFlag, unreachableFlag, LanesFlag, "steps", codecFlag, policyFlag, "quantized", "every", "budget", "consensus",
		finalFlag, finalWaitFlag, "name", "metrics", "pprof", "log-level", "verbose")
}

// The topics of flags that simulate takes, too.
const (
	topicData      = "Data and model"
	topicTraining  = "Training"
	topicExchanges = "Exchanges"
)
