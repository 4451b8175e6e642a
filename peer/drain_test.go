package peer_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/tensor"
)

// draining is a flock whose peers make steps of known sum, and close when the operator asks them to leave.
type draining struct {
	*ruled
	mu     sync.Mutex
	took   time.Duration // of closing
	why    string
	closed chan struct{}
	steps  [][]float64
}

func startDraining(t *testing.T, peers int, more func(*peer.Config)) *draining {
	d := &draining{closed: make(chan struct{}), steps: make([][]float64, peers)}
	d.ruled = startRuled(t, peers, func(i int, c *peer.Config) {
		c.Training.Exchange.Pace.Every, c.Training.Exchange.SliceLen = 1, cutSliceLen
		c.Network.Control.Changed = func(why string, changes []control.Change) {
			if len(changes) != 1 || changes[0].Peer != d.Peers[i].Self() || changes[0].Do != control.Drain {
				t.Errorf("peer %d is told %v", i, changes)
			}
			go d.close(i, why)
		}
		more(c)
	})
	time.Sleep(peer.Stall) // all have come, so that nobody copies the model of another
	return d
}

func (d *draining) close(i int, why string) {
	began := time.Now()
	d.Leave(i)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.took, d.why = time.Since(began), why
	close(d.closed)
}

// slow makes exchanges take about half a second each.
func (d *draining) slow() {
	for i, a := range d.IDs() {
		for _, b := range d.IDs()[:i] {
			d.Network.SetLink(a, b, memnet.Link{Delay: 20 * time.Millisecond, Bandwidth: 20_000})
		}
	}
}

// train applies steps at a peer until it is closed, or until the others have gone on alone for a time.
func (d *draining) train(i int, alone time.Duration) {
	random, delta := rand.New(rand.NewPCG(11, uint64(i))), make(tensor.Vector, newModel().Layout().Len())
	d.steps[i] = make([]float64, len(delta))
	var until time.Time
	for {
		for k := range delta {
			delta[k] = float32(random.IntN(65)-32) / 1024
		}
		if err := d.Peers[i].Apply(d.t.Context(), delta, peer.Result{}); err != nil {
			if !errors.Is(err, peer.ErrClosed) {
				d.t.Error(err)
			}
			return
		}
		for k, v := range delta {
			d.steps[i][k] += float64(v)
		}
		time.Sleep(stepTime)
		select {
		case <-d.closed:
			if until.IsZero() {
				until = time.Now().Add(alone)
			}
			if time.Now().After(until) {
				return
			}
		default:
		}
	}
}

// off is by how much the sum of all models is not that of the initial ones and all steps, as a share of it.
func (d *draining) off() float64 {
	var off, all float64
	models := d.Models()
	for k, initial := range newModel().Vector() {
		want, got := float64(len(models))*float64(initial), 0.0
		for i, model := range models {
			want, got = want+d.steps[i][k], got+float64(model[k])
		}
		off, all = off+(got-want)*(got-want), all+want*want
	}
	return math.Sqrt(off / all)
}

// TestWhoIsDrainedLosesNothing: a peer that is asked to leave in the middle of its exchanges, by a word to another one,
// finishes them and is gone in time; the sum of all models is what it would be without exchanges, to the rounding.
func TestWhoIsDrainedLosesNothing(t *testing.T) {
	for _, role := range []string{"active", "passive"} {
		t.Run(role, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := startDraining(t, 4, func(*peer.Config) {})
				d.slow()
				leaver := slices.IndexFunc(d.Peers, func(p *peer.Peer) bool { return p.Stats().Role == role })
				for i := range d.Peers {
					d.trainers.Go(func() { d.train(i, 3*time.Second) })
				}
				time.Sleep(5 * time.Second)
				if d.Peers[leaver].Stats().Exchanges.Completed() == 0 {
					t.Fatal("it exchanges nothing: the test tests nothing")
				}
				d.send((leaver+1)%4, control.Command{Kind: control.SetMembers, Why: "new disks", Changes: []control.Change{{Peer: d.Peers[leaver].Self(), Do: control.Drain}}})
				d.trainers.Wait()
				if d.took > control.DrainWithin || d.took == 0 || d.why != "new disks" {
					t.Errorf("it is gone after %s, because of %q", d.took, d.why)
				}
				for i, p := range d.Peers {
					if s := p.Stats(); i != leaver && (s.Members != 3 || s.Lost != 0) {
						t.Errorf("peer %d sees %d members, %d lost", i, s.Members, s.Lost)
					}
				}
				for i, p := range d.Peers {
					p.Close() // lets the exchange in flight end
					if s := p.Stats(); s.Exchanges.Lost != 0 || s.Exchanges.InDoubt != 0 {
						t.Errorf("peer %d: %d slices lost, %d in doubt", i, s.Exchanges.Lost, s.Exchanges.InDoubt)
					}
				}
				if off := d.off(); off > 1e-6 { // rounding of thousands of float32 additions
					t.Errorf("the sum of the models is off by %.3g of itself", off)
				}
			})
		})
	}
}

// TestWhoIsDrainedWaitsForNobody: partners that stand still do not hold up one that is to leave.
func TestWhoIsDrainedWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startDraining(t, 4, func(c *peer.Config) { c.Training.Work.Grace = time.Minute })
		d.slow()
		for i := range d.Peers {
			d.trainers.Go(func() { d.train(i, 0) })
		}
		time.Sleep(5 * time.Second)
		self := d.Peers[0].Self()
		for _, p := range d.Peers[1:] {
			d.Network.StallAfter(self, p.Self(), 0)
			d.Network.StallAfter(p.Self(), self, 0)
		}
		time.Sleep(time.Second / 2)
		d.send(0, control.Command{Kind: control.SetMembers, Changes: []control.Change{{Peer: self, Do: control.Drain}}})
		d.trainers.Wait()
		if d.took > control.DrainWithin || d.took < time.Second {
			t.Errorf("it is gone after %s", d.took)
		}
	})
}
