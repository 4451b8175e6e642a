package peer_test

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// world is one that trains with memberlist's timing, in which some of the members do all
// at once that a member can do wrong (crook_test.go).
type world struct {
	peers, steps int
	pause        time.Duration // of a crook, between two attempts at one victim
}

const (
	worldPace = 250 * time.Millisecond
	// worldLines bounds the lines of each member that honest ones may log of crooks.
	worldLines = 40
)

// verdict is what a run has come to.
type verdict struct {
	accuracy, worst float64
	steps           float64 // of an honest member, on average
	accused         map[transport.PeerID]bool
	lines           int
	heap            uint64 // bytes, at most, in the second half
	goroutines      int    // at most
	kept            map[string]int
	declined        uint64
}

// train has a flock train in which so many of the members are crooks.
func (w world) train(t *testing.T, crooks int) (v verdict) {
	v.accused, v.kept = map[transport.PeerID]bool{}, map[string]int{}
	var mu sync.Mutex
	core, logged := observer.New(zapcore.InfoLevel)
	honest := w.peers - crooks
	flock := peertest.Start(t, peertest.Config{
		Peers: honest, Params: newLesson, Swim: true, Link: memnet.Link{Delay: time.Millisecond},
		Configure: func(_ int, c *peer.Config) {
			c.Training.Exchange.Pace.Every = 1
			c.Training.Work = peer.Work{StepsPerPeer: uint64(w.steps)}
			c.Training.Schedule = optim.Schedule{Rate: 0.2}
			c.Training.Optimizer = &optim.SGD{}
			c.Network.Log = zap.New(core)
			c.Training.Hooks.Quarantined = func(partner transport.PeerID, _ time.Duration, _ error) {
				mu.Lock()
				defer mu.Unlock()
				v.accused[partner] = true
			}
		},
	})
	gradient := lesson(honest+1, worldPace, func(i int) int { return i % 2 })
	for i := range crooks {
		startCrook(t, flock, i, w.pause)
	}
	var trainers sync.WaitGroup
	train := func(i int) {
		p := flock.Peers[i]
		trainers.Go(func() {
			for p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return gradient(i, x, grad) }) == nil {
			}
		})
	}
	for i := range honest {
		train(i)
	}
	time.Sleep(time.Duration(w.steps) * worldPace / 4)
	flock.Add() // one more, which has to copy the model
	train(honest)
	var middle, end runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&middle)
	trainers.Wait()
	runtime.GC()
	runtime.ReadMemStats(&end)
	v.heap, v.goroutines = end.HeapAlloc-min(middle.HeapAlloc, end.HeapAlloc), runtime.NumGoroutine()
	v.lines = logged.Len()
	v.worst = math.Inf(1)
	for i, model := range flock.Models() {
		a, s := accuracy(model), flock.Peers[i].Stats()
		v.accuracy += a / float64(honest+1)
		v.worst = min(v.worst, a)
		if i < honest {
			v.steps += float64(s.Steps) / float64(honest)
		}
		v.declined += s.Exchanges.Declined
		for what, n := range flock.Peers[i].Kept() {
			v.kept[what] = max(v.kept[what], n)
		}
	}
	for _, id := range flock.IDs() {
		if v.accused[id] {
			t.Errorf("an honest member was quarantined: %s", id)
		}
	}
	messages := map[string]int{}
	for _, line := range logged.All() {
		messages[line.Message]++
	}
	for message, n := range messages {
		if n > worldLines*w.peers/4 {
			t.Logf("%6d × %s", n, message)
		}
	}
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("accuracy %.2f %%, the worst %.2f %%; %.0f steps each; %d accused, %d proposals declined; %d lines; %d KiB more at the end than after a quarter, %d goroutines; at most %v",
		v.accuracy, v.worst, v.steps, len(v.accused), v.declined, v.lines, v.heap>>10, v.goroutines, v.kept)
}

var long = flag.Bool("long", false, "let flocks that are disturbed train for as long, and be as large, as docs/TESTING.md says")

// TestHostileWorld: whatever three of sixteen do, the others learn, know each other for
// honest, remember no more than their bounds, and end when they should. With -long one
// does and two do, too, and for longer; under the race detector one of eight.
func TestHostileWorld(t *testing.T) {
	w, most := world{peers: 16, steps: 120, pause: 20 * time.Millisecond}, map[int]float64{3: 4}
	switch {
	case underRace:
		w, most = world{peers: 8, steps: 100, pause: 50 * time.Millisecond}, map[int]float64{1: 2}
	case *long:
		w.steps, most = 200, map[int]float64{1: 1, 2: 2, 3: 4}
	}
	var clean verdict
	for crooks := range 4 {
		most, ok := most[crooks]
		if crooks > 0 && !ok {
			continue
		}
		t.Run(fmt.Sprint(crooks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := w.train(t, crooks)
				t.Log(v)
				if crooks == 0 {
					clean = v
				}
				w.check(t, v, clean, most)
			})
		})
	}
}

// check compares what became of a world with one without crooks, of which it may be worse
// by so many points.
func (w world) check(t *testing.T, v, clean verdict, most float64) {
	if lost := clean.accuracy - v.worst; clean.accuracy < 80 || lost > most+0.5 {
		t.Errorf("the worst honest member loses %.2f points of %.2f %%, at most %g", lost, clean.accuracy, most)
	}
	if math.Abs(v.steps-float64(w.steps)) > float64(w.steps)/10 {
		t.Errorf("the run ended after %.0f steps of %d", v.steps, w.steps)
	}
	for what, n := range v.kept {
		if n > 2*w.peers && n > peer.KeptAtMost(what) {
			t.Errorf("a member keeps %d %s", n, what)
		}
	}
	if most := worldLines * w.peers; v.lines > most {
		t.Errorf("%d lines were logged, at most %d", v.lines, most)
	}
	if most := uint64(64 << 20); v.heap > most {
		t.Errorf("memory has grown by %d bytes", v.heap)
	}
	if most := goroutinesEach * 2 * w.peers * w.peers; v.goroutines > most {
		t.Errorf("%d goroutines, at most %d are to be expected", v.goroutines, most)
	}
}
