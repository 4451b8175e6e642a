package main

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
)

// watchMember leaves the dashboard and the operator's key to the first peer of several;
// the others tell it how they get on.
func (s *settings) watchMember(number int) {
	s.Digests = s.digests()
	if number > 0 {
		s.Dashboard, s.DashboardToken, s.OperatorKey = "", "", ""
	}
}

// drawOperator makes an operator for a local run that has a dashboard and no operator,
// so that it can be paused there. Forget removes the key.
func (s *settings) drawOperator() (forget func(), err error) {
	forget = func() {}
	switch {
	case s.OperatorKey != "":
		return forget, s.knowOperator(s.newLog(os.Stderr))
	case s.Dashboard == "" || s.Operator != "":
		return forget, nil
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return forget, err
	}
	text, err := encodeKey(key)
	if err != nil {
		return forget, err
	}
	folder, err := os.MkdirTemp("", "gossipnode-operator-")
	if err != nil {
		return forget, fmt.Errorf("making an operator for the dashboard: %w", err)
	}
	forget = func() { _ = os.RemoveAll(folder) } // a temporary folder
	s.OperatorKey = filepath.Join(folder, "operator.key")
	if err := os.WriteFile(s.OperatorKey, text, keyMode); err != nil {
		forget()
		return func() {}, fmt.Errorf("making an operator for the dashboard: %w", err)
	}
	return forget, s.knowOperator(s.newLog(os.Stderr))
}
