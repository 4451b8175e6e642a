package main

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestWatchFaults shows what is refused of the flags that say who may watch.
func TestWatchFaults(t *testing.T) {
	for want, s := range map[string]watchSettings{
		"":                        {Dashboard: ":8080", DashboardToken: "file", OperatorKey: "file", Digests: time.Second},
		"--dashboard \"8080\"":    {Dashboard: "8080"},
		"--dashboard-token needs": {DashboardToken: "file"},
		"--operator-key needs":    {OperatorKey: "file"},
		"--digests 10ms":          {Digests: 10 * time.Millisecond},
	} {
		if err := errors.Join(s.faults()...); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	var given outputSettings
	given.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	given.Pprof = true
	if faults := given.faults(); len(faults) != 1 {
		t.Errorf("profiles without an address: %v", faults)
	}
}

// TestKnowOperator shows that a peer with an operator's key obeys that operator, and
// that another one given is a fault.
func TestKnowOperator(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := encodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peerID(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "operator.key")
	if err := os.WriteFile(path, text, keyMode); err != nil {
		t.Fatal(err)
	}
	for given, good := range map[string]bool{"": true, string(id): true, string(id) + "x": false} {
		var s settings
		s.OperatorKey, s.Operator = path, given
		err := s.knowOperator(zap.NewNop())
		if (err == nil) != good || good && s.Operator != string(id) || err != nil && cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("--operator %q: %q, %v", given, s.Operator, err)
		}
	}
}

// TestLocalOperator shows that a local run with a dashboard has an operator as long as
// it runs, whose key only the first peer is given.
func TestLocalOperator(t *testing.T) {
	var s settings
	if forget, err := s.drawOperator(); err != nil || s.OperatorKey != "" {
		t.Errorf("without a dashboard: %q, %v", s.OperatorKey, err)
	} else {
		forget()
	}
	s.Dashboard = ":0"
	forget, err := s.drawOperator()
	if err != nil || s.OperatorKey == "" || s.Operator == "" {
		t.Fatalf("%+v, %v", s.watchSettings, err)
	}
	first, second := s, s
	first.watchMember(0)
	second.watchMember(1)
	if first.OperatorKey == "" || first.Dashboard == "" || second.OperatorKey != "" || second.Dashboard != "" || second.Operator != s.Operator || second.Digests != boardDigests {
		t.Errorf("the first has %+v, the second %+v", first.watchSettings, second.watchSettings)
	}
	forget()
	if _, err := os.Stat(s.OperatorKey); !os.IsNotExist(err) {
		t.Errorf("the key stays: %v", err)
	}
}
