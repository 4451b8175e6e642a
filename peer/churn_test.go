package peer_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

var hour = flag.Bool("hour", false, "let a fifth of 200 peers change every virtual minute of an hour; takes long, so give -timeout 0")

// churn is a flock of which a fifth comes and goes each minute: half of those who go
// crash and half leave; half of those who come are back and half are new.
type churn struct {
	t        *testing.T
	peers    int
	lasts    time.Duration
	pace     time.Duration // of a step
	flock    *peertest.Flock
	gradient peertest.Gradient
	random   *rand.Rand
	trainers sync.WaitGroup
	leaving  sync.WaitGroup

	went  map[int]time.Time // when peers that may come back went
	alone map[int]time.Time // since when living peers see nobody
	worst time.Duration     // that one was alone
}

const (
	churnShare   = 0.2 // of the peers, a minute
	aloneAtMost  = 30 * time.Second
	mayReturn    = 15 * time.Second
	churnSettles = time.Minute // after the last change
)

func startChurn(t *testing.T, peers int, lasts, pace time.Duration, swim bool) *churn {
	c := &churn{
		t: t, peers: peers, lasts: lasts, pace: pace, random: rand.New(rand.NewPCG(8, 8)),
		went: map[int]time.Time{}, alone: map[int]time.Time{},
	}
	most := peers + int(churnShare*float64(peers)*lasts.Minutes()) + 1
	c.gradient = lesson(most, pace, func(i int) int { return i % 2 })
	c.flock = peertest.Start(t, peertest.Config{
		Peers: peers, Params: newLesson, Swim: swim, Link: memnet.Link{Delay: time.Millisecond},
		Configure: func(_ int, c *peer.Config) {
			c.Training.Exchange.Pace.Every = 1
			c.Training.Schedule = optim.Schedule{Rate: 0.2}
			c.Training.Optimizer = &optim.SGD{}
		},
	})
	for i := range c.flock.Peers {
		c.train(i)
	}
	return c
}

// train has peer i train until it is gone.
func (c *churn) train(i int) {
	p := c.flock.Peers[i]
	c.trainers.Go(func() {
		for p.Step(c.t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return c.gradient(i, x, grad) }) == nil {
		}
	})
}

// run lets time pass, with or without changes.
func (c *churn) run(changes bool) {
	every := time.Duration(float64(time.Minute) / (churnShare * float64(c.peers)))
	next := time.Now().Add(every)
	for end := time.Now().Add(c.lasts); time.Now().Before(end); time.Sleep(time.Second) {
		for ; changes && !time.Now().Before(next); next = next.Add(every) {
			c.change()
		}
		c.look()
	}
	for end := time.Now().Add(churnSettles); time.Now().Before(end); time.Sleep(time.Second) {
		c.look()
	}
}

// change has one peer go and another come.
func (c *churn) change() {
	living := c.flock.Living()
	goes := living[c.random.IntN(len(living))]
	if c.random.IntN(2) == 0 {
		c.flock.Crash(goes)
	} else {
		c.leaving.Go(func() { c.flock.Leave(goes) })
		for slices.Contains(c.flock.Living(), goes) {
			runtime.Gosched()
		}
	}
	comes := -1
	for i, when := range c.went {
		if time.Since(when) > mayReturn && (comes < 0 || i < comes) {
			comes = i
		}
	}
	c.went[goes] = time.Now()
	delete(c.alone, goes)
	if comes >= 0 && c.random.IntN(2) == 0 {
		delete(c.went, comes)
		c.flock.Return(comes)
	} else {
		comes = len(c.flock.Peers)
		c.flock.Add()
	}
	c.train(comes)
}

// look notes who sees nobody.
func (c *churn) look() {
	for _, i := range c.flock.Living() {
		if c.flock.Peers[i].Stats().Members > 1 {
			delete(c.alone, i)
		} else if _, known := c.alone[i]; !known {
			c.alone[i] = time.Now()
		} else {
			c.worst = max(c.worst, time.Since(c.alone[i]))
		}
	}
}

// finish says what the living have learned, and checks what they have kept.
func (c *churn) finish() (accuracy float64) {
	var models []tensor.Vector
	living := c.flock.Living()
	for _, i := range living {
		p := c.flock.Peers[i]
		x := make(tensor.Vector, newLesson().Layout().Len())
		p.Snapshot(x, 0)
		models = append(models, x)
		if s := p.Stats(); s.Members != len(living) {
			c.t.Errorf("peer %d sees %d members a minute after the last change, %d live", i, s.Members, len(living))
		}
		for what, n := range p.Kept() {
			if n > 2*c.peers && n > peer.KeptAtMost(what) {
				c.t.Errorf("peer %d keeps %d %s", i, n, what)
			}
		}
	}
	if c.worst > aloneAtMost {
		c.t.Errorf("a peer saw nobody for %s", c.worst)
	}
	goroutines := runtime.NumGoroutine()
	for _, i := range living {
		c.leaving.Go(func() { c.flock.Leave(i) })
	}
	c.leaving.Wait()
	c.trainers.Wait()
	c.t.Logf("%d goroutines with %d peers, of %d in all; one saw nobody for %s", goroutines, len(living), len(c.flock.Peers), c.worst)
	if most := goroutinesEach * len(living) * len(living); goroutines > most {
		c.t.Errorf("%d goroutines with %d peers, at most %d are to be expected", goroutines, len(living), most)
	}
	return accuracies(models)
}

// goroutinesEach bounds the goroutines for each pair of peers, who have a stream or
// two between them.
const goroutinesEach = 6

// TestAFifthChangesEveryMinute: the flock learns what it would without, nobody is left
// alone, and nothing of those who are gone stays.
func TestAFifthChangesEveryMinute(t *testing.T) {
	peers, lasts, pace := 16, 3*time.Minute, 2*time.Second
	switch {
	case *long:
		peers, lasts, pace = 24, 5*time.Minute, 4*time.Second
	case underRace:
		peers, lasts = 8, 2*time.Minute
	case *hour:
		peers, lasts, pace = 200, time.Hour, 15*time.Second
	}
	reached := map[bool]float64{}
	for _, changes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			// With memberlist where it makes a difference. With 200 peers it makes every
			// second last longer than one.
			c := startChurn(t, peers, lasts, pace, changes && !*hour)
			c.run(changes)
			reached[changes] = c.finish()
			t.Logf("changes %v: accuracy %.2f %%, %s", changes, reached[changes], time.Since(began))
		})
	}
	if reached[false] < 80 || reached[true] < reached[false]-1 {
		t.Errorf("accuracy %.2f %% with changes, %.2f %% without", reached[true], reached[false])
	}
}
