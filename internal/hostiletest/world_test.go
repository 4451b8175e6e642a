package hostiletest_test

import (
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
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// world is one that trains with memberlist's timing, in which some of the members are crooks.
type world struct {
	peers, steps int
	pause        time.Duration // of a crook, between two attempts at one victim
}

const (
	worldPace = 250 * time.Millisecond
	// worldLoss is how many points of accuracy the worst honest member may lose to crooks. Where nothing is clipped
	// three of sixteen cost more.
	worldLoss = 0.5
	// worldLines bounds the lines of each member that honest ones may log of crooks.
	worldLines = 40
	// worldGoroutines is what two members that are connected have running at either end, in memory.
	worldGoroutines = 4
)

// verdict is what a run has come to.
type verdict struct {
	accuracy, worst float64
	steps           float64 // of an honest member, on average
	accused         map[transport.PeerID]bool
	lines           int
	heap            uint64 // bytes more at the end than after a quarter
	goroutines      int
	links, inDoubt  int // at most
	declined        uint64
}

// train has a flock train in which so many of the members are crooks.
func (w world) train(t *testing.T, crooks int) (v verdict) {
	v.accused = map[transport.PeerID]bool{}
	var mu sync.Mutex
	core, logged := observer.New(zapcore.InfoLevel)
	honest := w.peers - crooks
	flock := peertest.Start(t, peertest.Config{
		Peers: honest, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond},
		Configure: func(_ int, c *peer.Config) {
			learner(c)
			c.Training.Work = peer.Work{StepsPerPeer: uint64(w.steps)}
			c.Network.Log = zap.New(core)
			c.Training.Hooks.Quarantined = func(partner transport.PeerID, _ time.Duration, _ error) {
				mu.Lock()
				defer mu.Unlock()
				v.accused[partner] = true
			}
		},
	})
	gradient := lesson(honest+1, worldPace)
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
	middle := inUse()
	trainers.Wait()
	end := inUse()
	v.heap, v.goroutines, v.lines = end-min(middle, end), runtime.NumGoroutine(), logged.Len()
	v.worst = math.Inf(1)
	for i, model := range flock.Models() {
		a, s := accuracy(model), flock.Peers[i].Stats()
		v.accuracy += a / float64(honest+1)
		v.worst = min(v.worst, a)
		if i < honest {
			v.steps += float64(s.Steps) / float64(honest)
		}
		v.declined += s.Exchanges.Declined
		v.links, v.inDoubt = max(v.links, len(s.Exchanges.Links)), max(v.inDoubt, int(s.Exchanges.InDoubt))
		if s.Incarnation != 1 || s.Members > w.peers+1 || s.Duplicates > crooks {
			t.Errorf("peer %d is in its life %d, and sees %d members, and %d that are two", i, s.Incarnation, s.Members, s.Duplicates)
		}
	}
	for _, id := range flock.IDs() {
		if v.accused[id] {
			t.Errorf("an honest member was quarantined: %s", id)
		}
	}
	return v
}

// inUse is the memory that is in use.
func inUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func (v verdict) String() string {
	return fmt.Sprintf("accuracy %.2f %%, the worst %.2f %%; %.0f steps each; %d accused, %d proposals declined; %d lines; %d KiB more at the end than after a quarter, %d goroutines; at most %d links and %d slices in doubt",
		v.accuracy, v.worst, v.steps, len(v.accused), v.declined, v.lines, v.heap>>10, v.goroutines, v.links, v.inDoubt)
}

// TestHostileWorld: whatever three of sixteen do, the others learn, know each other for honest, remember no
// more than their bounds, and end when they should. With -long one does and two do, too, and for longer;
// under the race detector one of eight.
func TestHostileWorld(t *testing.T) {
	w, among := world{peers: 16, steps: 80, pause: 20 * time.Millisecond}, []int{0, 3}
	switch {
	case underRace:
		w, among = world{peers: 8, steps: 100, pause: 50 * time.Millisecond}, []int{0, 1}
	case *long:
		w.steps, among = 200, []int{0, 1, 2, 3}
	}
	var clean verdict
	for _, crooks := range among {
		t.Run(fmt.Sprint(crooks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := w.train(t, crooks)
				t.Log(v)
				if crooks == 0 {
					clean = v
				}
				w.check(t, v, clean)
			})
		})
	}
}

// check compares what became of a world with one without crooks.
func (w world) check(t *testing.T, v, clean verdict) {
	if lost := clean.accuracy - v.worst; clean.accuracy < 80 || lost > worldLoss {
		t.Errorf("the worst honest member loses %.2f points of %.2f %%, at most %g", lost, clean.accuracy, worldLoss)
	}
	if math.Abs(v.steps-float64(w.steps)) > float64(w.steps)/10 {
		t.Errorf("the run ended after %.0f steps of %d", v.steps, w.steps)
	}
	if v.links > 2*w.peers || v.inDoubt > 2*w.peers {
		t.Errorf("a member keeps %d links, and %d slices in doubt", v.links, v.inDoubt)
	}
	if most := worldLines * w.peers; v.lines > most {
		t.Errorf("%d lines were logged, at most %d", v.lines, most)
	}
	if most := uint64(64 << 20); v.heap > most {
		t.Errorf("memory has grown by %d bytes", v.heap)
	}
	if most := worldGoroutines * 2 * w.peers * w.peers; v.goroutines > most {
		t.Errorf("%d goroutines, at most %d are to be expected", v.goroutines, most)
	}
}
