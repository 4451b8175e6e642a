package search

import (
	"slices"
	"testing"
)

// TestAnEarlierModelTravels where the last one of a trial was lost with its members: one who came later has neither, and the trial needs
// both of those that are left.
func TestAnEarlierModelTravels(t *testing.T) {
	c := Config{Trials: 1, Steps: 9, Least: 1, Members: 2}
	left := Report{
		Member: "a", Held: []Held{{0, 1}},
		Results: []Result{{0, 1, Outcome{Score: 1, Spent: 1, Model: "x"}}, {0, 3, Outcome{Score: 1, Spent: 2, Model: "y"}}},
	}
	blocks := func(b Report) (list [][]byte) {
		for _, r := range []Report{left, b} {
			block, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, block)
		}
		return list
	}
	plan, err := c.Meet(blocks(Report{Member: "b"}))
	if err != nil || plan.Over || !slices.Equal(plan.Asked["a"], []Held{{0, 1}}) {
		t.Fatalf("%+v, %v", plan, err)
	}
	plan, err = c.Meet(blocks(Report{Member: "b", Held: []Held{{0, 1}}}))
	if j, any := plan.Of("b"); err != nil || !any || j.From != 1 || j.To != 9 || len(plan.Asked) > 0 {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestTheBestThatRunsAway at the last rung gives its place to the next, and is not the best: its setting cannot be trained to the end.
func TestTheBestThatRunsAway(t *testing.T) {
	c := Config{Trials: 3, Steps: 9, Least: 3}
	r := Report{Member: "a", Held: []Held{{0, 3}, {1, 3}, {2, 3}}, Results: []Result{
		{0, 3, Outcome{Score: 0.9, Spent: 3, Model: "x"}}, {1, 3, Outcome{Score: 0.8, Spent: 3, Model: "y"}}, {2, 3, Outcome{Score: 0.7, Spent: 3, Model: "z"}},
		{0, 9, Outcome{Spent: 2, Failed: "not finite"}},
	}}
	block, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := c.Meet([][]byte{block})
	if j, any := plan.Of("a"); err != nil || plan.Over || !any || j.Trial != 1 || j.To != 9 {
		t.Errorf("%+v, %v", plan, err)
	}
	if best, any := c.Best(plan.Results); !any || best.Trial != 1 || best.Steps != 3 {
		t.Errorf("the best is %+v", best)
	}
}
