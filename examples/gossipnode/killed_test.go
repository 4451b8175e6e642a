package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

var kills = flag.Int("kills", 0, "kill all four processes of TestKilledOften so many times; takes a minute or two for ten")

// killedRun is four processes that are killed all at once, and started again with the
// same flags but for where the first one is: each life it listens at a port that the system
// chooses, and the others join it there.
type killedRun struct {
	t        *testing.T
	args     []string // of each
	folders  []checkpoint.Folder
	model    nets.Model
	interval time.Duration
	rng      *rand.Rand

	processes []*exec.Cmd
	killed    int // how often
	out, logs []*sharedBuffer
}

func newKilledRun(t *testing.T, model string, interval time.Duration, seed uint64, args ...string) *killedRun {
	t.Helper()
	k := &killedRun{t: t, interval: interval, rng: rand.New(rand.NewPCG(seed, seed)), args: args}
	var err error
	if k.model, err = nets.ByName(model, dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10); err != nil {
		t.Fatal(err)
	}
	learned := "glyphs"
	for i, arg := range args {
		if arg == "--dataset" {
			learned = args[i+1]
		}
	}
	dir := t.TempDir()
	for i := range 4 {
		k.folders = append(k.folders, checkpoint.Folder{
			Dir: filepath.Join(dir, strconv.Itoa(i)), Run: "murmuration", Dataset: learned, Model: model, Keep: 3,
		})
	}
	return k
}

// start starts all four.
func (k *killedRun) start() {
	k.t.Helper()
	k.processes, k.out, k.logs = nil, nil, nil
	for i, folder := range k.folders {
		args := append([]string{"run", "--model", folder.Model, "--part", fmt.Sprintf("%d/4", i), "--listen", settings.Loopback, "--min-peers", "4",
			"--checkpoint", folder.Dir, "--checkpoint-every", k.interval.String(), "--json"}, k.args...)
		if i > 0 {
			args = append(args, "--join", joinAddress(k.t, k.logs[0]))
		}
		cmd := commandWithin(k.t, 10*time.Minute, args...)
		cmd.Env = append(cmd.Env, "GOMAXPROCS=2")
		out, logs := new(sharedBuffer), new(sharedBuffer)
		cmd.Stdout, cmd.Stderr = out, logs
		if err := cmd.Start(); err != nil {
			k.t.Fatal(err)
		}
		k.processes, k.out, k.logs = append(k.processes, cmd), append(k.out, out), append(k.logs, logs)
	}
}

// joinAddress waits until a process tells where it is to be joined.
func joinAddress(t *testing.T, logs *sharedBuffer) (address string) {
	t.Helper()
	clitest.Eventually(t, "a peer tells its address", func() bool {
		_, after, told := strings.Cut(logs.String(), "--join ")
		address, _, _ = strings.Cut(after, "\n")
		return told && strings.Contains(after, "\n")
	})
	if invitation, err := token.Parse(address); err == nil { // older builds tell an address
		address = invitation.Join()[0]
	}
	return address
}

// kill kills all four at once.
func (k *killedRun) kill() {
	k.killed++
	for _, p := range k.processes {
		_ = p.Process.Kill() // one that has ended is no worse off
	}
	for _, p := range k.processes {
		_ = p.Wait()
	}
}

// newest is what the newest checkpoint of a peer says; every file in the folder must be
// sound, and none half written under a checkpoint's name.
func (k *killedRun) newest(i int) (steps uint64, saved time.Time) {
	k.t.Helper()
	c := k.folders[i]
	names, err := c.Names()
	if err != nil || len(names) > c.Keep+k.killed { // one more for each time that it was killed before it removed the oldest
		k.t.Errorf("peer %d: checkpoints %v, error %v", i, names, err)
	}
	for _, name := range names {
		path := filepath.Join(c.Dir, name)
		taken, err := checkpoint.Read(c, path, tensor.NewParams(k.model.Layout()))
		if err != nil {
			k.t.Fatalf("peer %d: %s: %v", i, name, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			k.t.Fatal(err)
		}
		steps, saved = taken.Progress.Steps, info.ModTime()
	}
	return steps, saved
}

// killOnce starts all four, kills them at a random moment, and checks what is left. Early
// is before they have saved anything in this life.
func (k *killedRun) killOnce(early bool) {
	k.t.Helper()
	before := make([]uint64, len(k.folders))
	for i := range k.folders {
		before[i], _ = k.newest(i)
	}
	began := time.Now()
	k.start()
	random := time.Duration(k.rng.Int64N(int64(2 * k.interval)))
	if early {
		time.Sleep(random)
	} else {
		clitest.Eventually(k.t, "all save a checkpoint", func() bool {
			for i := range k.folders {
				if names, _ := k.folders[i].Names(); len(names) == 0 {
					return false
				} else if info, err := os.Stat(filepath.Join(k.folders[i].Dir, names[len(names)-1])); err != nil || info.ModTime().Before(began) {
					return false
				}
			}
			return true
		})
		time.Sleep(random)
	}
	killed := time.Now()
	k.kill()
	const slack = time.Minute // a busy machine, and the time that saving takes
	for i := range k.folders {
		steps, saved := k.newest(i)
		if steps < before[i] {
			k.t.Errorf("peer %d: the newest checkpoint is of step %d, and was of %d", i, steps, before[i])
		}
		if !early && saved.Before(began) {
			k.t.Errorf("peer %d has saved nothing in this life", i)
		}
		over := strings.Contains(k.out[i].String(), `"resumed_step"`)
		if age := killed.Sub(saved); !early && !over && age > k.interval+slack {
			k.t.Errorf("peer %d: the newest checkpoint is %s old, and the interval %s", i, age, k.interval)
		}
		if text := k.logs[i].String(); before[i] > 0 && !early && !strings.Contains(text, "after "+cli.Plural(before[i], "step")+", ") {
			k.t.Errorf("peer %d has not gone on from step %d:\n%s", i, before[i], text)
		}
	}
	steps, _ := k.newest(0)
	k.t.Logf("killed after %.1f s at step %d of peer 0 or later, was %d", killed.Sub(began).Seconds(), steps, before[0])
}

// finish lets all four do the rest of the work, and returns what they end with.
func (k *killedRun) finish() (accuracy float64, shares []result.Result) {
	k.t.Helper()
	before := make([]uint64, len(k.folders))
	for i := range k.folders {
		before[i], _ = k.newest(i)
	}
	k.start()
	var waiting sync.WaitGroup
	for i, p := range k.processes {
		waiting.Go(func() {
			if err := p.Wait(); err != nil {
				k.t.Errorf("peer %d: %v\n%s", i, err, k.logs[i])
			}
		})
	}
	waiting.Wait()
	if k.t.Failed() {
		k.t.FailNow()
	}
	for i := range k.folders {
		r := lastLine(k.t, k.out[i].String())
		if r.ResumedStep != before[i] || r.Steps < r.ResumedStep {
			k.t.Errorf("peer %d: resumed_step %d, and the checkpoint is of %d; %d steps", i, r.ResumedStep, before[i], r.Steps)
		}
		shares = append(shares, r)
		accuracy += float64(r.TestAccuracy.Mean) / float64(len(k.folders))
	}
	return accuracy, shares
}

// stepsOf is what all have done, in all their lives.
func stepsOf(shares []result.Result) (steps uint64) {
	for _, r := range shares {
		steps += r.Steps
	}
	return steps
}

// TestKilledTwice shows that four processes that are killed at once go on from their
// checkpoints when they are started again, and do the work that is left, no more.
func TestKilledTwice(t *testing.T) {
	t.Parallel()
	const perPeer = 1500
	k := newKilledRun(t, "mlp", 150*time.Millisecond, 1,
		"--dataset", "mnist", "--data", clitest.Pictures(t, 2000, 200), "--batch", "32", "--steps", strconv.Itoa(perPeer), "--lr", "0.003")
	for range 2 {
		k.killOnce(false)
	}
	accuracy, shares := k.finish()
	if accuracy < 0.95 {
		t.Errorf("accuracy %.4f", accuracy)
	}
	// What was done after the last checkpoints is done again, and members learn with
	// some delay what the others do.
	if steps := stepsOf(shares); steps < 4*perPeer*9/10 || steps > 4*perPeer*3/2 {
		t.Errorf("%d steps in all lives, want about %d", steps, 4*perPeer)
	}
}

// TestKilledOften is the long form, for -kills: as many kills of four processes, at
// random moments, cost no more than half a point of accuracy.
func TestKilledOften(t *testing.T) {
	if *kills == 0 {
		t.Skip("give -kills 10: it takes a few minutes")
	}
	work := []string{"--epochs", strconv.Itoa(6 * *kills)} // on a fast machine too, there is work left after the last
	undisturbed, shares := newKilledRun(t, "mlp", time.Second, 1, work...).finish()
	t.Logf("undisturbed: %.2f %%, %d steps, %.1f s", 100*undisturbed, stepsOf(shares), shares[0].Seconds)
	k := newKilledRun(t, "mlp", time.Second, 7, work...)
	for i := range *kills {
		k.killOnce(i%4 == 3)
	}
	accuracy, shares := k.finish()
	t.Logf("killed %d times: %.2f %%, %d steps, resumed %d", *kills, 100*accuracy, stepsOf(shares), shares[0].ResumedStep)
	if math.Abs(accuracy-undisturbed) > 0.005 {
		t.Errorf("accuracy %.2f %%, and %.2f %% undisturbed", 100*accuracy, 100*undisturbed)
	}
}
