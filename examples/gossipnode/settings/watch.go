package settings

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/control"
)

// watchSettings say how the run can be watched, and controlled from the dashboard.
type watchSettings struct {
	Name           string
	Dashboard      string
	DashboardToken string
	DashboardStay  string
	OperatorKey    string
	Record         string
	Digests        time.Duration
}

// The time between the digests of a peer. In a large flock it is longer: all members together
// send at most one in control.DigestShare. BoardDigests is the time for a peer with a dashboard,
// which should show changes soon.
const (
	defaultDigests = 2 * time.Second
	BoardDigests   = time.Second
)

func (s *watchSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Name, nameFlag, "", fmt.Sprintf("what this peer is called in tables, logs, dashboard and metrics, at most %d bytes (default: this machine's name)", control.MaxName))
	flags.StringVar(&s.Dashboard, "dashboard", "", "host:port to serve a page on that shows the whole run; without a host on this machine only, elsewhere with a token that is printed (default: none)")
	flags.StringVar(&s.DashboardToken, "dashboard-token", "", "file of the token that the dashboard asks for, instead of one that is drawn")
	flags.StringVar(&s.DashboardStay, stayFlag, stayAuto, "whether the dashboard stays after the end, until Ctrl-C: "+cli.List(stays())+" (auto: where standard error is a terminal, and not with --json)")
	flags.StringVar(&s.OperatorKey, "operator-key", "", "file of the operator's key: the dashboard can then pause and resume the run, for who opens it by the link that is printed")
	flags.StringVar(&s.Record, "record", "", "`file` for what this peer sees of the run, written at its end: who was there, speeds, links, deaths; simulate --replay trains in it")
	flags.DurationVar(&s.Digests, "digests", 0, fmt.Sprintf("how often, at most, to tell all others how this peer gets on, for status and their dashboards; negative: never (default: %s, and %s with --dashboard)", defaultDigests, BoardDigests))
}

func (s watchSettings) faults() (faults cli.Faults) {
	faults.If(s.Dashboard != "" && !isHostPort(s.Dashboard), "dashboard", "%q: want host:port or :port, as in 127.0.0.1:8080", s.Dashboard)
	faults.If(s.DashboardToken != "" && s.Dashboard == "", "dashboard-token", "needs --dashboard, whose token it is")
	faults.Add(cli.OneOf(stayFlag, s.DashboardStay, stays()), cli.Unwritable("record", s.Record))
	faults.If(s.OperatorKey != "" && s.Dashboard == "", "operator-key", "needs --dashboard, which rules with it; gossipnode control does without")
	faults.If(s.Digests > 0 && s.Digests < control.DigestSpacing, "digests", "%s: want at least %s, or less than 0 for none", s.Digests, control.DigestSpacing)
	faults.If(len(s.Name) > control.MaxName || control.Printable(s.Name) != s.Name, nameFlag, "%q: want printable text of at most %d bytes", s.Name, control.MaxName)
	return faults
}

const (
	stayFlag = "dashboard-stay"
	stayAuto = "auto"
	StayYes  = "yes"
	StayNo   = "no"
)

func stays() []string { return []string{stayAuto, StayYes, StayNo} }

// Stays tells whether the dashboard stays after the end. With auto, it does if errs is a terminal.
func (s Settings) Stays(errs io.Writer) bool {
	seen := cli.IsTerminal(errs) && !s.JSON
	return s.Dashboard != "" && (s.DashboardStay == StayYes || s.DashboardStay == stayAuto && seen)
}

// DigestEvery is the time between digests for package peer.
func (s watchSettings) DigestEvery() time.Duration {
	switch {
	case s.Digests != 0:
		return s.Digests
	case s.Dashboard != "":
		return BoardDigests
	}
	return defaultDigests
}
