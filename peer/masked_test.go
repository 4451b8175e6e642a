package peer_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/topology"
)

// masking starts peers whose sums have masks or not.
func masking(t testing.TB, peers int, masked *bool, shape topology.Shape, loopback bool) *peertest.Flock {
	return peertest.Start(t, peertest.Config{Peers: peers, Loopback: loopback, Configure: func(_ int, c *peer.Config) {
		c.Network.Sums = peer.Sums{Masked: masked, Timeout: 5 * time.Second, Topology: shape}
	}})
}

// TestSumsWithMasks shows sums with masks, over a network in memory and over TCP: integers are exact, other numbers
// within what Sum says, the same at all, and with SumWithin too.
func TestSumsWithMasks(t *testing.T) {
	t.Parallel()
	for _, shape := range topology.Shapes() {
		t.Run("memory, "+shape.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testMasked(t, shape, false) }) })
	}
	t.Run("loopback", func(t *testing.T) { testMasked(t, topology.Tree, true) })
}

func testMasked(t *testing.T, shape topology.Shape, loopback bool) {
	const n, largest = 5, 1 << 40
	f := masking(t, n, new(true), shape, loopback)
	for round := range 10 {
		got := sumAll(f, func(i int, p *peer.Peer) summed {
			return sumOf(t.Context(), p, fmt.Sprint("sum ", round), float64(i), 1, -1, largest-float64(i), 0)
		})
		sameSum(t, "sum", got, summed{vector: []float64{10, 5, -5, 5*largest - 10, 0}, peers: n})
	}
	for name, within := range map[string]float64{"by the largest": 0, "within": largest} {
		got := sumAll(f, func(i int, p *peer.Peer) (s summed) {
			vector := []float64{0.1 * float64(i), math.Pi, -1e-3}
			if s.vector, s.peers, s.err = peer.SumWithin(t.Context(), p.Node, name, vector, within); within == 0 {
				s = sumOf(t.Context(), p, name, vector...)
			}
			return s
		})
		sameSum(t, name, got, got[0])
		scale := math.Ldexp(1, 62-3-2) // 4 > 3.1…, 8 ≥ 5 members
		if within > 0 {
			scale = math.Ldexp(1, 62-3-41)
		}
		for i, want := range []float64{1, 5 * math.Pi, -5e-3} {
			if off := math.Abs(got[0].vector[i] - want); off > n/2.0/scale+math.Abs(want)*0x1p-50 {
				t.Errorf("%s: %g, want %g: %g off", name, got[0].vector[i], want, off)
			}
		}
	}
}

// TestSumsThatMasksRefuse shows what fails with masks: fewer than three, members that differ in them, numbers beyond
// what was said, and sums beyond all float64.
func TestSumsThatMasksRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := func(f *peertest.Flock, want error, says, name string, vector ...float64) {
			t.Helper()
			for i, s := range sumAll(f, func(_ int, p *peer.Peer) summed { return sumOf(t.Context(), p, name, vector...) }) {
				if !errors.Is(s.err, want) || s.vector != nil || !strings.Contains(s.err.Error(), says) {
					t.Errorf("peer %d has %v, %v; want %v", i, s.vector, s.err, want)
				}
			}
		}
		all(masking(t, 2, new(true), topology.Exponential, false), peer.ErrTooFew, "a sum with masks needs 3", "two", 1)
		three := masking(t, 3, new(true), topology.Exponential, false)
		all(three, peer.ErrNotFinite, "", "overflow", math.MaxFloat64)
		for _, largest := range []float64{0.5, math.Inf(1), math.NaN(), -1} {
			if _, _, err := peer.SumWithin(t.Context(), three.Peers[0].Node, "beyond", []float64{1}, largest); err == nil {
				t.Errorf("1 is summed within %g", largest)
			}
		}
		differ := peertest.Start(t, peertest.Config{Peers: 3, Configure: func(i int, c *peer.Config) {
			c.Network.Sums.Masked = []*bool{new(true), new(false), new(false)}[i]
		}})
		all(differ, peer.ErrMismatch, "sum with masks", "differ", 1)
	})
}

// TestClosedRunsMask shows that sums have masks by default where the run has a key or a list, and that Sums.Masked
// leaves them out.
func TestClosedRunsMask(t *testing.T) {
	for masked, want := range map[*bool]error{nil: peer.ErrTooFew, new(false): nil} {
		synctest.Test(t, func(t *testing.T) {
			f := peertest.Start(t, peertest.Config{Peers: 2, Configure: func(_ int, c *peer.Config) {
				c.Network.Admission.RunKey = runKey
				c.Network.Sums = peer.Sums{Masked: masked, Timeout: 5 * time.Second}
			}})
			for i, s := range sumAll(f, func(_ int, p *peer.Peer) summed { return sumOf(t.Context(), p, "x", 1) }) {
				if !errors.Is(s.err, want) {
					t.Errorf("masked %v: peer %d has %v, want %v", masked, i, s.err, want)
				}
			}
		})
	}
}

// BenchmarkMaskedSum is sums of four peers over TCP without masks and with, by turns: what the second cost, as many times
// the time and the bytes of the first.
func BenchmarkMaskedSum(b *testing.B) {
	for _, length := range []int{8, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			var took [2]time.Duration
			var sent [2]uint64
			flocks := [2]*peertest.Flock{masking(b, 4, new(false), topology.Exponential, true), masking(b, 4, new(true), topology.Exponential, true)}
			vector := make([]float64, length)
			bytes := func(f *peertest.Flock) (n uint64) {
				for _, p := range f.Peers {
					n += p.Stats().Exchanges.BytesSent
				}
				return n
			}
			for round := 0; b.Loop(); round++ {
				for i, f := range flocks {
					before, began := bytes(f), time.Now()
					for k, s := range sumAll(f, func(_ int, p *peer.Peer) summed { return sumOf(b.Context(), p, fmt.Sprint(round), vector...) }) {
						if s.err != nil {
							b.Fatalf("peer %d: %v", k, s.err)
						}
					}
					took[i] += time.Since(began)
					sent[i] += bytes(f) - before
				}
			}
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "times-as-long")
			b.ReportMetric(float64(sent[1])/float64(sent[0]), "times-the-bytes")
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "µs/plain")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "µs/masked")
		})
	}
}
