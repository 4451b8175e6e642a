package settings

import (
	"io"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// outputSettings choose the outputs: checkpoints, the final model, metrics, results and logs.
type outputSettings struct {
	checkpointSettings
	finalSettings
	Metrics string
	Pprof   bool
	// Serve is where predictions are served while the peer trains.
	Serve      string
	ServeToken string
	JSON       bool
	LogLevel   string
	Verbose    bool
	// Report makes a peer report to a parent process, in JSON lines on standard
	// output. It begins to train when a line comes on standard input, and ends
	// when standard input ends.
	Report bool
}

func (s *outputSettings) register(flags *pflag.FlagSet) {
	s.checkpointSettings.register(flags)
	s.finalSettings.register(flags)
	flags.StringVar(&s.Metrics, "metrics", "", "host:port for Prometheus metrics, /healthz and /readyz (default: none)")
	flags.BoolVar(&s.Pprof, "pprof", false, "serve profiles under /debug/pprof/ too, where --metrics is: who can reach it can slow this process down")
	flags.StringVar(&s.Serve, serveFlag, "", "host:port to answer predictions at while the peer trains; without a host on this machine only, elsewhere for who has a token (default: none)")
	flags.StringVar(&s.ServeToken, "serve-token", "", "file of the token for --serve, instead of one that is drawn and logged")
	flags.BoolVar(&s.JSON, "json", false, "print the result as one JSON object; it is the last line of standard output")
	flags.StringVar(&s.LogLevel, "log-level", "warn", "least level that is logged: "+cli.List(logLevels()))
	flags.BoolVarP(&s.Verbose, "verbose", "v", false, "log what is ordinary too, as --log-level info does")
	flags.BoolVar(&s.Report, "report", false, "report to a parent process")
	_ = flags.MarkHidden("report") // fails only for a flag that does not exist
}

func (s outputSettings) faults() []error {
	faults := s.checkpointSettings.faults()
	faults.Add(cli.OneOf("log-level", s.LogLevel, logLevels()))
	faults.If(s.Metrics != "" && !isHostPort(s.Metrics), "metrics", "%q: want host:port, as in 127.0.0.1:9090", s.Metrics)
	faults.If(s.Pprof && s.Metrics == "", "pprof", "needs --metrics, the address that profiles are served on")
	faults.If(s.Serve != "" && !isHostPort(s.Serve), serveFlag, "%q: want host:port or :port, as in 127.0.0.1:8000", s.Serve)
	faults.If(s.ServeToken != "" && s.Serve == "", "serve-token", "needs --serve, whose token it is")
	return faults
}

// serveFlag is the flag of predictions while a peer trains.
const serveFlag = "serve"

// NewLog makes a log for people: each line has a time, a level and a message.
func (s outputSettings) NewLog(out io.Writer) *zap.Logger {
	level, _ := zapcore.ParseLevel(s.LogLevel) // info if it is unknown, but faults has checked it
	if s.Verbose {
		level = min(level, zapcore.InfoLevel)
	}
	return cli.NewLog(level, out)
}

// checkpointSettings say how the state of a peer is kept, and how long a peer may take to
// leave.
type checkpointSettings struct {
	Checkpoint      string
	CheckpointEvery time.Duration
	Keep            int
	LeaveWithin     time.Duration
}

const (
	checkpointEveryFlag    = "checkpoint-every"
	defaultCheckpointEvery = 30 * time.Second

	defaultKeep        = 3
	maxKeep            = 10_000
	defaultLeaveWithin = 20 * time.Second
	// identityFile is the file of a peer's key in its checkpoint folder, if --key names no file.
	identityFile = "node.key"
)

func (s *checkpointSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Checkpoint, "checkpoint", "", "folder in which the peer's state is kept; its identity too, unless --key gives one: a run that finds a checkpoint there goes on from it")
	flags.DurationVar(&s.CheckpointEvery, checkpointEveryFlag, defaultCheckpointEvery, "time between two checkpoints, as in 5m; 0 is only at the end and on SIGTERM, as always")
	flags.IntVar(&s.Keep, "keep", defaultKeep, "number of checkpoints that are kept")
	flags.DurationVar(&s.LeaveWithin, "leave-within", defaultLeaveWithin, "most time that leaving in good order may take after SIGINT, SIGTERM or SIGHUP")
}

func (s checkpointSettings) faults() (faults cli.Faults) {
	faults.If(s.CheckpointEvery < 0, checkpointEveryFlag, "%s: want a time that is not negative", s.CheckpointEvery)
	faults.If(s.Checkpoint == "" && s.CheckpointEvery != defaultCheckpointEvery, checkpointEveryFlag, "needs --checkpoint, the folder that checkpoints are saved in")
	faults.If(s.Checkpoint == "" && s.Keep != defaultKeep, "keep", "needs --checkpoint, the folder whose checkpoints it counts")
	faults.If(s.Keep < 1 || s.Keep > maxKeep, "keep", "%d: want 1 to %d", s.Keep, maxKeep)
	faults.If(s.LeaveWithin <= 0, "leave-within", "%s: want a positive time", s.LeaveWithin)
	return faults
}
