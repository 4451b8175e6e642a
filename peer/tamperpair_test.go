package peer_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// tamperedPair is two peers that train and exchange, and whose frames are tampered
// with before they are encrypted.
type tamperedPair struct {
	t         *testing.T
	peers     [2]*peer.Peer
	tamperers [2]*tamperer
	paths     [2]*path
	witnesses [2]*witness
	start     [2]tensor.Vector
	kind      tampering
	how       pairing

	stop          func() // ends training
	phase         phase
	resting       time.Time               // when that phase began
	often         func(role string) int64 // frames that an end of such a role tampers with, at least
	before, after [2]stats.Peer           // of the time in which frames are tampered with
}

// pairing is how the two of a pair exchange and train.
type pairing struct {
	name  string
	codec string
	lanes int
	rate  float64 // learning rate
	apart float32 // how far the values of one begin from those of the other
}

// pairings are a pair that does not learn, but begins so far apart that it takes many
// exchanges to meet, and one that is pulled apart by what it learns.
var pairings = []pairing{
	{name: "learning rate 0", codec: "raw", lanes: 1, apart: 3},
	{name: "learning", codec: "bf16", lanes: 2, rate: 1. / 64},
}

// Bounds of waiting: what a partner may take for a frame, for how long one that breaks
// the rules is kept away, and when a test gives up.
const (
	tamperedStall    = 500 * time.Millisecond
	firstTerm        = 2 * time.Millisecond
	mostTerm         = 8 * time.Millisecond
	tamperedPatience = 2 * time.Minute
	restPatience     = time.Minute
)

// path is an optimizer that adds up its steps: plain gradient descent, whose steps are
// rounded so that adding them to a float32 rounds nothing.
type path struct {
	rate  float64
	total []float64
}

func (p *path) Delta(grad, _ tensor.Vector, _ float64) {
	const grid = 1 << 12
	for k, g := range grad {
		step := math.Round(-p.rate*float64(g)*grid) / grid
		grad[k] = float32(step)
		p.total[k] += step
	}
}

// tamperedSlices are the slices of a smallModel, each of tamperedSliceLen values.
const tamperedSlices, tamperedSliceLen = 11, 30

func smallModel() *tensor.Params {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "weights", Shape: []int{tamperedSlices - 1, tamperedSliceLen}},
		tensor.Spec{Name: "bias", Shape: []int{tamperedSliceLen}, Kind: tensor.Bias},
	)
	if err != nil {
		panic(err) // the specs are constants
	}
	params := tensor.NewParams(layout)
	random := rand.New(rand.NewPCG(3, 4))
	for k := range params.Vector() {
		params.Vector()[k] = random.Float32() - 0.5
	}
	return params
}

// onLoopback makes the two ends of a network on real sockets.
func onLoopback(t *testing.T) (networks [2]peer.Network, join string) {
	for i := range networks {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		networks[i].Transport = tr
	}
	return networks, networks[0].Transport.(*p2pnet.Transport).JoinAddresses()[0]
}

// startTampered starts two peers. Nothing is tampered with yet.
func startTampered(t *testing.T, kind tampering, how pairing, networks [2]peer.Network, join string) *tamperedPair {
	t.Helper()
	pair := &tamperedPair{t: t, kind: kind, how: how}
	for i := range pair.peers {
		params := smallModel()
		for k := range params.Vector() {
			params.Vector()[k] += float32(i) * how.apart
		}
		pair.start[i] = append(pair.start[i], params.Vector()...)
		pair.paths[i] = &path{rate: how.rate, total: make([]float64, len(params.Vector()))}
		core, logged := observer.New(zap.WarnLevel)
		pair.witnesses[i] = &witness{t: t, partner: networks[1-i].Transport.Self(), seen: make(map[error]int), logged: logged}
		pair.tamperers[i] = &tamperer{Transport: networks[i].Transport, t: t, kind: kind, turn: i, random: rand.New(rand.NewPCG(17, uint64(i)))}
		config := peer.Config{
			Run:     "digits",
			Params:  params,
			Join:    []string{join}[:i],
			Network: peer.Network{Log: zap.New(core), Transport: pair.tamperers[i], Membership: networks[i].Membership},
			Training: peer.Training{Optimizer: pair.paths[i], Hooks: pair.witnesses[i].hooks(), Exchange: peer.Exchange{
				Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: how.codec}, Lanes: how.lanes, SliceLen: tamperedSliceLen, Machine: restless,
			}},
		}
		config.Network.SetStall(tamperedStall)
		pair.peers[i] = start(t, config)
		pair.peers[i].ShortenQuarantine(firstTerm, mostTerm)
	}
	return pair
}

// meet waits until the two see each other, before the first step, so that neither copies
// the other's model.
func (c *tamperedPair) meet(t *testing.T) {
	t.Helper()
	for _, p := range c.peers {
		if err := p.WaitMembers(t.Context(), len(c.peers)); err != nil {
			t.Fatal(err)
		}
	}
}

// survive has pairs meet and train while each end tampers with so many frames at least, until
// they have recovered from it, and then until nothing is under way any more.
func survive(t *testing.T, pairs []*tamperedPair) {
	t.Helper()
	for _, pair := range pairs {
		pair.meet(t)
	}
	for _, pair := range pairs {
		pair.phase = settling
		pair.train()
		defer pair.stop()
	}
	timeout := time.NewTimer(tamperedPatience)
	defer timeout.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	left := slices.Clone(pairs)
	for {
		if left = slices.DeleteFunc(left, (*tamperedPair).past); len(left) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-timeout.C:
			t.Fatalf("%s, %s: still %s after %s: %+v", left[0].kind.name, left[0].how.name, left[0].phase, tamperedPatience, left[0].stats())
		}
	}
}

// train has both peers train until stop is called, which waits until they have ended.
func (c *tamperedPair) train() {
	ctx, cancel := context.WithCancel(c.t.Context())
	var both sync.WaitGroup
	for i, p := range c.peers {
		gradient := atPace(8*time.Millisecond, towards)
		both.Go(func() {
			for ctx.Err() == nil {
				if err := p.Step(c.t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return gradient(i, x, grad) }); err != nil {
					c.t.Errorf("peer %d no longer trains: %v", i, err)
					return
				}
			}
		})
	}
	c.stop = func() {
		cancel()
		both.Wait()
	}
}

// phase is how far a pair has come.
type phase string

const (
	settling   phase = "taking roles"
	suffering  phase = "tampered with"
	recovering phase = "recovering"
	resting    phase = "coming to rest"
)

// past moves a pair on to the next phase when it is through with one. It tells whether
// it is through with all.
func (c *tamperedPair) past() bool {
	s := c.stats()
	switch {
	case c.phase == settling && s[0].Role != "undecided" && s[1].Role != "undecided":
		c.before, c.phase = s, suffering
		c.tamper(true)
	case c.phase == suffering && c.ample():
		c.after, c.phase = s, recovering
		c.tamper(false)
	case c.phase == recovering && c.recovered(s):
		c.phase, c.resting = resting, time.Now()
		c.stop()
	case c.phase == resting && s[0].Exchanges.InDoubt+s[1].Exchanges.InDoubt == 0:
		// What is still under way ends soon; a sum that has not come right by then never
		// will, and check says so.
		return c.drift() <= maxDrift || time.Since(c.resting) > restPatience
	}
	return false
}

func (c *tamperedPair) tamper(busy bool) {
	for _, tamperer := range c.tamperers {
		tamperer.busy.Store(busy)
	}
}

// ample tells whether both ends have tampered so often that the test has seen enough:
// as often as was asked for, and until each has noticed what the other does, or never
// will.
func (c *tamperedPair) ample() bool {
	const never = 10
	for i, tamperer := range c.tamperers {
		made, often := tamperer.made.Load(), c.often(c.before[i].Role)
		if made < often || made < never*often && !c.witnesses[1-i].saw(c.kind.expected(c.before[1-i].Role)) {
			return false
		}
	}
	return true
}

// recovered tells whether both have long gone on as if nothing had happened, and have
// come together.
func (c *tamperedPair) recovered(now [2]stats.Peer) bool {
	const more = 10 // steps and exchanges since
	for i, s := range now {
		was := c.after[i]
		if s.Quarantined > 0 || s.Exchanges.InDoubt > 0 ||
			s.Steps < was.Steps+more || s.Exchanges.Completed() < was.Exchanges.Completed()+more {
			return false
		}
	}
	return c.apart() <= together
}

func (c *tamperedPair) stats() [2]stats.Peer {
	return [2]stats.Peer{c.peers[0].Stats(), c.peers[1].Stats()}
}

const (
	// maxDrift is what rounding may make of thousands of float32 additions.
	maxDrift = 1e-6
	// together is how far apart the values of two that learn would be if they never
	// exchanged.
	together = 1
)

// closeAll closes all peers.
func closeAll(pairs []*tamperedPair) {
	var all sync.WaitGroup
	for _, pair := range pairs {
		for _, p := range pair.peers {
			all.Go(func() {
				if err := p.Close(); err != nil {
					pair.t.Error(err)
				}
			})
		}
	}
	all.Wait()
}

func (c *tamperedPair) models() (models [2]tensor.Vector) {
	for i, p := range c.peers {
		models[i] = make(tensor.Vector, len(c.start[i]))
		p.Snapshot(models[i], 0)
	}
	return models
}

// apart is the distance of the two models per value.
func (c *tamperedPair) apart() float64 {
	models := c.models()
	return math.Sqrt(tensor.SquaredDistance(models[0], models[1]) / float64(len(models[0])))
}

// drift tells by how much of itself the sum of the two models differs from what they
// began with and have learned: NaN if a model holds one. Neither may be training.
func (c *tamperedPair) drift() float64 {
	models := c.models()
	var off, all float64
	for k := range models[0] {
		want := float64(c.start[0][k]) + float64(c.start[1][k]) + c.paths[0].total[k] + c.paths[1].total[k]
		got := float64(models[0][k]) + float64(models[1][k])
		off += (got - want) * (got - want)
		all += want * want
	}
	return math.Sqrt(off / all)
}
