package settings

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/control"
)

// watchSettings say who may watch the run, and rule it from there.
type watchSettings struct {
	Dashboard      string
	DashboardToken string
	OperatorKey    string
	Digests        time.Duration
}

// BoardDigests is the time between digests of a peer that has a dashboard: who watches
// a run wants to see it move.
const BoardDigests = time.Second

func (s *watchSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Dashboard, "dashboard", "", "host:port to serve a page on that shows the whole run; without a host on this machine only, elsewhere with a token that is printed (default: none)")
	flags.StringVar(&s.DashboardToken, "dashboard-token", "", "file of the token that the dashboard asks for, instead of one that is drawn")
	flags.StringVar(&s.OperatorKey, "operator-key", "", "file of the operator's key: the dashboard can then pause and resume the run, whoever reaches it")
	flags.DurationVar(&s.Digests, "digests", 0, fmt.Sprintf("how often, at most, to tell all others how this peer gets on, for their dashboards (default: %s with --dashboard, %s under an operator, else never)", BoardDigests, control.DefaultDigests))
}

func (s watchSettings) faults() (faults cli.Faults) {
	faults.If(s.Dashboard != "" && !isHostPort(s.Dashboard), "dashboard", "%q: want host:port or :port, as in 127.0.0.1:8080", s.Dashboard)
	faults.If(s.DashboardToken != "" && s.Dashboard == "", "dashboard-token", "needs --dashboard, whose token it is")
	faults.If(s.OperatorKey != "" && s.Dashboard == "", "operator-key", "needs --dashboard, which rules with it; gossipnode control does without")
	faults.If(s.Digests != 0 && s.Digests < time.Second, "digests", "%s: want at least 1s", s.Digests)
	return faults
}

// DigestEvery is the time between digests for package peer.
func (s watchSettings) DigestEvery() time.Duration {
	if s.Digests == 0 && s.Dashboard != "" {
		return BoardDigests
	}
	return s.Digests
}
