package settings

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
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
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
	text, err := keys.Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys.ID(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "operator.key")
	if err := os.WriteFile(path, text, keys.Mode); err != nil {
		t.Fatal(err)
	}
	for given, good := range map[string]bool{"": true, string(id): true, string(id) + "x": false} {
		var s Settings
		s.OperatorKey, s.Operator = path, given
		err := s.KnowOperator(zap.NewNop())
		if (err == nil) != good || good && s.Operator != string(id) || err != nil && cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("--operator %q: %q, %v", given, s.Operator, err)
		}
	}
}
