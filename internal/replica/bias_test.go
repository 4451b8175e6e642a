package replica

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestWatchedPlaces: what is watched lies in the shared slices, once each, spread evenly
// whatever the cut, and elsewhere for another seed.
func TestWatchedPlaces(t *testing.T) {
	for _, c := range []struct{ values, sliceLen, want int }{{1, 8, 1}, {100, 7, 100}, {1000, 1000, slicePlaces}, {5000, 333, biasPlaces}} {
		layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{c.values}}, tensor.Spec{Name: "own", Shape: []int{50}, Sharing: tensor.Local})
		if err != nil {
			t.Fatal(err)
		}
		places := func(seed uint64) (all []int) {
			r, err := New(tensor.NewParams(layout), Options{SliceLen: c.sliceLen, Watch: seed})
			if err != nil {
				t.Fatal(err)
			}
			w := r.biases.watched
			for shared, i := range r.shared {
				for _, at := range w.at[w.first[shared]:w.first[shared+1]] {
					if at < 0 || at >= r.slices[i].length {
						t.Fatalf("place %d in a slice of %d", at, r.slices[i].length)
					}
					all = append(all, r.slices[i].offset+at)
				}
			}
			return all
		}
		one, other := places(1), places(2)
		for i, at := range one {
			if at < i*c.values/c.want || at >= (i+1)*c.values/c.want {
				t.Errorf("%+v: place %d is %d", c, i, at)
			}
		}
		if len(one) != c.want || c.want < c.values && fmt.Sprint(one) == fmt.Sprint(other) {
			t.Errorf("%+v: %d places; another seed has %d, the same if equal", c, len(one), len(other))
		}
	}
}

// TestPullTellsDirectionsApart: 1 of who always pushes the same way, about 1/√k of who
// pushes anyhow; a change of mind shows within some 64 exchanges, and who is not met is
// forgotten.
func TestPullTellsDirectionsApart(t *testing.T) {
	r, _ := oneBigSlice(t)
	random := rand.New(rand.NewPCG(1, 1))
	draw := func() (m moves) {
		for i := range m {
			m[i] = random.NormFloat64()
		}
		return m
	}
	direction := draw()
	push := func(partner string, m moves) { r.biases.add(partner, &moved{drawn: m}) }
	news := 0
	for i := range 200 {
		push("one way", direction)
		push("any way", draw())
		pull, told := r.OneSided("one way")
		if told {
			news++
			if pull.Exchanges != biasEnough || pull.Ratio < 0.999 {
				t.Errorf("told of %+v", pull)
			}
		}
		if _, told := r.OneSided("any way"); told {
			t.Errorf("who pushes anyhow is told of after %d exchanges", i+1)
		}
	}
	pulls := r.Biases(2)
	if news != 1 || len(pulls) != 2 || pulls[0].Partner != "one way" || pulls[1].Ratio > 0.25 {
		t.Errorf("told %d times; %+v", news, pulls)
	}
	for range 200 {
		push("one way", draw())
	}
	if pull := r.Biases(2)[0]; pull.Ratio > 0.25 {
		t.Errorf("after 200 exchanges in any direction %+v", pull)
	}
	bad := direction
	bad[0] = math.Inf(1)
	push("bad", bad)
	push("still", moves{})
	for i := range 2 * maxBiases {
		push(fmt.Sprint(i), direction)
	}
	knows := func(partner string) bool { known, _ := r.biases.find(partner); return known != nil }
	if n := len(r.biases.of); n != maxBiases || knows("one way") || knows("bad") || knows("still") {
		t.Errorf("%d partners are known", n)
	}
	push(fmt.Sprint(maxBiases), direction) // who is met again is not the next to be forgotten
	push("new", direction)
	if !knows(fmt.Sprint(maxBiases)) || knows(fmt.Sprint(maxBiases+1)) || len(r.biases.of) != maxBiases {
		t.Errorf("of %d partners known not the one that was not met for the longest time is forgotten", len(r.biases.of))
	}
}

// TestWhoPullsOneWayIsTrustedLess: after a few exchanges, the less the steadier it pulls, and
// only where there are others; what it does otherwise counts again.
func TestWhoPullsOneWayIsTrustedLess(t *testing.T) {
	r, _ := oneBigSlice(t)
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(of float64) (m moves) {
		for i := range m {
			m[i] = of * random.NormFloat64()
		}
		return m
	}
	direction := draw(1)
	push := func(partner string, noise float64) {
		m := draw(noise)
		for i := range m {
			m[i] += direction[i]
		}
		r.biases.add(partner, &moved{drawn: m})
	}
	for range 100 {
		push("alone", 0)
	}
	if got := r.biases.trust("alone"); got != 1 {
		t.Errorf("the only partner is trusted to %g", got)
	}
	for n := range 60 {
		push("steady", 0)
		push("half", 0.5)
		for _, wavering := range []string{"any", "other", "third"} { // more than there are steady ones
			push(wavering, 2)
		}
		if got := r.biases.trust("steady"); n+1 < steadyEnough && got != 1 || n+1 >= steadyEnough && got > leastTrust+1e-9 {
			t.Fatalf("after %d exchanges one that pushes one way is trusted to %g", n+1, got)
		}
	}
	half := (1 - 1/math.Sqrt(1.25)) / (1 - steady)
	if got := r.biases.trust("half"); math.Abs(got-half) > 0.1 || r.biases.trust("any") != 1 || r.biases.trust("nobody") != 1 {
		t.Errorf("one that pushes mostly one way is trusted to %g, want about %g; one that hardly does to %g", got, half, r.biases.trust("any"))
	}
	for range 20 { // this side's own steps go one way, as where no gradient has any noise
		r.biases.add("any", &moved{own: direction})
	}
	if got := r.biases.trust("steady"); got != 1 {
		t.Errorf("with steady steps of one's own a steady partner is trusted to %g", got)
	}
	r.biases.own = leaning{}
	for range 200 {
		push("steady", 20)
	}
	if got := r.biases.trust("steady"); got != 1 {
		t.Errorf("one that has changed its mind is trusted to %g", got)
	}
}

// TestStatisticsJudgeNobody: a statistic has no gradient, so partners are judged at other
// values.
func TestStatisticsJudgeNobody(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{300}}, tensor.Spec{Name: "mean", Shape: []int{200}, Kind: tensor.Statistic},
		tensor.Spec{Name: "v", Shape: []int{100}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(tensor.NewParams(layout), Options{SliceLen: 64})
	if err != nil {
		t.Fatal(err)
	}
	p := r.judgement.places
	if n := len(p.at); n < 140 || n > 200 || len(p.overall) != n || len(p.first) != len(r.shared)+1 || p.first[len(r.shared)] != n { // two thirds of 256
		t.Fatalf("%d places, %d of the vector, %d first", len(p.at), len(p.overall), len(p.first))
	}
	for shared, i := range r.shared {
		for k := p.first[shared]; k < p.first[shared+1]; k++ {
			if at := p.overall[k]; at != r.slices[i].offset+p.at[k] || at >= 300 && at < 500 {
				t.Errorf("place %d is %d", k, at)
			}
		}
	}
}
