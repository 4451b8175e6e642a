package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
)

// starts is how many worlds TestStartsInAnyOrder tries, with gaps of up to 30 seconds.
var starts = flag.Int("starts", 0, "worlds of TestStartsInAnyOrder, with gaps of up to 30 s; 0: two, with short gaps")

// starter starts four processes of one world.
type starter struct {
	rng      *rand.Rand
	gap      time.Duration // the longest between two starts
	data     string
	founder  []string // the settings of the one that begins
	token    string
	args     [4][]string // what each is given in any case
	commands [4]*exec.Cmd
	out, log [4]sharedBuffer
}

// freePorts is the first of so many ports on end that are free, below those that the system gives to
// the sockets of other tests.
func freePorts(t *testing.T, count int) int {
	t.Helper()
	for range 50 {
		port, free := 15_000+rand.IntN(15_000), true
		for i := range count {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+i))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return port
		}
	}
	t.Skip("no run of free ports on this machine")
	return 0
}

func newStarter(t *testing.T, seed uint64, gap time.Duration, work ...string) *starter {
	t.Helper()
	w := &starter{rng: rand.New(rand.NewPCG(seed, 31)), gap: gap, data: clitest.Pictures(t, 400, 20)}
	key := filepath.Join(t.TempDir(), "founder.key")
	if code, _, logged := try("keygen", "--out", key); code != 0 {
		t.Fatal(logged)
	}
	secret, err := keys.Read(key, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys.ID(secret)
	if err != nil {
		t.Fatal(err)
	}
	port := freePorts(t, 1)
	invitation := token.Of("murmuration", string(id), []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)})
	invitation.Founder = string(id)
	w.token = invitation.String()
	for i := range w.args {
		w.args[i] = []string{"run", "--listen", settings.Loopback, "--data", w.data, "--checkpoint", t.TempDir(), "--checkpoint-every", "200ms", "--json"}
	}
	w.args[0][2] = "127.0.0.1:" + strconv.Itoa(port)
	w.args[0] = append(w.args[0], "--key", key)
	w.founder = []string{"--dataset", "mnist", "--batch", "10", "--lr", "0.02", "--min-peers", "4", "--min-peers-wait", "3m"}
	w.founder = append(w.founder, work...)
	return w
}

// run starts one of them.
func (w *starter) run(t *testing.T, i int, more ...string) {
	t.Helper()
	w.out[i].Reset()
	w.log[i].Reset()
	w.commands[i] = clitest.Command(t, 10*time.Minute, append(w.args[i][:len(w.args[i]):len(w.args[i])], more...)...)
	w.commands[i].Stdout, w.commands[i].Stderr = &w.out[i], &w.log[i]
	if err := w.commands[i].Start(); err != nil {
		t.Fatal(err)
	}
}

// start starts the four in random order with random gaps. Bare: even the founder knows only its token.
func (w *starter) start(t *testing.T, bare bool) {
	t.Helper()
	for n, i := range w.rng.Perm(len(w.args)) {
		if n > 0 {
			time.Sleep(time.Duration(w.rng.Int64N(int64(w.gap) + 1)))
		}
		if i == 0 && !bare {
			w.run(t, i, w.founder...)
		} else {
			w.run(t, i, "--join", w.token)
		}
	}
}

// cut ends all at once, once each has kept a checkpoint.
func (w *starter) cut(t *testing.T) {
	t.Helper()
	for i := range w.args {
		folder := w.args[i][6]
		clitest.Eventually(t, "a checkpoint of each", func() bool {
			kept, _ := filepath.Glob(filepath.Join(folder, "checkpoint-*"))
			return len(kept) > 0
		})
	}
	for _, c := range w.commands {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range w.commands {
		if c.Wait() == nil {
			t.Fatal("one was done before the power was cut")
		}
	}
}

// finish sees to it that all end well, in one run.
func (w *starter) finish(t *testing.T) {
	t.Helper()
	for i, c := range w.commands {
		err := c.Wait()
		var r result.Result
		lines := strings.Split(strings.TrimSpace(w.out[i].String()), "\n")
		_ = json.Unmarshal([]byte(lines[len(lines)-1]), &r)
		if err != nil || !r.Joined || r.Peers != len(w.commands) || r.Dataset != "mnist" {
			t.Errorf("process %d: %v; joined %v, %d peers, %s\n%s", i, err, r.Joined, r.Peers, r.Dataset, &w.log[i])
		}
	}
}

// TestStartsInAnyOrder: four processes of which three know only the founder's token, started in any
// order, end in one run; and so do all four that know no more than the token after their machines
// have lost power together.
func TestStartsInAnyOrder(t *testing.T) {
	t.Parallel()
	worlds, gap := *starts, 30*time.Second
	if worlds == 0 {
		worlds, gap = 2, time.Second
	}
	for seed := range uint64(worlds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			powerCut := seed%2 == 1
			first, steps := gap, "600"
			if powerCut {
				first, steps = 0, "2500" // not done before the power is cut
			}
			w := newStarter(t, seed, first, "--steps", steps)
			w.start(t, false)
			if powerCut {
				w.cut(t)
				w.gap = gap
				w.start(t, true)
			}
			w.finish(t)
		})
	}
}

// TestWhoBeganAloneBeginsAnew: those that nobody has told what the run is train alone in the end, on
// settings that nobody gave; when the founder comes after all, they take its settings over.
func TestWhoBeganAloneBeginsAnew(t *testing.T) {
	t.Parallel()
	work := []string{"--epochs", "50"}
	w := newStarter(t, 1, 0, work...)
	for i := 1; i < len(w.commands); i++ {
		w.run(t, i, append(work, "--join", w.token, "--join-wait", "0s")...)
	}
	clitest.Eventually(t, "one that trains alone", func() bool { return strings.Contains(w.log[1].String(), "training mlp on glyphs") })
	w.run(t, 0, w.founder...)
	w.finish(t)
}

// TestOneListForAll: processes that are all given one list of addresses, their own included, and no
// more, find out that they wait for each other, and begin without waiting for long.
func TestOneListForAll(t *testing.T) {
	t.Parallel()
	w := newStarter(t, 1, 0)
	for i := range w.args {
		w.args[i] = []string{"run", "--dataset", "mnist", "--data", w.data, "--batch", "10", "--steps", "600", "--min-peers", "4", "--min-peers-wait", "3m", "--join-wait", "1h", "--json"}
	}
	w.args[0] = append(w.args[0], "--checkpoint", t.TempDir()) // it remembers who was at which address
	first := freePorts(t, len(w.args))
	for i := range w.args {
		address := "127.0.0.1:" + strconv.Itoa(first+i)
		w.args[i] = append(w.args[i], "--listen", address)
		for j := range w.args {
			w.args[j] = append(w.args[j], "--join", address)
		}
	}
	for i := range w.args {
		w.run(t, i)
	}
	w.finish(t)
}
