package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// flock is members that search in a world of which a test is the clock: each has its own report, and those that are present meet.
type flock struct {
	t       interface{ Fatalf(string, ...any) }
	c       Config
	rng     *rand.Rand
	reports []Report
	models  []map[Held]bool
	trained map[Held]int // how often each slice was trained to its end
	score   func(trial, steps int) float64
	plan    Plan
	lost    int // slices whose members all died
}

func newFlock(t interface{ Fatalf(string, ...any) }, c Config, members int, seed uint64) *flock {
	f := &flock{t: t, c: c, rng: rand.New(rand.NewPCG(seed, 1)), trained: map[Held]int{}, score: func(trial, steps int) float64 {
		return float64(trial * 10 % 27)
	}}
	for i := range members {
		f.come(fmt.Sprint("m", i))
	}
	return f
}

func (f *flock) come(name string) {
	f.reports, f.models = append(f.reports, Report{Member: name}), append(f.models, map[Held]bool{})
}

// die removes a member, and counts what was trained by nobody else.
func (f *flock) die(i int) {
	if j := f.reports[i].Job; j != nil && f.reports[i].Outcome == nil && len(j.Members) == 1 {
		f.lost++
	}
	f.reports, f.models = slices.Delete(f.reports, i, i+1), slices.Delete(f.models, i, i+1)
}

// meet lets all meet, in two orders of their blocks, and gives them what the plan gives.
func (f *flock) meet() {
	var blocks [][]byte
	for _, r := range f.reports {
		block, err := r.Encode()
		if err != nil {
			f.t.Fatalf("%v", err)
		}
		blocks = append(blocks, block)
	}
	plan, left := f.c.Meet(blocks)
	f.rng.Shuffle(len(blocks), func(i, k int) { blocks[i], blocks[k] = blocks[k], blocks[i] })
	if again, _ := f.c.Meet(blocks); left != nil || !reflect.DeepEqual(plan, again) {
		f.t.Fatalf("left %v; another order of blocks gives\n%+v\nnot\n%+v", left, again, plan)
	}
	f.plan = plan
	f.check()
	for i := range f.reports {
		r, models := &f.reports[i], f.models[i]
		for _, one := range plan.Came {
			models[one.Held] = true
		}
		if r.Outcome != nil && slices.ContainsFunc(plan.Results, func(x Result) bool {
			return x.Trial == r.Job.Trial && x.Steps == r.Job.To && x.Model == r.Outcome.Model
		}) {
			models[Held{r.Job.Trial, r.Job.To}] = true
		}
		r.Results, r.Held, r.Brings = plan.Results, nil, nil
		for h := range models {
			r.Held = append(r.Held, h)
		}
		for _, h := range plan.Asked[r.Member] {
			if !models[h] {
				f.t.Fatalf("%s is asked for a model that it has not: %v", r.Member, h)
			}
			r.Brings = append(r.Brings, Model{Held: h, Data: []byte{1}})
		}
		slices.SortFunc(r.Held, func(a, b Held) int { return cmp.Or(a.Trial-b.Trial, a.Steps-b.Steps) })
		if j, any := plan.Of(r.Member); !any {
			r.Job, r.Outcome = nil, nil
		} else if r.Job == nil || !r.Job.Same(j) {
			r.Job, r.Outcome = &j, nil
			if j.From > 0 && !models[Held{j.Trial, j.From}] {
				f.t.Fatalf("%s is to train %v on, whose model it has not", r.Member, j)
			}
		}
	}
}

// check holds a plan against what any plan must be.
func (f *flock) check() {
	busy, trials := map[string]bool{}, map[int]bool{}
	for _, j := range f.plan.Jobs {
		if trials[j.Trial] || j.From >= j.To {
			f.t.Fatalf("%+v", f.plan.Jobs)
		}
		trials[j.Trial] = true
		for _, m := range j.Members {
			if busy[m] {
				f.t.Fatalf("%s has two jobs: %+v", m, f.plan.Jobs)
			}
			busy[m] = true
		}
	}
}

// work lets some members end what they train.
func (f *flock) work(most int) {
	for range most {
		r := &f.reports[f.rng.IntN(len(f.reports))]
		if r.Job == nil || r.Outcome != nil {
			continue
		}
		o := Outcome{Score: f.score(r.Job.Trial, r.Job.To), Spent: r.Job.To - r.Job.From, Model: fmt.Sprint(r.Job.Trial, "/", r.Job.To)}
		if math.IsNaN(o.Score) {
			o = Outcome{Failed: "it ran away", Spent: 1}
		}
		r.Outcome = &o
		if placed := r.Job.Members[0]; placed == r.Member {
			f.trained[Held{r.Job.Trial, r.Job.To}]++
		}
	}
}

// run lets them meet until all is over.
func (f *flock) run() {
	for turns := 0; !f.plan.Over; turns++ {
		if turns > 2_000 {
			f.t.Fatalf("it does not end: %+v", f.plan)
		}
		f.meet()
		f.work(1 + f.rng.IntN(2*len(f.reports)))
	}
}

// TestTheBestIsFound: with scores that tell, the best trial is trained to the end, for a fraction of the steps of all.
func TestTheBestIsFound(t *testing.T) {
	c := Config{Trials: 27, Steps: 270, Least: 10}
	if got := fmt.Sprint(c.Rungs()); got != "[10 30 90 270]" {
		t.Fatalf("rungs %s", got)
	}
	for _, wrong := range []Config{{Steps: 9, Least: 1, Reduce: 1}, {Steps: 9, Least: 1, Reduce: -2}, {Steps: maxSteps, Least: maxReduce, Reduce: maxReduce}} {
		if got := wrong.Rungs(); len(got) > 3 || got[len(got)-1] != wrong.Steps {
			t.Errorf("%+v: %d rungs", wrong, len(got))
		}
	}
	for seed := range uint64(20) {
		f := newFlock(t, c, 5, seed)
		f.run()
		spent := 0
		for _, r := range f.plan.Results {
			spent += r.Spent
		}
		best, ok := c.Best(f.plan.Results)
		if !ok || best.Trial != 8 || best.Steps != 270 || spent > 27*270/3 {
			t.Errorf("best %+v for %d steps", best, spent)
		}
	}
	if _, ok := c.Best(nil); ok {
		t.Error("a best of nothing")
	}
}

// TestPromotionsAreASHAs: of the trials at a rung, however they came, the best third goes on.
func TestPromotionsAreASHAs(t *testing.T) {
	c := Config{Trials: 9, Steps: 9, Least: 1}
	at := func(steps int, scores ...float64) (list []Result) {
		for i, s := range scores {
			list = append(list, Result{Trial: i, Steps: steps, Outcome: Outcome{Score: s}})
		}
		return list
	}
	none := map[int]int{}
	for _, one := range []struct {
		results []Result
		running map[int]int
		want    string
	}{
		{nil, none, "0>1 1>1 2>1 3>1 4>1 5>1 6>1 7>1 8>1"},
		{at(1, 5, 6), none, "2>1 3>1 4>1 5>1 6>1 7>1 8>1"},
		{at(1, 5, 6, 4), none, "1>3 3>1 4>1 5>1 6>1 7>1 8>1"},
		{at(1, 5, 6, 4), map[int]int{1: 3, 3: 1}, "4>1 5>1 6>1 7>1 8>1"},
		{at(1, 5, 6, 4, 7), none, "3>3 4>1 5>1 6>1 7>1 8>1"}, // 1 is no longer the best
		{at(1, 1, 2, 3, 4, 5, 6, 7, 8, 9), none, "8>3 7>3 6>3"},
		{append(at(1, 1, 2, 3, 4, 5, 6, 7, 8, 9), Result{Trial: 6, Steps: 3}, Result{Trial: 7, Steps: 3}, Result{Trial: 8, Steps: 3, Outcome: Outcome{Score: 1}}), none, "8>9"},
		{append(at(1, 1, 2, 3, 4, 5, 6, 7, 8, 9), Result{Trial: 6, Steps: 3}, Result{Trial: 7, Steps: 3}, Result{Trial: 8, Steps: 3, Outcome: Outcome{Failed: "x"}}), none, "6>9"},
		{append(at(1, 1, 2, 3, 4, 5, 6, 7, 8, 9), Result{Trial: 7, Steps: 3}, Result{Trial: 8, Steps: 3}), map[int]int{6: 3}, ""},
	} {
		var got []string
		for _, j := range c.standing(one.results).next(one.running) {
			got = append(got, fmt.Sprintf("%d>%d", j.Trial, j.To))
		}
		if text := strings.Join(got, " "); text != one.want {
			t.Errorf("%v, running %v: %q, want %q", one.results, one.running, text, one.want)
		}
	}
}

// TestDeathsAndComings: members die and come at random; every trial is judged all the same, and what is trained twice is no more than
// what was lost: a slice for each member that died, and one for a model that died with it.
func TestDeathsAndComings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			Trials: rapid.IntRange(1, 20).Draw(t, "trials"), Steps: rapid.IntRange(1, 100).Draw(t, "steps"), Reduce: rapid.IntRange(2, 4).Draw(t, "reduce"),
			Members: rapid.IntRange(1, 3).Draw(t, "members"), Anew: rapid.Bool().Draw(t, "anew"),
		}
		c.Least = rapid.IntRange(0, c.Steps).Draw(t, "least")
		if err := c.Validate(); err != nil {
			t.Fatalf("%v", err)
		}
		f := newFlock(t, c, rapid.IntRange(1, 6).Draw(t, "flock"), rapid.Uint64().Draw(t, "seed"))
		f.score = func(trial, steps int) float64 {
			if trial%7 == 3 {
				return math.NaN()
			}
			return float64(trial*31%17) + float64(steps)/1000
		}
		deaths, comings := 0, rapid.IntRange(0, 16).Draw(t, "changes")
		for turns := 0; !f.plan.Over; turns++ {
			if turns > 2_000 {
				t.Fatalf("it does not end: %+v", f.plan)
			}
			f.meet()
			f.work(f.rng.IntN(2 * len(f.reports)))
			if comings > 0 && f.rng.IntN(3) == 0 {
				if comings--; len(f.reports) > 1 && f.rng.IntN(2) == 0 {
					deaths++
					f.die(f.rng.IntN(len(f.reports)))
				} else {
					f.come(fmt.Sprint("late", turns))
				}
			}
		}
		s := c.standing(f.plan.Results)
		twice := 0
		for trial := range c.Trials {
			if s.last[trial].Steps == 0 {
				t.Fatalf("trial %d was never judged", trial)
			}
		}
		for _, n := range f.trained {
			twice += n - 1
		}
		if c.Members == 1 && !c.Anew && twice > 2*deaths {
			t.Fatalf("%d slices were trained twice, and %d members died", twice, deaths)
		}
		if best, ok := c.Best(f.plan.Results); ok && (best.Failed != "" || best.Trial%7 == 3) {
			t.Fatalf("best %+v", best)
		}
	})
}

// TestOneLiarIsLeftOut: what cannot be is refused, and the others go on.
func TestOneLiarIsLeftOut(t *testing.T) {
	c := Config{Trials: 4, Steps: 9, Least: 1}
	good, err := (Report{Member: "a"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "{", `{"member":""}`, `{"member":"b","results":[{"trial":4,"rung":1}]}`, `{"member":"b","results":[{"trial":0,"rung":2}]}`,
		`{"member":"b","results":[{"trial":0,"rung":1,"spent":-1}]}`, `{"member":"b","held":[{"trial":-1,"rung":1}]}`, `{"member":"b","brings":[{"trial":0,"rung":5,"data":""}]}`,
		`{"member":"b","job":{"trial":0,"from":0,"to":3,"members":["a"]}}`, `{"member":"b","job":{"trial":0,"from":3,"to":1,"members":["b"]}}`, `{"member":"b","job":{"trial":0,"from":2,"to":3,"members":["b"]}}`,
		`{"member":"b","outcome":{"score":1}}`, `{"member":"a"}`, `{"member":"b","results":[{"trial":0,"rung":1,"score":1e400}]}`,
	} {
		plan, left := c.Meet([][]byte{good, []byte(text)})
		if left == nil || len(plan.Present) != 1 || len(plan.Jobs) != 1 || plan.Jobs[0].Members[0] != "a" {
			t.Errorf("%s: left %v, plan %+v", text, left, plan)
		}
	}
	if _, err := (Report{Member: "a", Brings: []Model{{Data: make([]byte, maxReport)}}}).Encode(); err == nil {
		t.Error("a report that is too long for others is encoded")
	}
}

// TestTheMedianIsTaken: the outcome is one of a member, whose model counts, with the steps of all.
func TestTheMedianIsTaken(t *testing.T) {
	a, b, x := Outcome{Score: 3, Spent: 1, Seconds: 2, Model: "a"}, Outcome{Score: 1, Spent: 2, Model: "b"}, Outcome{Failed: "x", Spent: 4}
	for _, one := range []struct {
		of   []Outcome
		want Outcome
	}{
		{[]Outcome{a}, a},
		{[]Outcome{a, b}, Outcome{Score: 1, Spent: 3, Seconds: 2, Model: "b"}},
		{[]Outcome{b, x, a}, Outcome{Score: 1, Spent: 7, Seconds: 2, Model: "b"}},
		{[]Outcome{x, x, a}, Outcome{Failed: "x", Spent: 9, Seconds: 2}},
	} {
		if got := median(one.of); !reflect.DeepEqual(got, one.want) {
			t.Errorf("%+v of %+v, want %+v", got, one.of, one.want)
		}
	}
}

func TestSpaces(t *testing.T) {
	s := Space{
		{Name: "lr", Kind: Log, Low: 0.001, High: 1}, {Name: "depth", Kind: Linear, Low: 2, High: 5, Whole: true},
		{Name: "codec", Kind: Choice, Choices: []string{"raw", "int8"}},
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	list := s.Random(200, 7)
	if len(list) != 200 || !reflect.DeepEqual(list, s.Random(200, 7)) || reflect.DeepEqual(list[:5], s.Random(5, 8)) || !reflect.DeepEqual(list[:5], s.Random(5, 7)) {
		t.Errorf("%d settings, or they do not follow from the seed", len(list))
	}
	small := 0
	for _, one := range list {
		lr := number(t, one["lr"])
		if d := number(t, one["depth"]); lr < 0.001 || lr > 1 || d < 2 || d > 5 || d != math.Trunc(d) || !slices.Contains([]Value{"raw", "int8"}, one["codec"]) {
			t.Errorf("%s", one)
		}
		if lr < math.Sqrt(0.001) {
			small++
		}
	}
	if small < 70 || small > 130 {
		t.Errorf("%d of 200 values are in the lower half of a range of factors", small)
	}
	if few := s[2:].Random(10, 1); len(few) != 2 {
		t.Errorf("%d settings of two choices", len(few))
	}
	grid, all := s.Grid(4, 100)
	if len(grid) != 32 || all != 32 || grid[0].String() != `{"codec":"raw","depth":2,"lr":0.001}` || grid[31].String() != `{"codec":"int8","depth":5,"lr":1}` {
		t.Errorf("%d of %g: %s to %s", len(grid), all, grid[0], grid[len(grid)-1])
	}
	if some, all := s.Grid(100, 10); len(some) != 10 || all != 100*4*2 {
		t.Errorf("%d of %g", len(some), all)
	}
	var back Setting
	if err := back.parse(grid[31].String()); err != nil || !reflect.DeepEqual(back, grid[31]) {
		t.Errorf("%v, %v", back, err)
	}
	if text := (Setting{"a": "inf", "b": "0x10", "c": "1_0", "d": "true", "e": "01"}).String(); text != `{"a":"inf","b":"0x10","c":"1_0","d":"true","e":"01"}` {
		t.Errorf("%s", text)
	}
}

// TestFaultsAreToldAtOnce of a space and of a search.
func TestFaultsAreToldAtOnce(t *testing.T) {
	err := Space{
		{Name: "a", Kind: Log, Low: 0, High: 1}, {Name: "a", Kind: Linear, Low: 2, High: 1}, {Name: "b", Kind: "round"}, {Name: "c", Kind: Choice},
		{Name: "d", Kind: Choice, Choices: []string{"x", "x"}}, {Name: "e", Kind: Linear, High: math.Inf(1)},
	}.Validate()
	for _, want := range []string{"a: invalid: from 0 to 1: want numbers above 0", "a: invalid: want a name of its own", "from 2 to 1", `kind "round"`, "0 choices", "2 choices", "to +Inf"} {
		if err == nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	err = Config{Trials: MaxTrials + 1, Least: 3, Reduce: 1, Members: -1}.Validate()
	for _, want := range []string{"trials: ", "steps: ", "least: invalid: 3", "reduce: ", "members: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// FuzzMeet: whatever blocks hold, they are refused, or a plan follows that is the same again.
func FuzzMeet(f *testing.F) {
	f.Add([]byte(`{"member":"b","results":[{"trial":0,"rung":1,"score":0.5,"spent":1,"model":"x"}],"held":[{"trial":0,"rung":1}]}`))
	f.Add([]byte(`{"member":"b","job":{"trial":1,"from":1,"to":3,"members":["b","c"]},"outcome":{"score":2,"failed":"x"}}`))
	f.Add([]byte(`{"member":"b","brings":[{"trial":0,"rung":1,"data":"AQ=="}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, block []byte) {
		c := Config{Trials: 4, Steps: 9, Least: 1, Members: 2}
		own, _ := Report{Member: "a"}.Encode()
		plan, _ := c.Meet([][]byte{own, block})
		if again, _ := c.Meet([][]byte{block, own}); !reflect.DeepEqual(plan, again) {
			t.Fatalf("%+v, and again %+v", plan, again)
		}
		(&flock{t: t, plan: plan}).check()
	})
}
