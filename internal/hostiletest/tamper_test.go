package hostiletest_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// pairing is how two peers exchange and train.
type pairing struct {
	name  string
	codec string
	lanes int
	rate  float64 // learning rate
	apart float32 // how far the values of one begin from those of the other
}

// pairings are a pair that does not learn, but begins so far apart that it takes many exchanges to meet, and
// one that is pulled apart by what it learns.
var pairings = []pairing{
	{name: "learning rate 0", codec: "raw", lanes: 1, apart: 3},
	{name: "learning", codec: "bf16", lanes: 2, rate: 1. / 64},
}

const (
	// tamperedSlices are the slices of a tamperedModel, each of tamperedSliceLen values.
	tamperedSlices, tamperedSliceLen = 3, 30
	// exchangeFrames are the frames that an active sends in an exchange: PROPOSE and ACK too.
	exchangeFrames = tamperedSlices + 2
	tamperedPace   = 2 * time.Second
	// maxDrift is what rounding may make of thousands of float32 additions.
	maxDrift = 1e-6
	// together is half of how far apart the values of two that learn would be if they never exchanged.
	together = 0.5
)

func tamperedModel() *tensor.Params {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "weights", Shape: []int{tamperedSlices - 1, tamperedSliceLen}},
		tensor.Spec{Name: "bias", Shape: []int{tamperedSliceLen}, Kind: tensor.Bias},
	)
	if err != nil {
		panic(err) // the specs are constants
	}
	params, random := tensor.NewParams(layout), rand.New(rand.NewPCG(3, 4))
	for k := range params.Vector() {
		params.Vector()[k] = random.Float32() - 0.5
	}
	return params
}

// end is one of two peers whose frames are tampered with, and what it tells.
type end struct {
	*tamperer
	start  tensor.Vector
	rate   float64
	walked []float64 // all that it has learned
	logged *observer.ObservedLogs
	made   int // frames that it has tampered with

	mu       sync.Mutex
	failed   []peer.Exchanged
	offences []error // for which it has kept the other away
}

// Delta has an end be its own optimizer: plain gradient descent, whose steps are rounded so that adding them
// to a float32 rounds nothing.
func (e *end) Delta(grad, _ tensor.Vector, _ float64) {
	const grid = 1 << 12
	for k, g := range grad {
		step := math.Round(-e.rate*float64(g)*grid) / grid
		grad[k] = float32(step)
		e.walked[k] += step
	}
}

func (e *end) exchanged(x peer.Exchanged) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.Err != nil {
		e.failed = append(e.failed, x)
	}
}

func (e *end) quarantined(_ transport.PeerID, _ time.Duration, offence error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.offences = append(e.offences, offence)
}

// saw is how often each of these faults was found.
func (e *end) saw(list []error) map[error]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[error]int{}
	for _, x := range e.failed {
		for _, kind := range kinds(x.Err, list) {
			seen[kind]++
		}
	}
	return seen
}

// tamperedPair is two peers that train and exchange, and whose frames are tampered with before they are
// encrypted.
type tamperedPair struct {
	kind  tampering
	flock *peertest.Flock
	ends  [2]*end
}

func startPair(t *testing.T, kind tampering, how pairing) *tamperedPair {
	t.Helper()
	p := &tamperedPair{kind: kind}
	p.flock = peertest.Start(t, peertest.Config{
		Peers: 2, Params: tamperedModel, Link: memnet.Link{Delay: 100 * time.Microsecond},
		Configure: func(i int, c *peer.Config) {
			core, logged := observer.New(zap.WarnLevel)
			x := c.Params.Vector()
			for k := range x {
				x[k] += float32(i) * how.apart
			}
			e := &end{start: append(tensor.Vector(nil), x...), rate: how.rate, walked: make([]float64, len(x)), logged: logged}
			e.tamperer = &tamperer{Transport: c.Network.Transport, t: t, kind: kind, random: rand.New(rand.NewPCG(17, uint64(i)))}
			e.aim.Store(-1)
			p.ends[i] = e
			c.Network.Transport, c.Network.Log = e.tamperer, zap.New(core)
			c.Training.Optimizer = e
			c.Training.Hooks = peer.Hooks{Exchanged: e.exchanged, Quarantined: e.quarantined}
			c.Training.Exchange = peer.Exchange{
				Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: how.codec}, Lanes: how.lanes, SliceLen: tamperedSliceLen,
			}
		},
	})
	return p
}

func (p *tamperedPair) stats() [2]stats.Peer {
	return [2]stats.Peer{p.flock.Peers[0].Stats(), p.flock.Peers[1].Stats()}
}

// suffer has the two train while each in turn tampers with each frame of an exchange, has them recover from it
// each time, and ends when nothing is under way any more.
func (p *tamperedPair) suffer(t *testing.T) {
	training, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for i, of := range p.flock.Peers {
		both.Go(func() {
			for training.Err() == nil {
				if err := of.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
					time.Sleep(tamperedPace)
					for k, v := range x {
						grad[k] = v - float32(i)
					}
					return peer.Result{Samples: 1}, nil
				}); err != nil {
					t.Errorf("peer %d no longer trains: %v", i, err)
					return
				}
			}
		})
	}
	defer func() {
		stop()
		both.Wait()
	}()
	eventually(t, "both have a role", time.Minute, func() bool {
		s := p.stats()
		return s[0].Role != "undecided" && s[1].Role != "undecided"
	})
	for frame := range int64(exchangeFrames) {
		for i, e := range p.ends {
			before := p.stats()[i].Steps
			e.aim.Store(frame)
			time.Sleep(time.Minute)
			if e.aim.Swap(-1) < 0 { // else it does not send so many on a stream
				e.made++
			}
			p.mends(t)
			if n := p.stats()[i].Steps - before; n < 50 {
				t.Errorf("peer %d took %d steps in two minutes", i, n)
			}
		}
	}
	stop()
	both.Wait()
	eventually(t, "nothing is in doubt, and the sum of the models is right", time.Minute, func() bool {
		s := p.stats()
		return s[0].Exchanges.InDoubt+s[1].Exchanges.InDoubt == 0 && p.drift() <= maxDrift
	})
}

// mends waits until the two go on as if nothing had happened, for so long that no offence counts any more.
func (p *tamperedPair) mends(t *testing.T) {
	t.Helper()
	eventually(t, "nobody is kept away, and nothing is in doubt", time.Hour, func() bool {
		s := p.stats()
		return s[0].Quarantined+s[1].Quarantined == 0 && s[0].Exchanges.InDoubt+s[1].Exchanges.InDoubt == 0
	})
	time.Sleep(time.Minute)
	before := p.stats()
	eventually(t, "both exchange", time.Minute, func() bool {
		s := p.stats()
		return s[0].Exchanges.Completed() > before[0].Exchanges.Completed() && s[1].Exchanges.Completed() > before[1].Exchanges.Completed() && p.apart() <= together
	})
}

// apart is the distance of the two models per value.
func (p *tamperedPair) apart() float64 {
	models := p.flock.Models()
	return math.Sqrt(tensor.SquaredDistance(models[0], models[1]) / float64(len(models[0])))
}

// drift tells by how much of itself the sum of the two models differs from what they began with and have
// learned: NaN if a model holds one. Neither may be training.
func (p *tamperedPair) drift() float64 {
	models, a, b := p.flock.Models(), p.ends[0], p.ends[1]
	var off, all float64
	for k := range models[0] {
		want := float64(a.start[k]) + float64(b.start[k]) + a.walked[k] + b.walked[k]
		got := float64(models[0][k]) + float64(models[1][k])
		off += (got - want) * (got - want)
		all += want * want
	}
	return math.Sqrt(off / all)
}

// check holds what an end reports of itself against what it has told hooks and logged, and both against the
// faults that are to be found.
func (p *tamperedPair) check(t *testing.T, i int) {
	e, s, partner := p.ends[i], p.stats()[i], p.flock.IDs()[1-i]
	x, seen := s.Exchanges, e.saw(faults)
	if e.made < tamperedSlices {
		t.Errorf("the %s peer has tampered with %d frames", s.Role, e.made)
	}
	if expected := p.kind.expected(s.Role); len(expected) > 0 && len(e.saw(expected)) == 0 {
		t.Errorf("the %s peer saw %v, never %v", s.Role, seen, expected)
	}
	offended := 0
	for _, f := range e.failed {
		if known, refusal := len(kinds(f.Err, faults)) > 0, isRefusal(f.Err); f.Partner != partner || !known && !refusal {
			t.Errorf("a fault of no type, or of peer %s: %v", f.Partner, f.Err)
		}
		offended += min(len(kinds(f.Err, offences)), 1)
	}
	for _, err := range e.offences {
		if len(kinds(err, offences)) == 0 {
			t.Errorf("the other is kept away for %v", err)
		}
	}
	n := len(e.offences)
	if int(x.Failed) != len(e.failed) || int(x.Quarantines) != n || n != offended || x.Lost > 0 || p.kind.harmless && n > 0 {
		t.Errorf("the %s peer counts %d failures, %d quarantines and %d slices given up; it told of %d, %d of them for an offence, and of %d",
			s.Role, x.Failed, x.Quarantines, x.Lost, len(e.failed), offended, n)
	}
	if warned := e.logged.FilterField(zap.String("peer", string(partner))).FilterFieldKey("remedy").Len(); warned < n {
		t.Errorf("the %s peer logged %d warnings that name partner and remedy, want %d", s.Role, warned, n)
	}
	t.Logf("%s: %d steps, %d exchanges, saw %v; %d failed, %d declined, %d quarantines, %d slices settled",
		s.Role, s.Steps, x.Completed(), seen, x.Failed, x.Declined, x.Quarantines, x.Settled)
}

// TestFramesTamperedWith: whatever happens to frames between two peers that train, it is found, told by a
// typed error, a count and a line that names the other and what to do, and costs nothing but time.
func TestFramesTamperedWith(t *testing.T) {
	for i, how := range pairings {
		if underRace && i == 0 {
			continue // the other has all that the detector could see in it
		}
		for _, kind := range tamperings {
			t.Run(kind.name+"/"+how.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := startPair(t, kind, how)
					p.suffer(t)
					for i := range p.ends {
						p.check(t, i)
					}
				})
			})
		}
	}
}
