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
	t.Run("memory", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testSums(t, false) }) })
	t.Run("loopback", func(t *testing.T) { testSums(t, true) })
}

func testSums(t *testing.T, loopback bool) {
	f := peertest.Start(t, peertest.Config{Peers: 4, Loopback: loopback})
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

// TestSumsBesideTraining shows that a flock that trains can sum meanwhile.
func TestSumsBesideTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel})
		var trained sync.WaitGroup
		trained.Go(func() { f.TrainSteps(t.Context(), 50, atPace(10*time.Millisecond, towards)) })
		for round := range 10 {
			got := sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, fmt.Sprint(round), 1) })
			sameSum(t, "sum", got, summed{vector: []float64{3}, peers: 3})
		}
		trained.Wait()
	})
}

// TestASumGoesOnWithoutTheDead shows that real peers, one of which is killed while they sum, all
// have the same.
func TestASumGoesOnWithoutTheDead(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 12 * time.Millisecond} {
		for victim := range 4 {
			synctest.Test(t, func(t *testing.T) {
				f := peertest.Start(t, peertest.Config{Peers: 4, Swim: true, Link: memnet.Link{Delay: time.Millisecond}})
				ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
				defer end()
				go func() {
					time.Sleep(after)
					f.Crash(victim)
				}()
				got := sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(ctx, p, "x", float64(int(1)<<i), 1) })
				delete(got, victim)
				sameSum(t, fmt.Sprint("without ", victim, " after ", after), got, got[(victim+1)%4])
				if s := got[(victim+1)%4]; s.err == nil && s.vector[1] != float64(s.peers) || s.peers < 3 {
					t.Errorf("%v of %d: %v", s.vector, s.peers, s.err)
				}
				synctest.Wait()
			})
		}
	}
}

// TestSumsThatFail shows what is refused, and how a sum ends that cannot be made.
func TestSumsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 2, Configure: func(_ int, c *peer.Config) {
			c.Network.Sums = peer.Sums{Timeout: 5 * time.Second}
		}})
		a := f.Peers[0]
		if s := sumOf(t.Context(), a, "x", math.NaN()); s.err == nil {
			t.Error("NaN is summed")
		}
		if s := sumOf(t.Context(), a, "two\nlines", 1); s.err == nil {
			t.Error("a name of two lines")
		}
		got := sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, "y", make([]float64, i)...) })
		for i, s := range got {
			if !errors.Is(s.err, peer.ErrMismatch) {
				t.Errorf("peer %d: %v", i, s.err)
			}
		}
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
	})
}

// TestASumCostsTwiceItsBytes shows what each of eight peers sends for a sum, all counted.
func TestASumCostsTwiceItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 8})
		vector := make([]float64, 10<<20/8)
		before := make(map[int]uint64)
		for i, p := range f.Peers {
			before[i] = p.Stats().Exchanges.BytesSent
		}
		sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, "x", vector...) })
		for i, p := range f.Peers {
			ratio := float64(p.Stats().Exchanges.BytesSent-before[i]) / float64(8*len(vector))
			if i == 0 {
				t.Logf("%.3f of what it brings", ratio)
			}
			if ratio > 2.1 || ratio < 1.7 {
				t.Errorf("peer %d sends %.3f of what it brings", i, ratio)
			}
		}
	})
}

// TestCloseEndsASum shows that Close does not wait for a sum that others do not come to.
func TestCloseEndsASum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 2})
		var closed sync.WaitGroup
		closed.Go(func() {
			time.Sleep(time.Second)
			if err := f.Peers[0].Close(); err != nil {
				t.Error(err)
			}
		})
		if s := sumOf(t.Context(), f.Peers[0], "x", 1); !errors.Is(s.err, peer.ErrClosed) {
			t.Errorf("after Close: %v", s.err)
		}
		closed.Wait()
	})
}

// TestASumNeedsAtLeast shows that too few members are told so.
func TestASumNeedsAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 2, Configure: func(i int, c *peer.Config) {
			c.Network.Sums = peer.Sums{AtLeast: 2 + i, Timeout: 5 * time.Second}
		}})
		for i, s := range sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, "x", 1) }) {
			if !errors.Is(s.err, peer.ErrTooFew) {
				t.Errorf("peer %d: %v", i, s.err)
			}
		}
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

// TestASumThatIsNotFinite shows that finite numbers that overflow, and a number that is none, are one error.
func TestASumThatIsNotFinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 3})
		got := sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, "x", 1, math.MaxFloat64) })
		for i, s := range got {
			if !errors.Is(s.err, peer.ErrNotFinite) || s.vector != nil {
				t.Errorf("peer %d: %v, %v", i, s.vector, s.err)
			}
		}
		if s := sumOf(t.Context(), f.Peers[0], "y", math.NaN()); !errors.Is(s.err, peer.ErrNotFinite) {
			t.Errorf("its own: %v", s.err)
		}
	})
}
