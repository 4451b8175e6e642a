package follow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func reports(t *rapid.T) []Report {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Report {
		return Report{
			New: rapid.Uint32Range(0, 100).Draw(t, "new"), Steps: rapid.Uint32Range(0, MaxSteps).Draw(t, "steps"),
			Regret: rapid.Float64Range(0, 100).Draw(t, "regret"), Cost: rapid.Float64Range(0, 1000).Draw(t, "cost"),
		}
	}), 0, 20).Draw(t, "reports")
}

// TestDecide: what is decided does not depend on the order, never trains without news, and is what the definition says.
func TestDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, price := reports(t), rapid.Float64Range(1e-3, 1).Draw(t, "price")
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for _, p := range []Policy{CostAware, BestEffort} {
			d := Decide(p, price, all)
			other := slices.Clone(all)
			chance.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
			if again := Decide(p, price, other); again != d {
				t.Fatalf("%s: %+v in one order, %+v in another", p, d, again)
			}
			news, regret := false, false
			for _, r := range all {
				news = news || r.New > 0 && r.Steps > 0
				regret = regret || r.Regret > 0 && r.Steps > 0
			}
			want := p == BestEffort && news || p == CostAware && (news || regret) && d.Regret >= d.Price
			if (d.Steps > 0) != want || d.Steps > MaxSteps || d.Regret > maxSay*d.Price*(1+1e-12) {
				t.Fatalf("%s: %+v of %+v", p, d, all)
			}
		}
	})
}

// TestOneLiar: a member that tells anything moves what is weighed by at most two prices over the number of those with news.
func TestOneLiar(t *testing.T) {
	honest := Report{New: 10, Steps: 100, Regret: 0.1, Cost: 10}
	for n := 3; n < 20; n++ {
		all := slices.Repeat([]Report{honest}, n)
		truth := Decide(CostAware, 0.02, all)
		for _, lie := range []Report{{}, {New: math.MaxUint32, Steps: MaxSteps, Regret: maxNumber, Cost: maxNumber}, {New: 1, Steps: 1}} {
			all[0] = lie
			d := Decide(CostAware, 0.02, all)
			if d.Price != truth.Price || math.Abs(d.Regret-truth.Regret) > maxSay*d.Price/float64(n)*(1+1e-12) {
				t.Errorf("of %d, one that tells %+v: %+v, honest %+v", n, lie, d, truth)
			}
		}
	}
}

// TestSkiRental: with a constant loss, trainings come when the regret is worth their price: it is paid twice what is best at most.
func TestSkiRental(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		missing, cost := rapid.Float64Range(0.1, 1).Draw(t, "missing"), rapid.Float64Range(1, 100).Draw(t, "cost")
		price := rapid.Float64Range(0.01, 0.5).Draw(t, "price")
		var e estimate
		second := 0
		for ; second < 100_000; second++ {
			e.measured(time.Duration(second)*time.Second, 1-missing, 1_000_000_000, 1)
			if Decide(CostAware, price, []Report{{New: 1, Steps: 1, Regret: e.regret, Cost: cost}}).Steps > 0 {
				break
			}
		}
		// One second more than the moment, as there is one look a second; the error of each measurement counts as no loss.
		if waited, best := float64(second)*missing, price*cost; waited < best*(1-1e-9) || waited > best*1.001+1.01*missing {
			t.Fatalf("trained after a loss of %g, at a price of %g", waited, best)
		}
	})
}

// TestRegretOfNothing: chance piles up little where a model is as good as it can be, and a loss does at once.
func TestRegretOfNothing(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 0))
	const n, accuracy = 256, 0.85
	var e estimate
	e.trained(time.Second, 1, 100_000, accuracy)
	look := func(second int, truth float64) {
		right := 0
		for range n {
			if chance.Float64() < truth {
				right++
			}
		}
		e.measured(time.Duration(second)*time.Second, float64(right)/n, n, 10)
	}
	for second := range 1000 {
		if look(second, accuracy); e.regret > 0.1 {
			t.Fatalf("regret of %g after %d s in which nothing was lost", e.regret, second)
		}
	}
	for second := range 4 {
		look(1000+second, accuracy/2)
	}
	if e.regret < 1 {
		t.Errorf("regret of %g after 4 s in which half is lost", e.regret)
	}
	if mean := e.mean(); math.Abs(mean-accuracy) > 0.01 {
		t.Errorf("a mean accuracy of %g, want %g", mean, accuracy)
	}
}

func TestReportsTravel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range reports(t) {
			if back, err := DecodeReport(r.Encode()); err != nil || back != r {
				t.Fatalf("%+v: %+v, %v", r, back, err)
			}
		}
	})
}

// FuzzDecodeReport: what is decoded is in its bounds, and is coded as it was.
func FuzzDecodeReport(f *testing.F) {
	f.Add(Report{New: 3, Steps: 4, Regret: 0.5, Cost: 7}.Encode())
	f.Add(Report{Regret: math.NaN()}.Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, block []byte) {
		r, err := DecodeReport(block)
		if err != nil {
			return
		}
		if !(r.Regret >= 0 && r.Regret <= maxNumber) || !(r.Cost >= 0 && r.Cost <= maxNumber) || r.Steps > MaxSteps || string(r.Encode()) != string(block) {
			t.Fatalf("%x: %+v", block, r)
		}
	})
}

func TestPolicies(t *testing.T) {
	for i, name := range Policies() {
		if p, err := ParsePolicy(name); err != nil || p != Policy(i) || p.String() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := ParsePolicy("daily"); err == nil {
		t.Error("a policy of no such name")
	}
}

// TestReservoir: each row is kept with the same chance, those that are dropped aside.
func TestReservoir(t *testing.T) {
	const most, rows, tries = 20, 100, 4000
	var counts [rows]int
	for seed := range uint64(tries) {
		r := NewReservoir[int](most, rand.New(rand.NewPCG(seed, 0)))
		for i := range rows {
			r.Add(i)
		}
		if len(r.Rows()) != most || r.Seen() != rows {
			t.Fatalf("%d of %d are kept", len(r.Rows()), r.Seen())
		}
		for _, i := range r.Rows() {
			counts[i]++
		}
		r.Drop(func(rows []int) []int { return rows[:most/2] })
		if len(r.Rows()) != most/2 || r.Seen() != rows/2 {
			t.Fatalf("%d that stand for %d are left", len(r.Rows()), r.Seen())
		}
	}
	const want = tries * most / rows
	for i, n := range counts {
		if math.Abs(float64(n-want)) > 5*math.Sqrt(want) {
			t.Errorf("row %d is kept %d times of %d, want %d", i, n, tries, want)
		}
	}
}

// TestTrainingsInVain: three in a row that leave far more than the least error tell that old rows are in the way, once.
func TestTrainingsInVain(t *testing.T) {
	var e estimate
	for i, step := range []struct {
		accuracy float64
		stuck    bool
	}{{0.5, false}, {0.9, false}, {0.5, false}, {0.5, false}, {0.8, false}, {0.5, false}, {0.5, false}, {0.5, true}, {0.5, false}, {0.5, false}, {0.5, false}} {
		e.trained(time.Second, 1, 100, step.accuracy)
		if stuck := e.stuck(); stuck != step.stuck {
			t.Errorf("training %d, accuracy %g: in vain %t", i, step.accuracy, stuck)
		}
		if step.stuck {
			e.anew()
		}
	}
}
