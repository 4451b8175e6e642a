package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/control"
)

// watchMember names the peer with this number. Only the first peer keeps the dashboard and the operator's key; the others
// report to it by digests.
func watchMember(s *settings.Settings, number int) {
	s.Digests = s.DigestEvery()
	who := fmt.Sprintf(" %d", number)
	if s.Name == "" {
		s.Name = "peer"
	}
	s.Name = settings.ShortName(s.Name, control.MaxName-len(who)) + who
	if number > 0 {
		s.Dashboard, s.DashboardToken, s.OperatorKey, s.Serve, s.ServeToken, s.Record = "", "", "", "", "", ""
	}
}

// drawOperator generates an operator's key for a local run with a dashboard and without an
// operator, so that the dashboard can pause the run. Forget removes the key.
func drawOperator(s *settings.Settings) (forget func(), err error) {
	forget = func() {}
	switch {
	case s.OperatorKey != "":
		return forget, s.KnowOperator(s.NewLog(os.Stderr))
	case s.Dashboard == "" || s.Operator != "":
		return forget, nil
	}
	folder, err := os.MkdirTemp("", "gossipnode-operator-")
	if err != nil {
		return forget, fmt.Errorf("making an operator for the dashboard: %w", err)
	}
	s.OperatorKey = filepath.Join(folder, "operator.key")
	if s.Operator, err = keys.Generate(s.OperatorKey, false); err != nil {
		err = fmt.Errorf("making an operator for the dashboard: %w", err)
	}
	return func() { _ = os.RemoveAll(folder) }, err // a temporary folder
}
