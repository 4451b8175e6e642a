package settings

import (
	"io"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// outputSettings say what is written where.
type outputSettings struct {
	checkpointSettings
	finalSettings
	Metrics  string
	Pprof    bool
	JSON     bool
	LogLevel string
	// Report makes a peer tell a parent process what it does: JSON lines on
	// standard output, a first step when a line comes on standard input, and an end
	// when that ends.
	Report bool
}

func (s *outputSettings) register(flags *pflag.FlagSet) {
	s.checkpointSettings.register(flags)
	s.finalSettings.register(flags)
	flags.StringVar(&s.Metrics, "metrics", "", "host:port to serve Prometheus metrics, /healthz and /readyz on (default: none)")
	flags.BoolVar(&s.Pprof, "pprof", false, "serve profiles under /debug/pprof/ too, where --metrics is: who can reach it can slow this process down")
	flags.BoolVar(&s.JSON, "json", false, "print the result as one JSON object, the last line of standard output")
	flags.StringVar(&s.LogLevel, "log-level", "info", "least level that is logged: "+cli.List(logLevels()))
	flags.BoolVar(&s.Report, "report", false, "report to a parent process")
	_ = flags.MarkHidden("report") // fails only for a flag that does not exist
}

func (s outputSettings) faults() []error {
	faults := s.checkpointSettings.faults()
	faults.Add(cli.OneOf("log-level", s.LogLevel, logLevels()))
	faults.If(s.Metrics != "" && !isHostPort(s.Metrics), "metrics", "%q: want host:port, as in 127.0.0.1:9090", s.Metrics)
	faults.If(s.Pprof && s.Metrics == "", "pprof", "needs --metrics, the address that profiles are served on")
	return faults
}

// NewLog makes a log for people: a time, a level, what happened.
func (s outputSettings) NewLog(out io.Writer) *zap.Logger {
	level, _ := zapcore.ParseLevel(s.LogLevel) // faults has seen to it; else it is info
	return cli.NewLog(level, out)
}
