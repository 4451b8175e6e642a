package control

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/operator"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// TestControlWrongUse shows that what is wrong with a command line is said, with
// exit code 2.
func TestControlWrongUse(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"control", "control takes one word"},
		{"control frob", "control takes one word, pause, resume, stop, schedule, announce, show, drain, admit, expel, site, role or weight"},
		{"control pause", "control needs --join"},
		{"control pause --join 127.0.0.1:9", "control needs --operator-key"},
		{"control pause --join nowhere", `--join "nowhere": want host:port`},
		{"control pause --join murmuration1x", "copy all of it"},
		{"control pause --lr 1", "--lr is for control schedule, not pause"},
		{"control announce --set model", `--set "model": want NAME=VALUE`},
		{"control schedule", "changes nothing"},
		{"control schedule --warmup 0.1", "parts of a schedule, which also needs --lr"},
		{"control schedule --lr 0", "--lr 0: a schedule needs a positive learning rate"},
		{"control schedule --lr 1 --schedule bogus", `--schedule "bogus": want cosine`},
		{"control schedule --every -1", "--every -1: want 0 or more"},
		{"control drain", "control drain takes one member"},
		{"control drain a b", "control drain takes one member"},
		{"control expel", "control expel takes ids of peers"},
		{"control admit nobody", "control admit: "},
		{"control pause a", "control takes one word"},
		{"control drain a --lr 1 --join 127.0.0.1:9", "--lr is for control schedule, not drain"},
		{"control stop --timeout 0s", "--timeout 0s: want a positive time"},
	} {
		code, out, err := try(strings.Fields(c.line)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) {
			t.Errorf("%s: exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", c.line, code, out, err, cli.ExitUsage, c.want)
		}
	}
	if code, out, err := try("control", "--help"); code != cli.ExitDone || err != "" || !strings.Contains(out, "Examples:\n  gossipnode ") {
		t.Errorf("--help: exit code %d, %q, %q", code, out, err)
	}
}

// keyFile makes a key, and returns its file and id.
func keyFile(t *testing.T) (path, id string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "operator.key")
	code, out, stderr := try("keygen", "--out", path)
	if code != cli.ExitDone {
		t.Fatal(stderr)
	}
	return path, strings.TrimSpace(out)
}

// TestControlOfARun shows that an operator pauses a run of two peers, changes it,
// lets it go on and ends it, and that nobody else does.
func TestControlOfARun(t *testing.T) {
	t.Parallel()
	key, id := keyFile(t)
	data := clitest.Pictures(t, 200, 40)
	var (
		peers  sync.WaitGroup
		done   [2]result.Share
		failed [2]error
		addr   = make(chan string, 2)
		mu     sync.Mutex
		steps  uint64
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	launch := func(i int, join ...string) {
		var s settings.Settings
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Register(flags)
		if err := flags.Parse([]string{"--dataset=mnist", "--data=" + data, "--model=softmax", "--epochs=100000", "--listen=127.0.0.1:0", "--operator=" + id}); err != nil {
			t.Fatal(err)
		}
		s.Join = join
		tell := func(r watch.Report) {
			switch {
			case r.Kind == watch.ReportStarted:
				addr <- r.Addresses[0]
			case r.Kind == watch.ReportProgress && i == 1:
				mu.Lock()
				steps = r.Status.Step
				mu.Unlock()
			}
		}
		peers.Go(func() { done[i], failed[i] = train.Run(ctx, s, train.Observer{Log: zap.NewNop(), Tell: tell}) })
	}
	taken := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return steps
	}
	launch(0)
	first := <-addr
	launch(1, first)
	<-addr
	clitest.Eventually(t, "the second peer trains", func() bool { return taken() > 10 })

	tell := func(words ...string) controlResult {
		t.Helper()
		code, out, stderr := try(append([]string{"control", "--join", first, "--operator-key", key, "--json"}, words...)...)
		if code != cli.ExitDone {
			t.Fatalf("control %q: exit code %d: %s", words, code, stderr)
		}
		var r controlResult
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("control %q prints %q: %v", words, out, err)
		}
		return r
	}
	r := tell("pause", "--reason", "lunch")
	if len(r.Standing) != 1 || r.Standing[0].Command != "pause" || r.Standing[0].Reason != "lunch" || r.Peer == "" {
		t.Errorf("pause: %+v", r)
	}
	var before uint64
	clitest.Eventually(t, "the second peer is paused", func() bool {
		before = taken()
		time.Sleep(3 * 200 * time.Millisecond)
		return taken() == before
	})
	other, _ := keyFile(t)
	code, _, stderr := try("control", "--join", first, "--operator-key", other, "resume")
	if code != cli.ExitFailed || !strings.Contains(stderr, "operator") {
		t.Errorf("another operator: exit code %d: %s", code, stderr)
	}
	if r = tell("schedule", "--lr", "0.02", "--every", "3", "--at", "7"); len(r.Standing) != 3 {
		t.Errorf("schedule: %+v", r)
	}
	tell("resume")
	clitest.Eventually(t, "the second peer goes on", func() bool { return taken() > before })
	invitation := token.Of(settings.DefaultRun, "", []string{first}).String()
	if code, out, stderr := try("control", "--join", invitation, "--operator-key", key, "show"); code != cli.ExitDone || !strings.Contains(out, "--lr 0.02 from the flock's step 7") {
		t.Errorf("show: exit code %d: %s%s", code, out, stderr)
	}
	tell("stop", "--reason", "enough")
	if n := operator.LastSequence(key); n != 5 {
		t.Errorf("the number kept beside the key is %d after five messages", n)
	}
	peers.Wait()
	for i := range failed {
		if failed[i] != nil || done[i].Result.Steps == 0 {
			t.Errorf("peer %d: %+v, %v", i, done[i], failed[i])
		}
	}
	code, _, stderr = try("control", "--join", first, "--operator-key", key, "--timeout", "1s", "pause")
	if code != cli.ExitFailed || !strings.Contains(stderr, "no member has taken pause") || !strings.Contains(stderr, "check that a peer runs there") {
		t.Errorf("nobody there: exit code %d: %s", code, stderr)
	}
}
