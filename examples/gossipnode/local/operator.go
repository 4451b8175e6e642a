package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/control"
)

// watchMember gives one peer of several its name, and leaves the dashboard and the operator's key to the first peer of several;
// the others tell it how they get on.
func watchMember(s *settings.Settings, number int) {
	s.Digests = s.DigestEvery()
	who := fmt.Sprintf(" %d", number)
	if s.Name == "" {
		s.Name = "peer"
	}
	s.Name = settings.ShortName(s.Name, control.MaxName-len(who)) + who
	if number > 0 {
		s.Dashboard, s.DashboardToken, s.OperatorKey = "", "", ""
	}
}

// drawOperator makes an operator for a local run that has a dashboard and no operator,
// so that it can be paused there. Forget removes the key.
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
