//go:build unix

package simulate

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestCrowd is a thousand peers with 100 steps and exchanges each, 10 unless -tables is
// given, of whom 32 are evaluated. What an event costs, data and evaluation aside, is
// compared with that in a flock of a tenth.
func TestCrowd(t *testing.T) {
	const (
		most  = 60 * time.Second
		ratio = 1.5
	)
	if testing.Short() {
		t.Skip("left out by -short: simulates a thousand peers")
	}
	steps, slack := 10, 2.0 // what a short run begins with counts for more
	if *tables {
		steps, slack = 100, 1
	}
	cost := func(peers int) (perEvent, took time.Duration) {
		began := time.Now()
		var spent time.Duration
		o := trial(t, fmt.Sprintf("--peers %d --model softmax --steps %d --every 1 --points 0", peers, steps), func(s *peertest.Simulation) {
			s.Task = &clocked{Task: s.Task, spent: &spent, began: processorTime()}
		})
		took = time.Since(began)
		if o.Steps != uint64(peers*steps) || o.Final.Mean < 0.2 {
			t.Errorf("%d peers: %d steps, accuracy %g", peers, o.Steps, o.Final.Mean)
		}
		return spent / time.Duration(o.Events), took
	}
	few, _ := cost(100)
	many, took := cost(1000)
	t.Logf("an event costs %s of 100 peers, %s of 1000: %.2f times as much; %s in all", few, many, float64(many)/float64(few), took)
	if *tables && took > most {
		t.Errorf("a thousand peers took %s, want %s", took, most)
	}
	if r := float64(many) / float64(few); r > ratio*slack {
		t.Errorf("an event of a thousand peers costs %.2f times as much as of a hundred, want %.1f", r, ratio)
	}
}

// TestThousandsComeAndGo is 2,000 peers, more than the data has batches for, of whom one in a
// hundred goes and comes back. With -tables it is 10,000 with 100 steps each, and what they
// take of the machine is bounded.
func TestThousandsComeAndGo(t *testing.T) {
	const (
		most     = 180 * time.Second // of processor time
		mostHeld = 3 << 30           // bytes
	)
	if testing.Short() {
		t.Skip("left out by -short: simulates two thousand peers")
	}
	peers, steps, stepTime := 2000, 8, 125*time.Millisecond
	if *tables {
		peers, steps, stepTime = 10_000, 100, 10*time.Millisecond
	}
	args := strings.Fields(fmt.Sprintf("--peers %d --model softmax --steps %d --step-time %s --every 1 --points 0", peers, steps, stepTime))
	for i := range peers / 100 {
		way, at := []string{"--leave", "--crash"}[i%2], 100+400*i/(peers/100)
		args = append(args, way, fmt.Sprintf("%d@%dms", 100*i+i%7, at), "--arrive", fmt.Sprintf("%d@%dms", 100*i+i%7, at+300))
	}
	before := processorTime()
	_, r := simulateOnce(t, args...)
	took := processorTime() - before
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d peers: %s of processor time, %d MB, %d events, accuracy %.3f, %d lost", peers, took, m.Sys>>20, r.Events, r.TestAccuracy.Mean, r.PeersLost)
	if r.Steps != uint64(peers*steps) || r.PeersLost != peers/100 || r.TestAccuracy.Mean < 0.2 {
		t.Errorf("%d steps, %d peers lost, accuracy %g", r.Steps, r.PeersLost, r.TestAccuracy.Mean)
	}
	if *tables && (took > most || m.Sys > mostHeld) {
		t.Errorf("it took %s and %d bytes, want at most %s and %d", took, m.Sys, most, uint64(mostHeld))
	}
}

// clocked notes the processor time from the beginning of a simulation until its models are
// evaluated, when all is done.
type clocked struct {
	peertest.Task
	began time.Duration
	once  sync.Once
	spent *time.Duration
}

// Evaluate implements peertest.Task.
func (t *clocked) Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64) {
	t.once.Do(func() { *t.spent = processorTime() - t.began })
	return t.Task.Evaluate(x, glance)
}

// TestCrowdIsDeterministic compares the JSON of two runs of many peers.
func TestCrowdIsDeterministic(t *testing.T) {
	t.Parallel()
	args := strings.Fields("--peers 120 --model softmax --steps 5 --every 1 --points 2")
	one, _ := simulateOnce(t, args...)
	if two, _ := simulateOnce(t, args...); one != two {
		t.Errorf("the same seed gave\n%s\nand\n%s", one, two)
	}
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
