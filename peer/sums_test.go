package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/topology"
)

// summed is what a peer has got of a sum.
type summed struct {
	vector []float64
	blocks [][]byte
	peers  int
	err    error
}

// sumAll has every peer that lives make a sum at once.
func sumAll(f *peertest.Flock, sum func(i int, p *peer.Peer) summed) map[int]summed {
	var mu sync.Mutex
	var group sync.WaitGroup
	got := make(map[int]summed)
	for _, i := range f.Living() {
		group.Go(func() {
			s := sum(i, f.Peers[i])
			mu.Lock()
			defer mu.Unlock()
			got[i] = s
		})
	}
	group.Wait()
	return got
}

// sameSum tells that all have the same, of so many.
func sameSum(t *testing.T, what string, got map[int]summed, want summed) {
	t.Helper()
	for i, s := range got {
		if s.err != nil || s.peers != want.peers || !slices.Equal(s.vector, want.vector) || !slices.EqualFunc(s.blocks, want.blocks, bytes.Equal) {
			t.Errorf("%s: peer %d has %v of %d and %q (%v), want %v of %d", what, i, s.vector, s.peers, s.blocks, s.err, want.vector, want.peers)
		}
	}
}

func sumOf(ctx context.Context, p *peer.Peer, name string, vector ...float64) (s summed) {
	s.vector, s.peers, s.err = p.Sum(ctx, name, vector)
	return s
}

// TestAFlockSums shows sums of a run that has no model, over a network in memory and over TCP.
func TestAFlockSums(t *testing.T) {
	t.Parallel()
	for _, shape := range topology.Shapes() {
		t.Run("memory, "+shape.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testSums(t, shape, false) }) })
	}
	t.Run("loopback", func(t *testing.T) { testSums(t, topology.Ring, true) })
}

// TestSumsOfOtherShapes shows that members that sum by unlike shapes hear so.
func TestSumsOfOtherShapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 2, Configure: func(i int, c *peer.Config) { c.Network.Sums.Topology = topology.Shape(i) }})
		for i, s := range sumAll(f, func(_ int, p *peer.Peer) summed { return sumOf(t.Context(), p, "x", 1) }) {
			if !errors.Is(s.err, peer.ErrMismatch) || !strings.Contains(s.err.Error(), "sum round a ring") {
				t.Errorf("peer %d has %v, %v", i, s.vector, s.err)
			}
		}
	})
}

func testSums(t *testing.T, shape topology.Shape, loopback bool) {
	f := peertest.Start(t, peertest.Config{Peers: 4, Loopback: loopback, Configure: func(_ int, c *peer.Config) { c.Network.Sums.Topology = shape }})
	for round := range 20 {
		got := sumAll(f, func(i int, p *peer.Peer) summed {
			return sumOf(t.Context(), p, fmt.Sprint("sum ", round), float64(i), 1, -1, 0.5, 1e9)
		})
		sameSum(t, "sum", got, summed{vector: []float64{6, 4, -4, 2, 4e9}, peers: 4})
	}
	got := sumAll(f, func(i int, p *peer.Peer) (s summed) {
		s.vector, s.peers, s.err = p.Max(t.Context(), "largest", []float64{float64(i), float64(-i)})
		return s
	})
	sameSum(t, "largest", got, summed{vector: []float64{3, 0}, peers: 4})
	got = sumAll(f, func(i int, p *peer.Peer) (s summed) {
		s.blocks, s.err = p.Gather(t.Context(), "names", []byte("same")[:i])
		return s
	})
	sameSum(t, "names", got, got[0])
	long := slices.Sorted(func(yield func(int) bool) {
		for _, b := range got[0].blocks {
			if !yield(len(b)) {
				return
			}
		}
	})
	if !slices.Equal(long, []int{0, 1, 2, 3}) {
		t.Errorf("gathered lengths %v", long)
	}
}

// TestASumGoesOnWithoutTheDead shows that real peers, one of which is killed while they sum, all
// have the same.
func TestASumGoesOnWithoutTheDead(t *testing.T) {
	for victim := range 4 {
		synctest.Test(t, func(t *testing.T) {
			f := peertest.Start(t, peertest.Config{Peers: 4, Swim: true, Link: memnet.Link{Delay: time.Millisecond}})
			ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
			defer end()
			go func() {
				time.Sleep(time.Duration(victim) * 4 * time.Millisecond)
				f.Crash(victim)
			}()
			got := sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(ctx, p, "x", float64(int(1)<<i), 1) })
			delete(got, victim)
			one := got[(victim+1)%4]
			sameSum(t, fmt.Sprint("without ", victim), got, one)
			if one.err == nil && one.vector[1] != float64(one.peers) || one.peers < 3 {
				t.Errorf("%v of %d: %v", one.vector, one.peers, one.err)
			}
			synctest.Wait()
		})
	}
}

// TestSumsThatFail shows what is refused, and how a sum ends that cannot be made: each with an error of its own.
func TestSumsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 2, Configure: func(i int, c *peer.Config) {
			c.Network.Sums = peer.Sums{AtLeast: 2 * i, Timeout: 5 * time.Second}
		}})
		a := f.Peers[0]
		all := func(want error, sum func(i int, p *peer.Peer) summed) {
			t.Helper()
			for i, s := range sumAll(f, sum) {
				if !errors.Is(s.err, want) || s.vector != nil {
					t.Errorf("peer %d has %v, %v; want %v", i, s.vector, s.err, want)
				}
			}
		}
		if s := sumOf(t.Context(), a, "x", math.NaN()); !errors.Is(s.err, peer.ErrNotFinite) {
			t.Errorf("NaN is summed: %v", s.err)
		}
		if s := sumOf(t.Context(), a, "two\nlines", 1); s.err == nil {
			t.Error("a name of two lines")
		}
		all(peer.ErrNotFinite, func(_ int, p *peer.Peer) summed { return sumOf(t.Context(), p, "overflow", math.MaxFloat64) })
		all(peer.ErrMismatch, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, "y", make([]float64, i)...) })
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if s := sumOf(ctx, a, "z", 1); !errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("after its time: %v", s.err)
		}
		began := time.Now()
		if s := sumOf(t.Context(), a, "w", 1); s.err != nil || s.peers != 1 || time.Since(began) < 5*time.Second {
			t.Errorf("alone after %s: %+v", time.Since(began), s)
		}
		if s := sumOf(t.Context(), f.Peers[1], "w", 1); !errors.Is(s.err, peer.ErrSumOver) {
			t.Errorf("late: %v", s.err)
		}
		if s := sumOf(t.Context(), f.Peers[1], "v", 1); !errors.Is(s.err, peer.ErrTooFew) {
			t.Errorf("of fewer than it wants: %v", s.err)
		}
		a = peertest.Start(t, peertest.Config{Peers: 2}).Peers[0]
		var closed sync.WaitGroup
		closed.Go(func() { // it does not wait for a sum that others do not come to
			time.Sleep(time.Second)
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
		if s := sumOf(t.Context(), a, "x", 1); !errors.Is(s.err, peer.ErrClosed) {
			t.Errorf("after Close: %v", s.err)
		}
		closed.Wait()
	})
}

// BenchmarkSum is a sum of four and of eight peers over TCP, beside its bytes.
func BenchmarkSum(b *testing.B) {
	for _, peers := range []int{4, 8} {
		for _, length := range []int{8, 16 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%dx%d", peers, length), func(b *testing.B) {
				f := peertest.Start(b, peertest.Config{Peers: peers, Loopback: true})
				vector := make([]float64, length)
				b.SetBytes(int64(8 * length))
				b.ReportAllocs()
				for round := 0; b.Loop(); round++ {
					sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(b.Context(), p, fmt.Sprint(round), vector...) })
				}
			})
		}
	}
}

// TestASumWithSeedsThatAreDown shows that a peer that was to join others, of whom none answers, does not
// take its own numbers for their sum, unless it asks for one peer, and that a founder may sum alone.
func TestASumWithSeedsThatAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		start := func(name string, atLeast int, join ...string) *peer.Peer {
			with := inMemory(t, network, name, name)
			with.Run, with.Join, with.Sums = name, join, peer.Sums{AtLeast: atLeast, Timeout: 5 * time.Second}
			n, err := peer.Join(t.Context(), with)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { n.Close() })
			return &peer.Peer{Node: n}
		}
		for _, c := range []struct {
			name    string
			atLeast int
			join    []string
			want    error
		}{{"alone", 0, nil, nil}, {"joins", 0, []string{"nobody"}, peer.ErrTooFew}, {"asks", 1, []string{"nobody"}, nil}} {
			p := start(c.name, c.atLeast, c.join...)
			if s := sumOf(t.Context(), p, "x", 1); !errors.Is(s.err, c.want) || c.want == nil && s.peers != 1 {
				t.Errorf("%s: %d peers, %v", c.name, s.peers, s.err)
			} else if c.want != nil && !strings.Contains(s.err.Error(), "nobody of Network.Join has answered") {
				t.Errorf("%q does not say why", s.err)
			}
		}
	})
}
