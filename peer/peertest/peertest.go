// Package peertest runs a flock of real peers inside one test: over an in-memory network
// with delay, bandwidth, loss and partitions, or over TCP on loopback. The peers are those
// of package peer, with their machines, replicas, frames and streams; only the transport
// differs.
//
//	flock := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel})
//	flock.Train(t.Context(), gradient)
//
// In memory, a flock also runs in virtual time: call Start inside synctest.Test (package
// testing/synctest), and a virtual minute of waiting takes no real time. Real sockets do
// not work in such a bubble.
//
// Simulate is for larger flocks: it runs the machines, replicas and frames without clocks,
// sockets and goroutines of their own, in a world with given compute times, links, joins,
// departures and lies (see Simulation). It returns errors, and programs use it too.
//
// A Flock is for tests: it fails the test where a program would handle an error. Its field
// Network is the in-memory network, to cut and restore links.
package peertest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Run is the name of the run in which a flock's peers take part.
const Run = "peertest"

// joinTime bounds how long Start waits until all peers see each other.
const joinTime = 30 * time.Second

// Config sets up a flock.
type Config struct {
	// Peers is the number of peers. Default: 4.
	Peers int
	// Params makes the model with its initial values, anew for each peer. Nil for a flock that
	// does not train: its peers have no Trainer.
	Params func() *tensor.Params
	// Loopback uses TCP on loopback and memberlist, as a program would, instead of memory.
	Loopback bool
	// Swim uses memberlist over the network in memory, with its timing, instead of a
	// membership that knows every change at once.
	Swim bool
	// Link is what joins the peers in memory. The zero Link is instant and
	// unlimited.
	Link memnet.Link
	// Idle is how long a connection in memory counts in Stats after its last stream.
	Idle time.Duration
	// Configure may change the configuration of peer i before it starts.
	Configure func(i int, config *peer.Config)
	// Seed makes identities and random choices repeatable.
	Seed uint64
}

// T is the part of testing.TB that a flock needs. testing.TB itself is not named here, so that
// programs that simulate do not link package testing.
type T interface {
	Context() context.Context
	Cleanup(func())
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Flock is a number of peers under test. One goroutine uses it at a time; Leave,
// Crash and, while it trains, Add may be called by others.
type Flock struct {
	// Peers are the members; after Start all of them see each other.
	Peers []*peer.Peer
	// Network joins them in memory; nil on loopback.
	Network *memnet.Network

	t        T
	config   Config
	mu       sync.Mutex                          // guards the peers' coming and going
	gone     map[int]bool                        // have crashed or left
	closers  []func()                            // of the networks
	clearing sync.WaitGroup                      // closes the remains of crashed peers
	verified *lru.Cache[[sha256.Size]byte, bool] // results of verified signatures
}

// Start starts a flock, waits until every peer sees every other, and closes it
// when the test ends.
func Start(t T, config Config) *Flock {
	t.Helper()
	config.Peers = cmp.Or(config.Peers, 4)
	verified, err := lru.New[[sha256.Size]byte, bool](maxVerified)
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	f := &Flock{t: t, config: config, gone: map[int]bool{}, verified: verified}
	t.Cleanup(f.clearing.Wait)
	if !config.Loopback {
		f.Network = memnet.New(memnet.Config{Seed: config.Seed, Link: config.Link, Idle: config.Idle})
	}
	for range config.Peers {
		f.Add()
	}
	f.WaitJoined(config.Peers)
	return f
}

// Add starts one more peer, which joins through the first that lives, and returns it.
// It does not wait.
func (f *Flock) Add() *peer.Peer {
	f.t.Helper()
	f.mu.Lock()
	i := len(f.Peers)
	f.Peers, f.closers = append(f.Peers, nil), append(f.closers, nil)
	f.gone[i] = true // until it is there
	f.mu.Unlock()
	return f.start(i)
}

// start starts peer i, which has not come or has gone.
func (f *Flock) start(i int) *peer.Peer {
	f.t.Helper()
	config := peer.Config{Run: Run}
	if f.config.Params != nil {
		config.Params = f.config.Params()
	}
	for _, other := range f.Living() {
		if other != i {
			config.Join = f.Peers[other].JoinAddresses()[:1]
			break
		}
	}
	closeNetwork := func() {}
	if f.config.Loopback {
		config.Network.Listen = []string{"127.0.0.1:0"}
	} else {
		config.Network, closeNetwork = f.inMemory(name(i))
	}
	if f.config.Configure != nil {
		f.config.Configure(i, &config)
	}
	p, err := begin(f.t.Context(), config)
	if err != nil {
		f.t.Fatalf("peertest: %v", err)
	}
	f.t.Cleanup(func() {
		if err := p.Close(); err != nil && f.Peers[i] == p && slices.Contains(f.Living(), i) {
			f.t.Errorf("peertest: closing peer %d: %v", i, err)
		}
		closeNetwork()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Peers[i], f.closers[i] = p, closeNetwork
	delete(f.gone, i)
	return p
}

// begin starts a peer; without a model it is a node only.
func begin(ctx context.Context, config peer.Config) (*peer.Peer, error) {
	if config.Params != nil {
		return peer.Start(ctx, config)
	}
	network := config.Network
	network.Run, network.Join = config.Run, config.Join
	node, err := peer.Join(ctx, network)
	return &peer.Peer{Node: node}, err
}

func (f *Flock) inMemory(name string) (peer.Network, func()) {
	f.t.Helper()
	tr, err := f.Network.Transport(name)
	if err != nil {
		f.t.Fatalf("peertest: %v", err)
	}
	var membership transport.Membership
	if f.config.Swim {
		membership, err = swim.New(swim.Config{Transport: notary{tr, f.verified}, Run: Run})
	} else {
		membership, err = f.Network.Membership(tr, Run)
	}
	if err != nil {
		f.t.Fatalf("peertest: %v", err)
	}
	return peer.Network{Transport: tr, Membership: membership}, func() { tr.Close() }
}

// WaitJoined waits until every peer sees n members, itself included.
func (f *Flock) WaitJoined(n int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), joinTime)
	defer cancel()
	for _, i := range f.Living() {
		p := f.Peers[i]
		if err := p.WaitMembers(ctx, n); err != nil {
			f.t.Fatalf("peertest: peer %d: %v", i, err)
		}
	}
}

// Gradient computes peer i's gradient at x into grad, as for peer.Peer.Step.
type Gradient func(i int, x, grad tensor.Vector) (peer.Result, error)

// Train lets every peer take steps on a goroutine of its own until its run is over or ctx
// ends, and returns when all have. The test fails if a step fails, except that of a peer
// that has crashed or left.
func (f *Flock) Train(ctx context.Context, gradient Gradient) {
	f.t.Helper()
	f.TrainSteps(ctx, math.MaxInt, gradient)
}

// TrainSteps is as Train, with a bound on the steps of each peer.
func (f *Flock) TrainSteps(ctx context.Context, steps int, gradient Gradient) {
	f.t.Helper()
	f.mu.Lock()
	peers := slices.Clone(f.Peers)
	f.mu.Unlock()
	faults := make([]error, len(peers))
	var trainers sync.WaitGroup
	for i, p := range peers {
		trainers.Go(func() {
			for n := 0; n < steps && faults[i] == nil; n++ {
				faults[i] = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return gradient(i, x, grad) })
			}
			if err := faults[i]; errors.Is(err, peer.ErrRunOver) || errors.Is(err, peer.ErrClosed) || ctx.Err() != nil || f.departed(i, p) {
				faults[i] = nil // errors of a peer that has just been killed do not count
			}
		})
	}
	trainers.Wait()
	if err := errors.Join(faults...); err != nil {
		f.t.Fatalf("peertest: %v", err)
	}
}

// Models returns a copy of every peer's parameters.
func (f *Flock) Models() []tensor.Vector {
	models := make([]tensor.Vector, len(f.Peers))
	for i, p := range f.Peers {
		models[i] = make(tensor.Vector, f.config.Params().Layout().Len())
		if _, err := p.Snapshot(models[i], 0); err != nil {
			f.t.Errorf("peertest: peer %d: %v", i, err)
		}
	}
	return models
}

// Spread is the root mean square distance of the peers' models from their mean:
// the consensus distance.
func (f *Flock) Spread() float64 {
	models := f.Models()
	return spread(len(models), func(i int) tensor.Vector { return models[i] })
}

// spread is the root mean square distance from their mean of so many models, each of which
// is asked for twice.
func spread(models int, model func(i int) tensor.Vector) float64 {
	var mean []float64
	for i := range models {
		x := model(i)
		if mean == nil {
			mean = make([]float64, len(x))
		}
		for j, v := range x {
			mean[j] += float64(v) / float64(models)
		}
	}
	squared := 0.0
	for i := range models {
		for j, v := range model(i) {
			squared += (float64(v) - mean[j]) * (float64(v) - mean[j])
		}
	}
	return math.Sqrt(squared / float64(max(models, 1)))
}

// IDs are the peers' identities, for the network's cuts and partitions.
func (f *Flock) IDs() []transport.PeerID {
	ids := make([]transport.PeerID, len(f.Peers))
	for i, p := range f.Peers {
		ids[i] = p.Self()
	}
	return ids
}

// Leave closes peer i, as a program does at its end, and waits for that.
func (f *Flock) Leave(i int) {
	f.t.Helper()
	p, closeNetwork := f.depart(i)
	if err := p.Close(); err != nil {
		f.t.Errorf("peertest: closing peer %d: %v", i, err)
	}
	closeNetwork()
}

// depart counts peer i as gone.
func (f *Flock) depart(i int) (p *peer.Peer, closeNetwork func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[i] = true
	return f.Peers[i], f.closers[i]
}

// departed tells whether p, which was started as peer i, has crashed or left.
func (f *Flock) departed(i int, p *peer.Peer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone[i] || f.Peers[i] != p
}

// Crash takes peer i off the network in memory without notice, as kill -9 does. Its remains
// in this process are closed in the background.
func (f *Flock) Crash(i int) {
	f.t.Helper()
	p, _ := f.depart(i)
	f.Network.Crash(p.Self())
	f.clearing.Go(func() { p.Close() }) // it may fail: its network is gone
}

// Return starts a peer with the identity of peer i, which has crashed or left, in its
// place. It does not wait.
func (f *Flock) Return(i int) *peer.Peer {
	f.t.Helper()
	if slices.Contains(f.Living(), i) {
		f.t.Fatalf("peertest: peer %d has not gone", i)
	}
	return f.start(i)
}

// Living are the indices of the peers that have neither crashed nor left.
func (f *Flock) Living() (indices []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.Peers {
		if !f.gone[i] {
			indices = append(indices, i)
		}
	}
	return indices
}

// name is that of peer i on the network in memory.
func name(i int) string { return fmt.Sprintf("peer-%d", i) }
