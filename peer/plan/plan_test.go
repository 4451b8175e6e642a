package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
)

// made is the plan of a state, held against what every plan must keep.
func made(t testing.TB, s State) *Plan {
	t.Helper()
	p, err := Make(s)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, s, p)
	return p
}

// Whatever the tasks, members and what is done: nobody does two things at once, memory suffices, no sample is skipped or
// done twice.
func TestPlansAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		s := fleet(r, 1+r.IntN(12), 1+r.IntN(12))
		s.Now = float64(rapid.IntRange(0, 20).Draw(t, "now"))
		s.Weights = Weights{float64(r.IntN(3)), float64(r.IntN(100)), float64(r.IntN(100))}
		for _, task := range s.Tasks {
			if from := r.IntN(task.Samples); task.Kind == Epoch && r.IntN(2) == 0 {
				s.Done = append(s.Done, Part{task.Name, "gone", from, from + 1 + r.IntN(task.Samples)})
			} else if task.Kind != Epoch && r.IntN(2) == 0 && from > 0 {
				s.Done = append(s.Done, Part{task.Name, s.Members[r.IntN(len(s.Members))].Name, 0, from})
			}
		}
		for i := range s.Done {
			for _, task := range s.Tasks {
				if task.Name == s.Done[i].Task {
					s.Done[i].To = min(s.Done[i].To, task.most())
				}
			}
		}
		p, err := Make(s)
		if err != nil {
			t.Fatalf("%v", err)
		}
		valid(t, s, p)
	})
}

// All members that gather make the same plan, byte by byte, in whatever order they bring their tasks, and leave out the
// same block.
func TestAllMakeTheSamePlan(t *testing.T) {
	s := fleet(rand.New(rand.NewPCG(3, 3)), 20, 6)
	plans, faults := make([]string, 6), make([]int, 6)
	table.Together(6, func(flock table.Flock, member int) {
		own := State{Now: float64(member), Members: s.Members[member : member+1], Tasks: slices.Clone(s.Tasks[member*3:]), Weights: Weights{Time: 1, Accuracy: 50}}
		block, err := Encode(own)
		if err != nil {
			t.Error(err)
		}
		if member == 2 {
			block = []byte("{}")
		}
		all, err := flock.Gather(context.Background(), "plan", block)
		if err != nil {
			t.Error(err)
		}
		state, left := Merge(all)
		p, err := Make(state)
		if err != nil {
			t.Error(err)
			return
		}
		text, _ := json.Marshal(p)
		plans[member], faults[member] = string(text), len(left)
		if len(state.Members) != 5 || len(state.Tasks) != 20 || state.Now != 3 {
			t.Errorf("%d members, %d tasks, now %v", len(state.Members), len(state.Tasks), state.Now)
		}
	})
	for i := range plans {
		if plans[i] != plans[0] || faults[i] != 1 {
			t.Errorf("member %d has another plan, or left %d blocks out", i, faults[i])
		}
	}
}

func TestMergeNamesWhoIsLeftOut(t *testing.T) {
	good := State{Members: []Member{{Name: "a", Speed: 1}}}
	block, err := Encode(good)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(block), `"version":1`, `"version":2`, 1)
	s, left := Merge([][]byte{block, block, []byte(newer), nil})
	if len(s.Members) != 1 || len(left) != 3 || !strings.Contains(left[0].Error(), `block 1 of "a"`) || !errors.Is(left[1], ErrInvalid) {
		t.Errorf("%v: %v", s, left)
	}
	if _, err := Encode(State{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a state of nobody: %v", err)
	}
}

// Whoever brings more than can be planned is left out, and not those that come after, and what is left can be planned.
func TestOneThatBringsTooMuch(t *testing.T) {
	block := func(name string, tasks, parts int) []byte {
		t.Helper()
		s := State{Members: []Member{{Name: name, Speed: 1}}}
		for i := range tasks {
			s.Tasks = append(s.Tasks, Task{Name: fmt.Sprint("t", i), Kind: Epoch, Samples: 1})
		}
		for i := range parts {
			s.Done = append(s.Done, Part{"u", name, i, i + 1})
		}
		text, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for what, all := range map[string][][]byte{
		"parts": {[]byte(`{"version":1,"Members":[{"Name":"b","Speed":0}]}`), block("greedy", 1, 60_000), block("b", 1, 30_000), block("c", 1, 20_000)},
		"tasks": append(slices.Repeat([][]byte{nil}, 200), block("greedy", 21_000, 0), block("b", 100, 9), block("c", 100, 9)),
	} {
		s, left := Merge(all)
		if len(s.Members) != 2 || s.Members[0].Name != "b" || !strings.Contains(errors.Join(left...).Error(), `of "greedy": invalid: there is too much`) {
			t.Errorf("%s: %v are planned with: %.200v", what, s.Members, left)
		}
		if _, err := Make(s); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzMerge(f *testing.F) {
	block, _ := Encode(State{Members: []Member{{Name: "a", Speed: 1}}, Tasks: []Task{{Name: "t", Kind: Epoch, Samples: 10, Deadline: 3}}})
	f.Add(block)
	f.Add([]byte(`{"version":1,"Members":[{"Name":"a","Speed":1e30}],"Tasks":[{"Name":"t","Kind":"fit","Samples":281474976710656}]}`))
	f.Add([]byte(`{"version":1,"Members":[{"Name":"a","Speed":1e-9}],"Tasks":[{"Name":"t","Kind":"epoch","Samples":1,"Most":9,"Curve":[{"Samples":1,"Accuracy":1e30},{"Samples":2},{"Samples":3}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _ := Merge([][]byte{text, block})
		if len(s.Tasks) <= 20 {
			if _, err := Make(s); err != nil {
				t.Errorf("what Merge took is no state: %v", err)
			}
		}
	})
}

// Each weight pulls in its direction: more samples for accuracy, busier members for resource, less time for time.
func TestSignsOfWeights(t *testing.T) {
	for seed := range uint64(30) {
		s := fleet(rand.New(rand.NewPCG(seed, 5)), 8, 6)
		base := Weights{Time: 1, Accuracy: 10, Resource: 10}
		at := func(w Weights) *Plan { s.Weights = w; return made(t, s) }
		samples := func(p *Plan) (n int) {
			for _, a := range p.Assignments {
				n += a.Samples
			}
			return n
		}
		p := at(base)
		if more := at(Weights{1, 10_000, 10}); samples(more) < samples(p) || more.Accuracy < p.Accuracy {
			t.Errorf("seed %d: %d samples, and %d with more weight on accuracy", seed, samples(p), samples(more))
		}
		if busier := at(Weights{1, 10, 10_000}); busier.Resource < p.Resource-1e-9 {
			t.Errorf("seed %d: members busy for %v, and %v with more weight on that", seed, p.Resource, busier.Resource)
		}
		if shorter := at(Weights{1000, 10, 10}); shorter.Makespan > p.Makespan*(1+1e-9) {
			t.Errorf("seed %d: %v s, and %v with more weight on time", seed, p.Makespan, shorter.Makespan)
		}
	}
}

// Where members differ in speed and memory, the bound is the optimum of the linear program, and elsewhere below.
func TestBoundIsTheLinearProgram(t *testing.T) {
	for seed := range uint64(40) {
		s := fleet(rand.New(rand.NewPCG(seed, 6)), 4, 5)
		for i := range s.Tasks {
			s.Tasks[i].Kind, s.Tasks[i].Deadline, s.Tasks[i].Arrival = Epoch, 0, 0
			if seed%2 == 0 {
				s.Tasks[i].Bytes = 0
			}
		}
		p, _ := newProblem(s)
		n, m := len(p.jobs), len(p.members)
		c, b := make([]float64, n*m+m+1), make([]float64, n+m)
		a := mat.NewDense(n+m, n*m+m+1, nil)
		c[n*m+m] = 1
		for i, j := range p.jobs {
			b[i] = 1
			for k := range m {
				if !math.IsInf(j.seconds[k], 1) {
					a.Set(i, i*m+k, 1)
					a.Set(n+k, i*m+k, j.alone(k))
				} else {
					a.Set(n+k, i*m+k, 1) // it takes time there, and does nothing
				}
			}
		}
		for k := range m {
			a.Set(n+k, n*m+k, 1)
			a.Set(n+k, n*m+m, -1)
		}
		best, _, err := lp.Simplex(c, a, b, 1e-10, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bound := least(p); bound > best*(1+1e-6) || seed%2 == 0 && bound < best*(1-1e-4) {
			t.Errorf("seed %d: bound %v, optimum %v", seed, bound, best)
		}
	}
}

// run carries a plan out with members whose speed for each piece is off by about a tenth, and plans anew whenever what
// should have been done has not. It returns when all is done.
func run(t *testing.T, s State, r *rand.Rand) float64 {
	for range 20 {
		p := made(t, s)
		free, behind, end := map[string]float64{}, map[string]float64{}, s.Now
		type ended struct {
			at float64
			of Assignment
		}
		var list []ended
		for _, a := range p.Assignments {
			start := max(a.Start, free[a.Member])
			at := start + (a.End-a.Start)*max(0.5, 1+0.1*r.NormFloat64())
			free[a.Member], behind[a.Member] = at, max(behind[a.Member], at-a.End)
			list, end = append(list, ended{at, a}), max(end, at)
		}
		planned := s.Now + p.Makespan*(1+grace/4)
		if end <= planned {
			return end
		}
		for _, e := range list {
			share := min(1, max(0, (planned-(e.at-(e.of.End-e.of.Start)))/(e.of.End-e.of.Start)))
			for _, g := range e.of.Ranges {
				if n := int(share * float64(g[1]-g[0])); n > 0 {
					s.Done = append(s.Done, Part{e.of.Task, e.of.Member, g[0], g[0] + n})
				}
			}
		}
		s.Now = planned
	}
	t.Fatal("it does not end")
	return 0
}

// Members with speeds from 1 to 8, off by a tenth: the plan keeps a deadline with a sixth to spare, and equal shares miss
// it by twice.
func TestDeadlinesAreKept(t *testing.T) {
	const runs, samples, speeds = 100, 36_000, 36.0
	deadline := samples / speeds * 7 / 6
	kept, equal := 0, 0.0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 8))
		s := State{Tasks: []Task{{Name: "shard", Kind: Epoch, Samples: samples, Deadline: deadline}}}
		longest := 0.0
		for i := range 8 {
			s.Members = append(s.Members, Member{Name: fmt.Sprint("m", i), Speed: float64(i + 1)})
			longest = max(longest, samples/8/float64(i+1)*max(0.5, 1+0.1*r.NormFloat64()))
		}
		if run(t, s, r) <= deadline {
			kept++
		}
		equal += longest / deadline / runs
	}
	t.Logf("deadline kept in %d of %d runs; equal shares take %.1f deadlines", kept, runs, equal)
	if kept < runs*99/100 || equal < 2 {
		t.Errorf("kept in %d of %d, equal shares take %.2f deadlines", kept, runs, equal)
	}
}

// Ten tasks in a row: nobody is idle between two, and a barrier after each costs what the log says.
func TestQueue(t *testing.T) {
	const tasks, samples = 10, 3600
	r := rand.New(rand.NewPCG(1, 9))
	var s State
	for i := range 8 {
		s.Members = append(s.Members, Member{Name: fmt.Sprint("m", i), Speed: float64(i + 1)})
	}
	for i := range tasks {
		s.Tasks = append(s.Tasks, Task{Name: fmt.Sprint("t", i), Kind: Epoch, Samples: samples})
	}
	p := made(t, s)
	if p.Resource < 0.99 {
		t.Errorf("members are busy for %v", p.Resource)
	}
	queue, barrier := 0.0, 0.0
	free := map[string]float64{}
	for _, a := range p.Assignments {
		if a.Start != 0 && !slices.ContainsFunc(p.Assignments, func(b Assignment) bool { return b.Member == a.Member && b.End == a.Start }) {
			t.Errorf("%s is idle before %v", a.Member, a.Start)
		}
		free[a.Member] += (a.End - a.Start) * max(0.5, 1+0.1*r.NormFloat64())
		queue = max(queue, free[a.Member])
	}
	for range tasks {
		longest := 0.0
		for range s.Members {
			longest = max(longest, samples/36.0*max(0.5, 1+0.1*r.NormFloat64()))
		}
		barrier += longest
	}
	t.Logf("%.0f s in a queue, %.0f s with a barrier after each task: %.1f %% slower", queue, barrier, 100*(barrier/queue-1))
	if barrier < queue {
		t.Errorf("a barrier is faster: %v and %v s", barrier, queue)
	}
}

// A plan holds until something changes; what a member missed goes on at others, and what it did is not done again.
func TestPlanAnew(t *testing.T) {
	s := State{
		Members: []Member{{Name: "a", Speed: 10}, {Name: "b", Speed: 10}},
		Tasks:   []Task{{Name: "fit", Kind: Fit, Samples: 100}, {Name: "shard", Kind: Epoch, Samples: 300}},
	}
	p := made(t, s)
	if why := p.Outdated(s); why != "" {
		t.Errorf("outdated at once: %s", why)
	}
	for _, c := range []struct {
		change func(*State)
		want   string
	}{
		{func(s *State) { s.Members = append(slices.Clone(s.Members), Member{Name: "c", Speed: 1}) }, "come or gone"},
		{func(s *State) { s.Members = s.Members[:1] }, "come or gone"},
		{func(s *State) { s.Tasks = s.Tasks[:1] }, "task has come or gone"},
		{func(s *State) { s.Members = []Member{s.Members[0], {Name: "b", Speed: 6.6}} }, "speed of 6.6"},
		{func(s *State) { s.Members = []Member{s.Members[0], {Name: "b", Speed: 12.5}} }, ""},
		{func(s *State) { s.Now = 1000 }, "is late"},
	} {
		changed := s
		c.change(&changed)
		if why := p.Outdated(changed); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%q, want %q", why, c.want)
		}
	}
	doer := ""
	for _, a := range p.Assignments {
		if s.Now = 30; a.Task == "fit" {
			doer = a.Member
			continue
		}
		for _, r := range a.Ranges {
			s.Done = append(s.Done, Part{a.Task, a.Member, r[0], r[1]})
		}
	}
	if s.Missed = p.Missed(s); len(s.Missed) != 1 || s.Missed[0].Task != "fit" || s.Missed[0].Member != doer {
		t.Fatalf("missed %v", s.Missed)
	}
	if again := made(t, s); len(again.Assignments) != 1 || again.Assignments[0].Member == doer || again.Start != 30 {
		t.Errorf("%+v", again.Assignments)
	}
}
