package control

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/status"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
)

// ruled is a run of peers in this process that obey an operator, whose tests may be one.
type ruled struct {
	*testing.T
	key, operator, first string
	running              sync.WaitGroup
	end                  context.CancelFunc
	ctx                  context.Context
	addresses            chan string
}

func newRuled(t *testing.T) *ruled {
	r := &ruled{T: t, addresses: make(chan string, 8)}
	r.key, r.operator = keyFile(t)
	r.ctx, r.end = context.WithCancel(t.Context())
	t.Cleanup(func() { r.end(); r.running.Wait() })
	return r
}

// launch starts a peer, and returns once it can be joined. Done is called with its result.
func (r *ruled) launch(name string, done func(result.Share, error), args ...string) {
	r.Helper()
	var s settings.Settings
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Register(flags)
	key, _ := keyFile(r.T)
	if err := flags.Parse(append([]string{"--dataset=mnist", "--model=softmax", "--epochs=100000", "--listen=127.0.0.1:0", "--operator=" + r.operator, "--name=" + name, "--key=" + key, "--min-peers=1"}, args...)); err != nil {
		r.Fatal(err)
	}
	if r.first != "" {
		s.Join = []string{r.first}
	}
	tell := func(report watch.Report) {
		if report.Kind == watch.ReportStarted && len(report.Addresses) > 0 {
			r.addresses <- report.Addresses[0]
		}
	}
	r.running.Go(func() {
		share, err := train.Run(r.ctx, s, train.Observer{Log: zap.NewNop(), Tell: tell})
		done(share, err)
	})
	if address := <-r.addresses; r.first == "" {
		r.first = address
	}
}

// tell has the operator say something.
func (r *ruled) tell(want int, words ...string) string {
	r.Helper()
	code, out, stderr := try(append([]string{"control", "--join", r.first, "--operator-key", r.key, "--timeout", "1m"}, words...)...)
	if code != want {
		r.Fatalf("control %q: exit code %d: %s%s", words, code, out, stderr)
	}
	return out + stderr
}

// member waits until a member is seen as it should be.
func (r *ruled) member(name, what string, is func(control.Member) bool) (m control.Member) {
	r.Helper()
	clitest.Eventually(r.T, name+" "+what, func() bool {
		seen, err := status.Members(r.ctx, settings.Settings{Network: settings.Network{Join: []string{r.first}, Run: settings.DefaultRun, Key: r.key}}, zap.NewNop())
		at := slices.IndexFunc(seen, func(m control.Member) bool { return m.Name == name })
		if err != nil || at < 0 {
			return false
		}
		m = seen[at]
		return is(m)
	})
	return m
}

// TestAMemberRestsAndTrainsAgain, as the operator says: meanwhile it makes no steps and stays a member. What it cannot do is refused.
func TestAMemberRestsAndTrainsAgain(t *testing.T) {
	t.Parallel()
	r, data := newRuled(t), clitest.Pictures(t, 200, 40)
	fails := func(_ result.Share, err error) {
		if err != nil && r.ctx.Err() == nil {
			t.Error(err)
		}
	}
	drained := make(chan result.Share, 1)
	r.launch("a", fails, "--data="+data, "--optimizer=adamw")
	r.launch("b", func(share result.Share, err error) { fails(share, err); drained <- share }, "--data="+data, "--optimizer=adamw", "--checkpoint="+t.TempDir())
	trains := func(m control.Member) bool { return m.State == control.Training && m.Steps > 0 }
	r.member("a", "trains", trains)
	r.member("b", "trains", trains)
	for role, want := range map[string]string{"both": "holds no rows for others: want the role train or none", "hold": "start it with run --hold"} {
		if said := r.tell(cli.ExitFailed, "role", "b", role); !strings.Contains(said, want) {
			t.Error(said)
		}
	}
	if said := r.tell(cli.ExitFailed, "weight", "b", "0.5"); !strings.Contains(said, "no member of run murmuration holds rows for") {
		t.Error(said)
	}
	if said := r.tell(cli.ExitUsage, "weight", "b", "1000"); !strings.Contains(said, "a number from 0.01 to 100") {
		t.Error(said)
	}
	for range 2 {
		if said := r.tell(cli.ExitDone, "--reason", "a demonstration", "role", "b", "none"); !strings.Contains(said, "rest ") {
			t.Error(said)
		}
		rests := r.member("b", "rests", func(m control.Member) bool { return m.State == control.Idle })
		before := r.member("a", "trains", trains).Steps
		r.member("a", "goes on", func(m control.Member) bool { return m.Steps > before+100 })
		if now := r.member("b", "is a member", func(m control.Member) bool { return true }); now.State != control.Idle || now.Steps > rests.Steps+1 {
			t.Errorf("at rest it was %+v, and is %+v", rests, now)
		}
		r.tell(cli.ExitDone, "role", "b", "train")
		r.member("b", "trains on", func(m control.Member) bool { return trains(m) && m.Steps > rests.Steps+20 })
	}
	r.tell(cli.ExitDone, "drain", "b")
	if share := <-drained; share.Result.Steps == 0 || share.Result.Exchanges == 0 || share.Unsaved != nil || share.Result.TestAccuracy.Mean < 0.5 {
		t.Errorf("who rested ends with %+v", share.Result)
	}
}

// TestWhoRestsAtTheEndHasTheMergedModel: a run that ends while a member rests ends with one model of all, without a step of that one.
func TestWhoRestsAtTheEndHasTheMergedModel(t *testing.T) {
	t.Parallel()
	r, data := newRuled(t), clitest.Pictures(t, 200, 40)
	shares := map[string]chan result.Share{}
	for _, name := range []string{"a", "b"} {
		shares[name] = make(chan result.Share, 1)
		r.launch(name, func(share result.Share, err error) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			shares[name] <- share
		}, "--data="+data, "--final=merge")
	}
	for name := range shares {
		r.member(name, "trains", func(m control.Member) bool { return m.State == control.Training && m.Steps > 0 })
	}
	r.tell(cli.ExitDone, "role", "b", "none")
	rests := r.member("b", "rests", func(m control.Member) bool { return m.State == control.Idle })
	done := r.member("a", "goes on", func(m control.Member) bool { return m.Steps > 2*rests.Steps+100 })
	r.tell(cli.ExitDone, "schedule", "--steps", strconv.FormatUint(done.Steps, 10))
	a, b := (<-shares["a"]).Result, (<-shares["b"]).Result
	if a.ModelHash == "" || b.ModelHash != a.ModelHash || b.Final != settings.FinalMerge || b.Steps > rests.Steps+1 {
		t.Errorf("%s, %q after %v steps; who rested after %d has %s, %q after %v", a.Final, a.ModelHash, a.Steps, rests.Steps, b.Final, b.ModelHash, b.Steps)
	}
}

// TestAHolderGivesByWeight: a taker that weighs a tenth gets less of what is handed out than the other; the same again with 1.
func TestAHolderGivesByWeight(t *testing.T) {
	t.Parallel()
	r, data := newRuled(t), clitest.Pictures(t, 2000, 40)
	nothing := func(result.Share, error) {}
	r.launch("holder", nothing, "--data="+data, "--hold")
	r.launch("a", nothing, "--train-only")
	r.launch("b", nothing, "--train-only")
	steps := func(name string, more uint64) uint64 {
		before := r.member(name, "trains", func(m control.Member) bool { return m.Steps > 0 }).Steps
		return r.member(name, "goes on", func(m control.Member) bool { return m.Steps >= before+more }).Steps
	}
	steps("a", 1)
	steps("b", 1)
	share := func() float64 {
		before := steps("b", 0)
		gone := steps("a", 1000)
		after := steps("a", 2000)
		return float64(steps("b", 0)-before) / float64(after-gone+1000)
	}
	becomes := func(with string, is func(share float64) bool) {
		got := share()
		for tries := 1; !is(got) && tries < 10; tries++ { // a busy machine may favour one of the two for a while
			got = share()
		}
		if !is(got) {
			t.Errorf("with %s it made %.2f of the steps of the other", with, got)
		}
	}
	if said := r.tell(cli.ExitFailed, "weight", "holder", "0.1"); !strings.Contains(said, "no member of run murmuration holds rows for") {
		t.Error(said)
	}
	if said := r.tell(cli.ExitDone, "weight", "b", "0.1"); !strings.Contains(said, "weight ") || !strings.Contains(said, " 0.1\n") {
		t.Error(said)
	}
	becomes("a weight of a tenth", func(share float64) bool { return share < 0.4 })
	r.tell(cli.ExitDone, "weight", "b", "1")
	becomes("the weight 1 again", func(share float64) bool { return share > 0.5 })
	if said := r.tell(cli.ExitFailed, "role", "holder", "none"); !strings.Contains(said, "holds rows for others, as it was started to") {
		t.Error(said)
	}
}
