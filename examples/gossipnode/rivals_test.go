package main

import (
	"bytes"
	"fmt"
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
)

// together starts processes that find each other, each with flags of its own beside the
// common ones, waits for them, and returns what they end with.
func together(t *testing.T, own [][]string, common ...string) []result.Result {
	t.Helper()
	processes, out, logs := make([]*exec.Cmd, len(own)), make([]sharedBuffer, len(own)), make([]sharedBuffer, len(own))
	for i := range own {
		args := append([]string{"run", "--listen", settings.Loopback, "--part", fmt.Sprintf("%d/%d", i, len(own)), "--min-peers", strconv.Itoa(len(own)), "--json"}, common...)
		if i > 0 {
			args = append(args, "--join", joinAddress(t, &logs[0]))
		}
		processes[i] = command(t, append(args, own[i]...)...)
		processes[i].Stdout, processes[i].Stderr = &out[i], &logs[i]
		if err := processes[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	results := make([]result.Result, len(own))
	var waiting sync.WaitGroup
	for i, p := range processes {
		waiting.Go(func() {
			if err := p.Wait(); err != nil {
				t.Errorf("peer %d: %v\n%s", i, err, &logs[i])
			}
		})
	}
	waiting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i := range results {
		results[i] = lastLine(t, out[i].String())
	}
	return results
}

// checkAlike tests that all have learned, and the same.
func checkAlike(t *testing.T, results []result.Result) {
	t.Helper()
	for i, r := range results {
		if r.TestAccuracy.Mean < 0.9 || r.ModelHash == "" || r.ModelHash != results[0].ModelHash {
			t.Errorf("peer %d: accuracy %.3f, model %s, that of peer 0 is %s", i, r.TestAccuracy.Mean, r.ModelHash, results[0].ModelHash)
		}
	}
}

// TestNamedServerServes: three processes, of which the one that all name serves: it sends
// the parameters to two, while those send gradients to one.
func TestNamedServerServes(t *testing.T) {
	t.Parallel()
	const server = 2
	var own [][]string
	var id string
	for i := range 3 {
		path := filepath.Join(t.TempDir(), "key")
		made := newIdentity(t, path)
		own = append(own, []string{"--key", path})
		if i == server {
			id = made
		}
	}
	results := together(t, own, "--dataset", "mnist", "--data", clitest.Pictures(t, 600, 200), "--model", "softmax", "--batch", "10", "--lr", "0.01",
		"--steps", "300", "--strategy", "ps-bsp", "--server", id)
	checkAlike(t, results)
	for i, r := range results {
		if r.Steps < 250 || i != server && results[server].BytesSent < r.BytesSent*3/2 {
			t.Errorf("peer %d has made %d steps and sent %d bytes, the server %d", i, r.Steps, r.BytesSent, results[server].BytesSent)
		}
	}
}

// TestBalanceOverProcesses: sharing the pictures out by speed is told over real sockets,
// and all make the same steps of them.
func TestBalanceOverProcesses(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{settings.StrategyAllReduce, settings.StrategyBSP} {
		t.Run(strategy, func(t *testing.T) {
			results := together(t, make([][]string, 3), "--dataset", "mnist", "--data", clitest.Pictures(t, 600, 200), "--model", "softmax", "--batch", "10",
				"--lr", "0.01", "--steps", "300", "--strategy", strategy, "--balance")
			checkAlike(t, results)
		})
	}
}

// newIdentity makes a key in a file, and tells whose it is.
func newIdentity(t *testing.T, path string) (id string) {
	t.Helper()
	code, out, text := try("keygen", "--out", path)
	if code != cli.ExitDone {
		t.Fatalf("keygen: exit code %d\n%s", code, text)
	}
	return strings.Fields(out[strings.Index(out, settings.PeerIDPrefix):])[0]
}

// TestTwoServersInProcesses: four processes with a half of the parameters at two of them, which train too or not, end with
// one model, and one is told of a number of servers that cannot be.
func TestTwoServersInProcesses(t *testing.T) {
	t.Parallel()
	data := clitest.Pictures(t, 800, 200)
	for trainers, more := range map[uint64][]string{4: {}, 2: {"--serve-only"}} {
		var out, logged bytes.Buffer
		cmd := command(t, localArgs(data, append(more, "--steps", "300", "--strategy", "ps-bsp", "--servers", "2")...)...)
		cmd.Stdout, cmd.Stderr = &out, &logged
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, &logged)
		}
		r := lastLine(t, out.String())
		checkLearned(t, r)
		if r.Peers != 4 || r.ModelHash == "" || r.Steps < trainers*300 || r.Steps > trainers*300+50 {
			t.Errorf("%s", &out)
		}
	}
	for _, wrong := range []string{"--servers 2", "--strategy ps-bsp --servers 0", "--strategy ps-bsp --servers 65", "--strategy ps-bsp --servers 4 --serve-only"} {
		if code, _, text := try(append([]string{"local"}, strings.Fields(wrong)...)...); code != cli.ExitUsage || !strings.Contains(text, "serve") {
			t.Errorf("%s: exit code %d, %s", wrong, code, text)
		}
	}
}

// TestWorkerOrServerKilled: kill -9 of one of four processes with a server, a worker, the server itself or one of
// four servers: the others do the work, and end with one model.
func TestWorkerOrServerKilled(t *testing.T) {
	t.Parallel()
	const server, worker, each = 0, 3, 600
	for _, c := range []struct {
		strategy        string
		servers, victim int
	}{{settings.StrategyASP, 1, worker}, {settings.StrategyDSSP, 1, server}, {settings.StrategyBSP, 4, worker}} {
		t.Run(fmt.Sprint(c.strategy, " of ", c.servers), func(t *testing.T) {
			t.Parallel()
			victim := c.victim
			k := newKilledRun(t, "softmax", 100*time.Millisecond, 1, "--dataset", "mnist", "--data", clitest.Pictures(t, 800, 200), "--batch", "10",
				"--lr", "0.01", "--steps", strconv.Itoa(each), "--strategy", c.strategy, "--servers", strconv.Itoa(c.servers))
			if err := os.MkdirAll(k.folders[server].Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.servers == 1 {
				k.args = append(k.args, "--server", newIdentity(t, filepath.Join(k.folders[server].Dir, "node.key")))
			}
			k.start()
			clitest.Eventually(t, "all train", func() bool { // who has no sum yet knows no other place to go on from
				for _, folder := range k.folders {
					if names, _ := folder.Names(); len(names) == 0 {
						return false
					}
				}
				return true
			})
			if strings.Contains(k.out[victim].String(), `"steps"`) {
				t.Fatal("the run was over before anybody was killed")
			}
			_ = k.processes[victim].Process.Kill() // an error shows in what the others say
			_ = k.processes[victim].Wait()
			var results []result.Result
			for i, p := range k.processes {
				if i == victim {
					continue
				}
				if err := p.Wait(); err != nil {
					t.Fatalf("peer %d: %v\n%s", i, err, k.logs[i])
				}
				results = append(results, lastLine(t, k.out[i].String()))
			}
			if said := fmt.Sprint(k.logs); c.servers > 1 && !strings.Contains(said, "takes its place") {
				t.Errorf("nobody is told that a server is lost:\n%s", said)
			}
			checkAlike(t, results)
			steps := uint64(0)
			for _, r := range results {
				t.Logf("%d steps in %.1f s, %d lost", r.Steps, r.Seconds, r.PeersLost) // they may be done before they know
				steps += r.Steps
			}
			if steps <= 3*each {
				t.Errorf("%d steps: nobody has done those of the dead one", steps)
			}
		})
	}
}
