package peer_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// tamperedPair is two peers on loopback that train and exchange, and whose frames are
// tampered with above the encryption.
type tamperedPair struct {
	t         *testing.T
	peers     [2]*peer.Peer
	tamperers [2]*tamperer
	paths     [2]*path
	witnesses [2]*witness
	start     [2]tensor.Vector
}

// pairing is how the two of a pair exchange and train.
type pairing struct {
	codec string
	lanes int
	rate  float64 // learning rate
	apart float32 // how far the values of one begin from those of the other
}

// Bounds of waiting: what a partner may take for a frame, for how long one that breaks
// the rules is kept away, and when a test gives up.
const (
	tamperedStall    = 200 * time.Millisecond
	firstTerm        = 2 * time.Millisecond
	mostTerm         = 8 * time.Millisecond
	tamperedPatience = time.Minute
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

// witness hears what a peer reports.
type witness struct {
	t                   *testing.T
	partner             seam.PeerID
	mu                  sync.Mutex
	failed, quarantined int
	seen                map[error]int // faults, by kind
	logged              *observer.ObservedLogs
}

func (w *witness) hooks() peer.Hooks {
	return peer.Hooks{
		Failed: func(partner seam.PeerID, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed++
			w.note(partner, err, talkFaults)
		},
		Quarantined: func(partner seam.PeerID, term time.Duration, offence error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.quarantined++
			w.note(partner, offence, offences)
			if term < firstTerm || term > mostTerm {
				w.t.Errorf("kept away for %s", term)
			}
		},
	}
}

// note counts a fault, which must be of a kind known.
func (w *witness) note(partner seam.PeerID, err error, kinds []error) {
	if partner != w.partner {
		w.t.Errorf("%s is blamed: %v", partner, err)
	}
	known := peer.IsRefusal(err) || peer.IsAbort(err)
	for _, kind := range kinds {
		if is(err, kind) {
			w.seen[kind]++
			known = true
		}
	}
	if !known {
		w.t.Errorf("a fault of no type: %v", err)
	}
}

// saw tells whether one of these faults was found.
func (w *witness) saw(kinds []error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		if w.seen[kind] > 0 {
			return true
		}
	}
	return len(kinds) == 0
}

// startTampered starts the two peers and waits until they see each other.
func startTampered(t *testing.T, kind tampering, how pairing, wanted int64) *tamperedPair {
	pair := &tamperedPair{t: t}
	var networks [2]*p2pnet.Transport
	for i := range networks {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		transport, err := p2pnet.New(p2pnet.Config{Key: key, Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { transport.Close() })
		networks[i] = transport
	}
	for i := range pair.peers {
		params := newModel()
		for k := range params.Vector() {
			params.Vector()[k] += float32(i) * how.apart
		}
		pair.start[i] = append(pair.start[i], params.Vector()...)
		core, logged := observer.New(zap.WarnLevel)
		pair.paths[i] = &path{rate: how.rate, total: make([]float64, len(params.Vector()))}
		pair.witnesses[i] = &witness{t: t, partner: networks[1-i].Self(), seen: make(map[error]int), logged: logged}
		pair.tamperers[i] = &tamperer{Transport: networks[i], t: t, kind: kind, wanted: wanted, random: rand.New(rand.NewPCG(17, uint64(i)))}
		var join []string
		if i > 0 {
			join = networks[0].JoinAddresses()
		}
		pair.peers[i] = start(t, peer.Config{
			Run: "digits", Params: params, Join: join, Network: peer.Network{Transport: pair.tamperers[i]},
			Optimizer: pair.paths[i], Hooks: pair.witnesses[i].hooks(), Log: zap.New(core),
			Exchange: peer.Exchange{
				Every: 1, Codec: how.codec, Lanes: how.lanes, SliceLen: cutSliceLen, Stall: tamperedStall, Machine: restless,
			},
		})
		pair.peers[i].ShortenQuarantine(firstTerm, mostTerm)
	}
	for _, p := range pair.peers { // before the first step, so that neither copies the other's model
		if err := p.WaitMembers(t.Context(), len(pair.peers)); err != nil {
			t.Fatal(err)
		}
	}
	return pair
}

// trained runs do while both peers train.
func (c *tamperedPair) trained(do func()) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	var both sync.WaitGroup
	for i, p := range c.peers {
		gradient := atPace(time.Millisecond, towards)
		both.Go(func() {
			for ctx.Err() == nil {
				if err := p.Step(c.t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return gradient(i, x, grad) }); err != nil {
					c.t.Errorf("peer %d no longer trains: %v", i, err)
					return
				}
			}
		})
	}
	defer both.Wait()
	defer stop()
	do()
}

// await polls until a condition holds, and fails the test if it never does.
func (c *tamperedPair) await(what string, holds func() bool) {
	c.t.Helper()
	patience := time.NewTimer(tamperedPatience)
	defer patience.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-patience.C:
			c.t.Fatalf("%s: not after %s; %+v %+v", what, tamperedPatience, c.peers[0].Stats(), c.peers[1].Stats())
		}
	}
}

// each tells whether a condition holds for both.
func (c *tamperedPair) each(holds func(i int, s peer.Stats) bool) bool {
	for i, p := range c.peers {
		if !holds(i, p.Stats()) {
			return false
		}
	}
	return true
}

// drift closes both peers and tells by how much of itself the sum of their models
// differs from what they began with and have learned, and how far apart they are, per
// value.
func (c *tamperedPair) drift() (relative, apart float64) {
	var models [2]tensor.Vector
	for i, p := range c.peers { // lets the exchange in flight end
		if err := p.Close(); err != nil {
			c.t.Error(err)
		}
		models[i] = make(tensor.Vector, len(c.start[i]))
		p.Snapshot(models[i])
	}
	var off, all float64
	for k := range models[0] {
		want := float64(c.start[0][k]) + float64(c.start[1][k]) + c.paths[0].total[k] + c.paths[1].total[k]
		got := float64(models[0][k]) + float64(models[1][k])
		off += (got - want) * (got - want)
		all += want * want
	}
	apart = math.Sqrt(tensor.SquaredDistance(models[0], models[1]) / float64(len(models[0])))
	return math.Sqrt(off / all), apart // NaN if a model holds one
}
