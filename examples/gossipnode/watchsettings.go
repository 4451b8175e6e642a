package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
)

// watchSettings say who may watch the run, and rule it from there.
type watchSettings struct {
	Dashboard      string
	DashboardToken string
	OperatorKey    string
	Digests        time.Duration
	// everybody: the other members are shown at a terminal too.
	everybody bool
}

// boardDigests is the time between digests of a peer that has a dashboard: who watches
// a run wants to see it move.
const boardDigests = time.Second

func (s *watchSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Dashboard, "dashboard", "", "host:port to serve a page on that shows the whole run; without a host on this machine only, elsewhere with a token that is printed (default: none)")
	flags.StringVar(&s.DashboardToken, "dashboard-token", "", "file of the token that the dashboard asks for, instead of one that is drawn")
	flags.StringVar(&s.OperatorKey, "operator-key", "", "file of the operator's key: the dashboard can then pause and resume the run, whoever reaches it")
	flags.DurationVar(&s.Digests, "digests", 0, fmt.Sprintf("how often, at most, to tell all others how this peer gets on, for their dashboards (default: %s with --dashboard, %s under an operator, else never)", boardDigests, peer.DefaultDigests))
}

func (s watchSettings) faults() (faults []error) {
	if s.Dashboard != "" && !isHostPort(s.Dashboard) {
		faults = append(faults, cli.Faultf("dashboard", "%q: want host:port or :port, as in 127.0.0.1:8080", s.Dashboard))
	}
	if s.DashboardToken != "" && s.Dashboard == "" {
		faults = append(faults, cli.Faultf("dashboard-token", "needs --dashboard, whose token it is"))
	}
	if s.OperatorKey != "" && s.Dashboard == "" {
		faults = append(faults, cli.Faultf("operator-key", "needs --dashboard, which rules with it; gossipnode control does without"))
	}
	if s.Digests != 0 && s.Digests < time.Second {
		faults = append(faults, cli.Faultf("digests", "%s: want at least 1s", s.Digests))
	}
	return faults
}

// digests is the time between digests for package peer.
func (s watchSettings) digests() time.Duration {
	if s.Digests == 0 && s.Dashboard != "" {
		return boardDigests
	}
	return s.Digests
}

// knowOperator has the peer obey the operator whose key it has.
func (s *settings) knowOperator(log *zap.Logger) error {
	if s.OperatorKey == "" {
		return nil
	}
	key, err := readKey(s.OperatorKey, log)
	if err != nil {
		return err
	}
	id, err := peerID(key)
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
