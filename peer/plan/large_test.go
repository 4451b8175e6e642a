package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/optimize"
)

// fleet is a random state of that many tasks and members, of all kinds, some with little memory or a slow link; nearly
// all deadlines can be kept.
func fleet(r *rand.Rand, tasks, members int) State {
	var s State
	total, speed := 0.0, 0.0
	for i := range members {
		m := Member{Name: fmt.Sprintf("member%03d", i), Speed: 100 * (1 + 7*r.Float64()), Memory: float64(int(2) << r.IntN(4)), Link: 1e5 * (1 + 9*r.Float64())}
		speed += m.Speed
		s.Members = append(s.Members, m)
	}
	for i := range tasks {
		t := Task{Name: fmt.Sprintf("task%03d", i), Kind: Epoch, Samples: 1000 + r.IntN(60_000), Cost: 1 + 3*r.Float64(), Memory: float64(int(1) << r.IntN(4)), Bytes: float64(r.IntN(200))}
		if r.IntN(3) == 0 {
			t.Kind, t.Samples = Evaluation, 100+r.IntN(2000)
			if r.IntN(2) == 0 {
				t.Kind = Fit
			}
		} else {
			t.Most, t.Curve = 2*t.Samples, []Point{{1000, 0.5}, {10_000, 0.7 + 0.1*r.Float64()}, {100_000, 0.85}}
		}
		total += float64(t.Samples) * t.Cost
		s.Tasks = append(s.Tasks, t)
	}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; r.IntN(4) == 0 {
			t.Deadline = total / speed * (1 + r.Float64())
		} else if r.IntN(5) == 0 {
			t.Arrival = total / speed * 0.5 * r.Float64()
		}
	}
	return s
}

// Plans of a hundred tasks for four hundred members are within a tenth of the bound; BenchmarkLarge says what one takes.
func TestLarge(t *testing.T) {
	worst := 0.0
	for seed := range uint64(10) {
		s := fleet(rand.New(rand.NewPCG(seed, 1)), 100, 400)
		p := made(t, s)
		worst = max(worst, p.Makespan/p.Bound)
	}
	if t.Logf("at most %.3f of the bound", worst); worst > 1.1 {
		t.Errorf("%v of the bound", worst)
	}
}

// Where whole tasks are many for a member, each still goes where there is room: they were all done by one, after 40 s.
func TestManyWhole(t *testing.T) {
	const tasks, members = 2000, 10
	s := fleet(rand.New(rand.NewPCG(1, 1)), 0, members)
	for i := range s.Members {
		s.Members[i] = Member{Name: s.Members[i].Name, Speed: 1}
	}
	for i := range tasks {
		s.Tasks = append(s.Tasks, Task{Name: fmt.Sprint(i), Kind: Evaluation, Samples: 1 + i%3})
	}
	if p := made(t, s); p.Makespan > 1.01*p.Bound+3 {
		t.Errorf("%v, where %v is possible", p.Makespan, p.Bound)
	}
}

// A curve is fitted as well as a minimizer of many variables can.
func TestFitsAreTheBest(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		var points []Point
		for at := 1.0; len(points) < 3+r.IntN(20); at *= 1 + 2*r.Float64() {
			points = append(points, Point{math.Ceil(at) * 100, 0.9 - 0.5*math.Pow(at, -r.Float64()) + 0.02*r.NormFloat64()})
		}
		for i := range points[1:] {
			points[i+1].Samples = max(points[i+1].Samples, points[i].Samples+1)
		}
		within := func(x float64) float64 { return min(max(x, minPower), maxPower) }
		fault := func(x []float64) float64 {
			_, fault := linearFit(points, within(x[0]))
			return fault
		}
		found, err := optimize.Minimize(optimize.Problem{Func: fault}, []float64{0.5}, &optimize.Settings{MajorIterations: 60}, &optimize.NelderMead{SimplexSize: 0.1})
		if found == nil {
			t.Fatal(err)
		}
		got, best := fault([]float64{fitCurve(points).power}), fault([]float64{rounded(within(found.X[0]), curveDigits/2)})
		if got > best*(1+1e-9)+1e-15 {
			t.Errorf("seed %d: faults of %g, a minimizer's are %g", seed, got, best)
		}
	}
}

func BenchmarkLarge(b *testing.B) {
	s := fleet(rand.New(rand.NewPCG(0, 1)), 100, 400)
	for b.Loop() {
		if _, err := Make(s); err != nil {
			b.Fatal(err)
		}
	}
}
