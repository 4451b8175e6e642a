package settings

import (
	"cmp"
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
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestWatchFaults shows what is refused of the flags that say who may watch.
func TestWatchFaults(t *testing.T) {
	for want, s := range map[string]watchSettings{
		"":                        {Dashboard: ":8080", DashboardToken: "file", DashboardStay: StayNo, OperatorKey: "file", Digests: time.Second},
		"--dashboard \"8080\"":    {Dashboard: "8080"},
		"--dashboard-token needs": {DashboardToken: "file"},
		"--operator-key needs":    {OperatorKey: "file"},
		"--digests 10ms":          {Digests: 10 * time.Millisecond},
		"--dashboard-stay":        {DashboardStay: "maybe"},
		"--name \"a\\nb\"":        {Name: "a\nb"},
		"--name \"nnn":            {Name: strings.Repeat("n", control.MaxName+1)},
	} {
		s.DashboardStay = cmp.Or(s.DashboardStay, stayAuto)
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

// TestPeerName shows that a peer is called as its user says, or as its machine is, as far as
// that can be shown.
func TestPeerName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := (watchSettings{}).PeerName(); got == "" || !strings.HasPrefix(host, got) {
		t.Errorf("on %q it is called %q", host, got)
	}
	if got := (watchSettings{Name: "lab"}).PeerName(); got != "lab" {
		t.Errorf("it is called %q", got)
	}
	if got, want := ShortName("a\x1b[2J\u202e€€", 7), "a[2J€"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDigestEvery shows that a peer tells of itself unless it is told not to.
func TestDigestEvery(t *testing.T) {
	for want, s := range map[time.Duration]watchSettings{
		defaultDigests: {}, BoardDigests: {Dashboard: ":80"}, time.Minute: {Digests: time.Minute, Dashboard: ":80"}, -1: {Digests: -1},
	} {
		if got := s.DigestEvery(); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
}

// TestStays shows that a dashboard stays where somebody says so, and by itself never where
// nobody sees it.
func TestStays(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		dashboard, stay string
		want            bool
	}{{":80", stayAuto, false}, {":80", StayYes, true}, {":80", StayNo, false}, {"", StayYes, false}} {
		var s Settings
		s.Dashboard, s.DashboardStay = c.dashboard, c.stay
		if got := s.Stays(file); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
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
