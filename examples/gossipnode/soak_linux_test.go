package main

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var (
	soak     = flag.Duration("soak", 0, "disturb the four processes of TestSoak for so long, say 20m; give go test a -timeout above it")
	soakSeed = flag.Uint64("soak-seed", 1, "seed of TestSoak's faults")
)

// Times of a soak, as shares of it. A look is taken at both ends of what is compared.
const (
	soakFaults  = 9                // that there are at least
	soakEvery   = 20 * time.Second // between two faults, at most
	soakLook    = 2 * time.Second  // between two looks at the metrics
	soakRipe    = 20               // a share of the soak after which a process has warmed up
	soakQuarter = 4
)

// TestSoak disturbs four processes for as long as -soak says: kills one and starts it
// again with the same flags, freezes one, or cuts all its connections. Memory, goroutines
// and files do not grow, no peer is stuck, and what the counters of all say agrees.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("give -soak 1m, or -soak 20m -timeout 40m: it takes that long")
	}
	f := newSoakFlock(t, *soak)
	for i := range f.peers {
		f.start(i)
	}
	clitest.Eventually(t, "all train together", func() bool {
		f.look()
		return !slices.ContainsFunc(f.peers, func(p *soakPeer) bool {
			return p.last().members() != float64(len(f.peers)) || p.last().completed() == 0
		})
	})
	rng := rand.New(rand.NewPCG(*soakSeed, *soakSeed))
	every := min(soakEvery, *soak/soakFaults)
	f.begun = time.Now()
	var faults [3]int
	for time.Since(f.begun) < *soak {
		next := time.Now().Add(every)
		kind, victim := rng.IntN(len(faults)), rng.IntN(len(f.peers))
		if kind == 0 && victim == 0 {
			victim = 1 + rng.IntN(len(f.peers)-1) // the first lives all the time, for what grows slowly
		}
		faults[kind]++
		switch kind {
		case 0:
			f.kill(victim)
			f.start(victim)
		case 1:
			f.freeze(victim, every/3)
		case 2:
			f.cut(victim, every/3)
		}
		f.watch(time.Until(next))
		f.checkAlive(next.Add(-every))
	}
	f.watch(2 * every) // undisturbed, so that what is in doubt can be cleared up
	t.Logf("%d kills, %d freezes, %d cuts in %s, seed %d", faults[0], faults[1], faults[2], *soak, *soakSeed)
	f.checkTogether()
	f.checkCounters()
	f.checkGrowth()
	for _, p := range f.peers {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	for i, p := range f.peers {
		if err := p.cmd.Wait(); exitedWith(err) != cli.ExitFailed { // asked to end before the work was done
			t.Errorf("peer %d: %v\n%s", i, err, p.logs)
		}
	}
}

// kill kills a process, with a last look at what it has counted.
func (f *soakFlock) kill(victim int) {
	p := f.peers[victim]
	p.look()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// freeze stops a process for some time.
func (f *soakFlock) freeze(victim int, lasting time.Duration) {
	process := f.peers[victim].cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	f.frozen = victim
	f.watch(lasting)
	f.frozen = -1
	if err := process.Signal(syscall.SIGCONT); err != nil {
		f.t.Fatal(err)
	}
}
