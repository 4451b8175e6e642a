package harm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/harm"
)

// valley is a peer that goes down a bowl with steps of noisy gradients and momentum, and
// meets partners between them.
type valley struct {
	judge    harm.Judge
	rng      *rand.Rand
	x        []float32
	velocity []float32
	momentum float32
}

func newValley(seed uint64, momentum float32) *valley {
	const places = 256
	v := &valley{rng: rand.New(rand.NewPCG(seed, 1)), x: make([]float32, places), velocity: make([]float32, places), momentum: momentum}
	for i := range v.x {
		v.x[i] = 1
	}
	return v
}

// steps makes so many, each told to the judge.
func (v *valley) steps(n int) {
	for range n {
		for i := range v.x {
			gradient := 0.2*v.x[i] + float32(v.rng.NormFloat64())
			v.velocity[i] = v.momentum*v.velocity[i] - 0.01*gradient
			v.x[i] += v.velocity[i]
		}
		v.judge.Step(v.velocity)
	}
}

// meet has an exchange move x by what a partner wants of each value, and four steps follow.
func (v *valley) meet(partner string, wants func(x float32) float32) {
	moved := make([]float32, len(v.x))
	for i := range v.x {
		moved[i] = wants(v.x[i])
		v.x[i] += moved[i]
	}
	v.judge.Met(partner, moved)
	v.steps(4)
}

// What partners want: to be nearer to the bottom, where all have been drawn by other noise;
// and to be farther up.
func (v *valley) honest(x float32) float32 { return -0.3*x + 0.05*float32(v.rng.NormFloat64()) }
func (v *valley) liar(x float32) float32   { return 0.15 + 0.05*float32(v.rng.NormFloat64()) }

func (v *valley) rounds(n int, partners map[string]func(float32) float32) {
	for range n {
		for _, name := range []string{"a", "b", "c"} {
			if wants := partners[name]; wants != nil {
				v.meet(name, wants)
			}
		}
	}
}

// TestWhoGoesUpIsDistrusted: a partner that goes against the loss is trusted less and less,
// and kept away in the end; the others never are, with momentum or without.
func TestWhoGoesUpIsDistrusted(t *testing.T) {
	for _, momentum := range []float32{0, 0.9} {
		for seed := range uint64(20) {
			v := newValley(seed, momentum)
			v.rounds(30, map[string]func(float32) float32{"a": v.honest, "b": v.honest, "c": v.liar})
			for _, name := range []string{"a", "b"} {
				if trust := v.judge.Trust(name); trust < 0.9 {
					t.Errorf("momentum %g, seed %d: the honest %s is trusted to %.2f", momentum, seed, name, trust)
				}
				if err := v.judge.GraveHarm(name); err != nil {
					t.Errorf("momentum %g, seed %d: the honest %s: %v", momentum, seed, name, err)
				}
			}
			if trust := v.judge.Trust("c"); trust > 0.1 {
				t.Errorf("momentum %g, seed %d: the liar is trusted to %.2f", momentum, seed, trust)
			}
			h, news := v.judge.Distrusted("c")
			if _, again := v.judge.Distrusted("c"); !news || again || h.Partner != "c" || h.Exchanges == 0 || h.Harm <= 0 {
				t.Errorf("momentum %g, seed %d: distrusted is %v: %+v, and again %v", momentum, seed, news, h, again)
			}
		}
	}
}

// TestMomentumIsNoHarm: an exchange that undoes half of the noise of this peer's last steps,
// as with every honest partner, does no harm, though a step with momentum repeats them.
func TestMomentumIsNoHarm(t *testing.T) {
	for seed := range uint64(20) {
		v := newValley(seed, 0.9)
		for round := range 60 {
			before := append([]float32(nil), v.x...)
			v.steps(2)
			moved := make([]float32, len(v.x))
			for i := range moved {
				moved[i] = (before[i]-v.x[i])/2 + 0.02*float32(v.rng.NormFloat64())
				if round%2 == 0 { // one of the two hardly undoes any
					moved[i] = moved[i]/8 + 0.02*float32(v.rng.NormFloat64())
				}
				v.x[i] += moved[i]
			}
			v.judge.Met(fmt.Sprint("partner ", round%2), moved)
			v.steps(2)
		}
		for _, h := range v.judge.Harms(2) {
			if h.Trust < 0.5 {
				t.Errorf("seed %d: %+v", seed, h)
			}
		}
	}
}

// TestWhoTurnsIsFoundAsSoon: to have been good for long is little credit.
func TestWhoTurnsIsFoundAsSoon(t *testing.T) {
	found := func(goodFor int, seed uint64) (after int) {
		v := newValley(seed, 0.5)
		v.rounds(goodFor, map[string]func(float32) float32{"a": v.honest, "b": v.honest, "c": v.honest})
		for after = 0; v.judge.Trust("c") > 0.5; after++ {
			v.rounds(1, map[string]func(float32) float32{"a": v.honest, "b": v.honest, "c": v.liar})
			if after > 100 {
				t.Fatal("never found")
			}
		}
		return after
	}
	fresh, late := 0, 0
	for seed := range uint64(20) {
		fresh, late = fresh+found(0, seed), late+found(300, seed)
	}
	if fresh > 13*20 || late > 16*20 || late > fresh+fresh/2 {
		t.Errorf("in 20 runs one that does harm at once is found after %d exchanges, and after %d once it was good for 300", fresh, late)
	}
}

// TestAFewBlatantExchangesAreEnough: where those with the others go neither way, a partner that goes
// far against the loss is trusted least after seven exchanges, though the root of seven is less than
// that takes by its own exchanges alone.
func TestAFewBlatantExchangesAreEnough(t *testing.T) {
	for seed := range uint64(20) {
		var j harm.Judge
		rng := rand.New(rand.NewPCG(seed, 3))
		moved, step := make([]float32, 256), make([]float32, 256)
		for range 7 {
			for _, name := range []string{"a", "b", "c"} {
				for i := range moved {
					moved[i] = float32(rng.NormFloat64())
				}
				j.Met(name, moved)
				for range 4 {
					for i := range step {
						step[i] = float32(rng.NormFloat64())
						if name == "c" {
							step[i] -= moved[i] * float32(0.1+rng.Float64())
						}
					}
					j.Step(step)
				}
			}
		}
		if trust := j.Trust("c"); trust > 0.05 {
			t.Errorf("seed %d: it is trusted to %.2f", seed, trust)
		}
		for _, name := range []string{"a", "b"} {
			if trust := j.Trust(name); trust < 0.75 {
				t.Errorf("seed %d: the honest %s is trusted to %.2f", seed, name, trust)
			}
		}
	}
}

// TestNobodyIsJudgedAlone: with one partner, or where all go the same way, there is nothing to
// tell a liar by.
func TestNobodyIsJudgedAlone(t *testing.T) {
	for name, partners := range map[string]map[string]func(float32) float32{
		"one partner": {"c": newValley(1, 0).liar},
		"all alike":   {"a": newValley(1, 0).liar, "b": newValley(2, 0).liar, "c": newValley(3, 0).liar},
	} {
		v := newValley(1, 0)
		v.rounds(50, partners)
		for _, h := range v.judge.Harms(3) {
			if err := v.judge.GraveHarm(h.Partner); h.Trust < 1 || err != nil {
				t.Errorf("%s: %+v, %v", name, h, err)
			}
		}
	}
}

// TestTinyExchangesWinNoTrust: who hides each exchange that does harm behind others that move
// next to nothing is found as well.
func TestTinyExchangesWinNoTrust(t *testing.T) {
	v := newValley(7, 0)
	tiny := func(x float32) float32 { return v.honest(x) / 1000 }
	for range 60 {
		v.rounds(1, map[string]func(float32) float32{"a": v.honest, "b": v.honest, "c": v.liar})
		v.rounds(3, map[string]func(float32) float32{"c": tiny})
	}
	if trust := v.judge.Trust("c"); trust > 0.2 {
		t.Errorf("it is trusted to %.2f", trust)
	}
}

// TestWhoDoesNothingAccusesNobody: where partners' data are unlike, one that moves next to
// nothing does not make the others look bad.
func TestWhoDoesNothingAccusesNobody(t *testing.T) {
	v := newValley(8, 0)
	unlike := func(x float32) float32 { return 0.1 + 0.05*float32(v.rng.NormFloat64()) }
	tiny := func(x float32) float32 { return v.honest(x) / 1000 }
	for range 60 {
		v.rounds(1, map[string]func(float32) float32{"a": unlike, "b": unlike, "c": tiny})
		for _, name := range []string{"a", "b"} {
			if err := v.judge.GraveHarm(name); err != nil || v.judge.Trust(name) < 0.9 {
				t.Fatalf("%s is trusted to %.2f: %v", name, v.judge.Trust(name), err)
			}
		}
	}
}

// TestNoStep: one of zeros, which a trainer may commit to ask how the flock is, or one that is
// not finite, changes nothing of what is known.
func TestNoStep(t *testing.T) {
	with, without := newValley(9, 0.9), newValley(9, 0.9)
	nothing, broken := make([]float32, len(with.x)), make([]float32, len(with.x))
	broken[0] = float32(math.NaN())
	for range 30 {
		for _, v := range []*valley{with, without} {
			v.rounds(1, map[string]func(float32) float32{"a": v.honest, "b": v.honest, "c": v.liar})
		}
		with.judge.Step(nothing)
		with.judge.Step(broken)
	}
	if got, want := fmt.Sprint(with.judge.Harms(3)), fmt.Sprint(without.judge.Harms(3)); got != want {
		t.Errorf("%s, without them %s", got, want)
	}
}

// TestAnotherModel: exchanges of a model that is replaced judge nobody.
func TestAnotherModel(t *testing.T) {
	var j harm.Judge
	for range 20 {
		j.Step([]float32{1, 0})
		j.Met("a", []float32{1, 1})
		j.Forget()
		j.Step([]float32{0, -1})
	}
	if all := j.Harms(1); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestKeptAwayForAsMuchAgain: who has been kept away has to do as much harm again, and the
// error says how much it was.
func TestKeptAwayForAsMuchAgain(t *testing.T) {
	v := newValley(5, 0)
	steep := func(x float32) float32 { return 0.8 }
	partners := map[string]func(float32) float32{"a": v.honest, "b": v.honest, "c": steep}
	var err *harm.Error
	for n := 0; err == nil; n++ {
		if n > 50 {
			t.Fatalf("never: %+v", v.judge.Harms(3))
		}
		v.rounds(1, partners)
		err = v.judge.GraveHarm("c")
	}
	var as *harm.Error
	if !errors.As(error(err), &as) || err.Harm.Harm < 2 || err.Exchanges < 4 || err.Error() == "" {
		t.Errorf("%v: %+v", err, err.Harm)
	}
	v.rounds(1, partners)
	if again := v.judge.GraveHarm("c"); again != nil {
		t.Errorf("after one exchange more: %v", again)
	}
	if trust := v.judge.Trust("c"); trust > 0.5 {
		t.Errorf("who comes back is trusted to %.2f", trust)
	}
}

// TestOddNumbers: what is not finite, or nothing, judges nobody and takes no memory.
func TestOddNumbers(t *testing.T) {
	var j harm.Judge
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, odd := range [][]float32{{nan, 1}, {inf, 1}, {0, 0}, {math.MaxFloat32, math.MaxFloat32}} {
		for range 20 {
			j.Met("odd", odd)
			j.Step(odd)
			j.Met("even", []float32{1, 1})
			j.Step(odd)
			j.Step([]float32{1, -1})
		}
	}
	for _, h := range j.Harms(10) {
		if h.Trust != h.Trust || math.IsInf(h.Harm, 0) || h.Harm != h.Harm {
			t.Errorf("%+v", h)
		}
	}
	for i := range 1000 {
		j.Met(fmt.Sprint(i), []float32{1, 2})
	}
	for range 8 {
		j.Step([]float32{1, 2})
	}
	if n := len(j.Harms(10_000)); n > 128 {
		t.Errorf("%d partners are known", n)
	}
	if h, news := j.Distrusted("nobody"); news || j.GraveHarm("nobody") != nil || j.Trust("nobody") != 1 {
		t.Errorf("of nobody: %+v", h)
	}
}

// BenchmarkJudge is an exchange and the four steps that judge it.
func BenchmarkJudge(b *testing.B) {
	const places = 2048
	var j harm.Judge
	moved, step := make([]float32, places), make([]float32, places)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range step {
		moved[i], step[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
	}
	names := []string{"a", "b", "c", "d"}
	b.ReportAllocs()
	for n := range b.N {
		j.Met(names[n%4], moved)
		for range 4 {
			j.Step(step)
		}
	}
}
