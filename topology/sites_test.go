package topology

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// gapOf is the spectral gap of the expected mixing matrix of an exchange with these weights
// between members, for one exchange of each.
func gapOf(t *testing.T, weights *mat.SymDense) float64 {
	t.Helper()
	n, total := weights.SymmetricDim(), mat.Sum(weights)/2
	l := mat.NewSymDense(n, nil)
	for a := range n {
		for b := a + 1; b < n; b++ {
			w := weights.At(a, b) / total * float64(n) / 4
			l.SetSym(a, b, -w)
			l.SetSym(a, a, l.At(a, a)+w)
			l.SetSym(b, b, l.At(b, b)+w)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(l, false) {
		t.Fatal("the eigenvalues do not converge")
	}
	return eigen.Values(nil)[1]
}

// linked adds the links of members to weights, each active's together to all, by their places in the view.
func linked(t *testing.T, weights *mat.SymDense, whole *View, members []Member, all float64) {
	t.Helper()
	o := mustOverlay(t, members)
	for e := range o.Edges() {
		a, _ := whole.position(e.Active)
		p, _ := whole.position(e.Passive)
		weights.SetSym(a, p, weights.At(a, p)+all/float64(len(o.Neighbours(e.Active))))
	}
}

// TestGapBoundsWhatSitesSave: an overlay of two equal sites that makes a share q of its exchanges
// across has a gap of at most q, since no other exchange brings the sites' means together. So one
// that is to have 0.8 of the blind overlay's gap saves at most (blind share) / (0.8 of the blind gap)
// of the bytes across; links inside a site by the same rule, and a share across, come near that.
func TestGapBoundsWhatSitesSave(t *testing.T) {
	for _, n := range []int{16, 64, 200} {
		whole := mustView(t, peers(n, Undecided))
		order, sites, count := rand.New(rand.NewPCG(1, uint64(n))).Perm(n), make([]int, n), [Passive + 1]int{}
		for _, i := range order { // half of each class is at each site
			role := whole.At(i).Role
			sites[i] = count[role] % 2
			count[role]++
		}
		site := func(i int) int { return sites[i] } // of a place in the view
		blind := mat.NewSymDense(n, nil)
		linked(t, blind, whole, whole.Members(), 1)
		across := func(weights *mat.SymDense) float64 {
			sum := 0.0
			for a := range n {
				for b := range n {
					if site(a) != site(b) {
						sum += weights.At(a, b)
					}
				}
			}
			return sum / mat.Sum(weights)
		}
		gap, share := gapOf(t, blind), across(blind)
		aware := func(q float64) *mat.SymDense {
			w := mat.NewSymDense(n, nil)
			for s := range 2 {
				var own []Member
				for i, m := range whole.Members() {
					if site(i) == s {
						own = append(own, m)
					}
				}
				linked(t, w, whole, own, 1-q)
			}
			beyond := mat.NewSymDense(n, nil)
			for a := range n {
				for b := range n {
					if site(a) != site(b) {
						beyond.SetSym(a, b, blind.At(a, b))
					}
				}
			}
			scale := q / (1 - q) * mat.Sum(w) / mat.Sum(beyond)
			for a := range n {
				for b := a + 1; b < n; b++ {
					w.SetSym(a, b, w.At(a, b)+scale*beyond.At(a, b))
				}
			}
			return w
		}
		low, high := 0.01, 0.99 // the least share across with 0.8 of the gap
		for high-low > 0.001 {
			if q := (low + high) / 2; gapOf(t, aware(q)) >= 0.8*gap {
				high = q
			} else {
				low = q
			}
		}
		t.Logf("%3d members: blind, %.2f of the exchanges are across, gap %.3f; by sites, %.2f across have 0.8 of it: %.1f times fewer, at most %.1f",
			n, share, gap, high, share/high, share/(0.8*gap))
		for _, q := range []float64{0.05, 0.2, 0.5} {
			if got := gapOf(t, aware(q)); got > q+1e-9 {
				t.Errorf("%d members: %g of the exchanges across have a gap of %g", n, q, got)
			}
		}
		if high > 2*0.8*gap || math.IsNaN(high) {
			t.Errorf("%d members: %.3f across are needed, the bound is %.3f", n, high, 0.8*gap)
		}
	}
}
