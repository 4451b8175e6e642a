package prepare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer/table"
)

// people are 100 rows: a number, a category, a name of its own for each, a day, and a target.
func people() *table.Batch {
	b := batch(numbers("x"), texts("kind"), texts("name"), texts("day"), numbers("y"))
	for c := range b.Columns {
		b.Columns[c].Numbers, b.Columns[c].Codes = nil, nil
	}
	var x, y []float64
	var kind, name, day []string
	for i := range 100 {
		x, y = append(x, float64(i%10)), append(y, float64(i/10%3))
		kind, name, day = append(kind, []string{"a", "b"}[i/10%2]), append(name, fmt.Sprint("n", i)), append(day, fmt.Sprintf("2024-01-%02d", 1+i%28))
	}
	return batch(numbers("x", x...), texts("kind", kind...), texts("name", name...), texts("day", day...), numbers("y", y...))
}

func usualPlan() Plan {
	return Plan{Target: "y>1", Split: "row:7/10", Stages: Usual{Floor: 1, MaxValues: 20}.Numbers()}
}

func namesOf(fields []table.Field) string {
	return strings.Join((&table.Schema{Fields: fields}).Names(), " ")
}

// However rows are divided, also if a member has none, all prepare them alike; what a model does not use it does not
// ask for, and the plan stays as it was.
func TestPlanOfSeveralMembers(t *testing.T) {
	all := people()
	one, own, err := usualPlan().Prepare(t.Context(), table.Alone{}, table.Held(all))
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(one.Pipeline.Input.Fields); got != "x kind day" || len(one.Pipeline.Stages) != 4 {
		t.Errorf("input %s, stages %v", got, one.Pipeline.Stages)
	}
	if one.Rows != 70 || one.Peers != 1 || one.Equal != 0 || !slices.Equal(one.Labels.Classes, []string{"y<=1", "y>1"}) {
		t.Errorf("%+v", one)
	}
	made, target, err := one.Of(all)
	if want := "x kind=a kind=b kind=other day day.month day.weekday"; err != nil || len(target) != 100 || strings.Join(sorted(made.Names()), " ") != strings.Join(sorted(strings.Fields(want)), " ") {
		t.Errorf("%v, %v, %d targets", made.Names(), err, len(target))
	}
	want, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	shared := usualPlan()
	parts := append(split(all, 2, func(row int) int { return row / 10 % 2 }), nil)
	table.Together(3, func(flock table.Flock, i int) {
		var mine table.Table
		if parts[i] != nil {
			mine = table.Held(parts[i])
		}
		p, own, err := shared.Prepare(t.Context(), flock, mine)
		if err != nil {
			t.Errorf("member %d: %v", i, err)
			return
		}
		// Standardized by merged moments, which may differ in the last digits.
		if got, _ := json.Marshal(p.Pipeline.Input); p.Rows != 70 || p.Peers != 3 || !bytes.Contains(want, got) {
			t.Errorf("member %d: %d rows of %d, %s", i, p.Rows, p.Peers, got)
		}
		rows := 0
		for b := range own(t.Context()) {
			rows += b.Rows
		}
		if rows != []int{50, 50, 0}[i] {
			t.Errorf("member %d has %d rows", i, rows)
		}
	})
	if s := shared.Stages[2].(*Standardize); s.Learned != nil {
		t.Error("a plan has learned")
	}
	again, err := one.Refit(t.Context(), table.Alone{}, table.Filtered(own, func(b *table.Batch) (*table.Batch, error) {
		return b.Keep(func(row int) bool { return b.Columns[0].Numbers[row] < 5 }), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	mean := func(p *Prepared) Scale { return p.Pipeline.Stages[1].(*Standardize).Learned["x"] }
	if a, b := mean(one), mean(again); a.From+a.Rest != 3 && a == b {
		t.Errorf("scales %v and %v", a, b)
	}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// What members differ in, and what none can use, ends it at all of them.
func TestPlanFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Plan, member int)
		says   string
	}{
		"settings":     {func(p *Plan, i int) { p.Split = []string{"row:7/10", "row:1/2"}[i] }, `Split is "row:7/10" at one member and "row:1/2" at another`},
		"a stage":      {func(p *Plan, i int) { p.Stages = []table.Stage{&OneHot{Floor: float64(i)}} }, "stage 1, onehot"},
		"no column":    {func(p *Plan, _ int) { p.Drop = []string{"z"} }, `"z"`},
		"no only":      {func(p *Plan, _ int) { p.Only = []string{"q"} }, `"q"`},
		"no target":    {func(p *Plan, _ int) { p.Target = "z>1" }, `"z>1"`},
		"no rows":      {func(p *Plan, _ int) { p.Split = "row:1/1000000"; p.Target = "x>9" }, "x>9"},
		"a check":      {func(p *Plan, _ int) { p.Check = func(*table.Labels) error { return errors.New("not so") } }, "not so"},
		"no split":     {func(p *Plan, _ int) { p.Split = "half" }, "half"},
		"no memory":    {func(p *Plan, _ int) { p.Memory = 1 }, "too much memory"},
		"many at one":  {func(p *Plan, _ int) { p.Stages = []table.Stage{&OneHot{Columns: []string{"x"}}} }, "stage 1, onehot"},
		"no stage yet": {func(p *Plan, _ int) { p.Stages = []table.Stage{&DropUseless{}}; p.Target = "" }, "none to explain"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table.Together(2, func(flock table.Flock, i int) {
					p := usualPlan()
					c.change(&p, i)
					if _, _, err := p.Prepare(t.Context(), flock, table.Held(people())); err == nil || !strings.Contains(err.Error(), c.says) {
						t.Errorf("member %d: %v", i, err)
					}
				})
			})
		})
	}
	nobody := usualPlan()
	nobody.Split = "row:1/2"
	odd := people().Keep(func(row int) bool { return row%2 == 1 })
	if _, _, err := nobody.Prepare(t.Context(), table.Alone{}, table.Held(odd)); !errors.Is(err, ErrNoTraining) {
		t.Error(err)
	}
}

// A member whose rows are too many, or of other kinds, tells the others.
func TestPlanOfAMemberAtFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table.Together(2, func(flock table.Flock, i int) {
			p := usualPlan()
			p.Memory = []int64{0, 10}[i]
			_, _, err := p.Prepare(t.Context(), flock, table.Held(people()))
			if want := []error{table.ErrMember, table.ErrTooLarge}[i]; !errors.Is(err, want) {
				t.Errorf("member %d: %v", i, err)
			}
		})
	})
}

// counting is a flock whose sums are so many.
type counting struct {
	table.Flock
	rows float64
}

func (c counting) Sum(_ context.Context, _ string, vector []float64) ([]float64, int, error) {
	sums := slices.Clone(vector)
	sums[0] = c.rows
	return sums, 2, nil
}

// A number of rows that no members have is nobody's result.
func TestRowsThatNobodyHas(t *testing.T) {
	for _, rows := range []float64{math.NaN(), math.Inf(1), -3, 1e300} {
		p := Plan{}
		if _, _, err := p.Prepare(t.Context(), counting{table.Alone{}, rows}, table.Held(people())); !errors.Is(err, table.ErrSum) {
			t.Errorf("%g rows: %v", rows, err)
		}
	}
}

// A target of numbers is of classes where classes are wanted and no member adds a third; one that a
// member has infinite is one of them.
func TestTargetOfTwoNumbersOverTheFlock(t *testing.T) {
	for _, c := range []struct {
		values  [2][]float64
		classes int
	}{
		{[2][]float64{{0, 0}, {1, math.NaN()}}, 2},
		{[2][]float64{{0, 1}, {1, 2}}, 0},
		{[2][]float64{{0, 1}, {0, math.Inf(1)}}, 0},
	} {
		table.Together(2, func(flock table.Flock, i int) {
			p, _, err := Plan{Target: "y", Classes: true}.Prepare(t.Context(), flock, table.Held(batch(numbers("y", c.values[i]...))))
			if err != nil || len(p.Labels.Classes) != c.classes || p.Labels.Target.Classes != (c.classes > 0) {
				t.Errorf("%v: %v, %+v", c.values, err, p)
			}
		})
	}
}

// Of equal rows one is left, over all members, and the number of the others is told.
func TestPlanOfDistinctRows(t *testing.T) {
	table.Together(2, func(flock table.Flock, i int) {
		p := Plan{Target: "y", Distinct: true, Drop: []string{"id"}, Stages: []table.Stage{}}
		rows := batch(numbers("id", float64(i), 5), numbers("x", 1, 2), numbers("y", 3, float64(4+i)))
		if i == 1 { // the order of columns does not matter
			slices.Reverse(rows.Columns)
		}
		got, _, err := p.Prepare(t.Context(), flock, table.Held(rows))
		if err != nil || got.Rows != 3 || got.Equal != 1 {
			t.Errorf("member %d: %+v, %v", i, got, err)
		}
	})
}

// DropUseless without a column of its own goes by the target of the plan, wherever it stands.
func TestDropUselessByThePlan(t *testing.T) {
	for _, stages := range [][]table.Stage{{&DropUseless{Tolerance: 0.01}, &OneHot{}}, {&Standardize{}, &OneHot{}, &DropUseless{Tolerance: 0.01}}} {
		parts := split(people(), 2, func(row int) int { return row % 2 })
		table.Together(2, func(flock table.Flock, i int) {
			p, _, err := Plan{Target: "y", Drop: []string{"name", "day"}, Stages: stages}.Prepare(t.Context(), flock, table.Held(parts[i]))
			if err != nil {
				t.Error(err)
				return
			}
			made, _, err := p.Of(people())
			if err != nil || made.Find("x") != nil || made.Find("kind=a") == nil {
				t.Errorf("columns %q, %v", made.Names(), err)
			}
		})
	}
}

// A column is of dates if all values of all members are, and no category with very many values stays.
func TestDatesAreFound(t *testing.T) {
	parts := []*table.Batch{
		batch(texts("at", "2024-01-01", ""), texts("when", "2024-01-01", "01.02.2024"), texts("kept", "2024-01-01", "2024-01-02"), texts("none", "", "")),
		batch(texts("at", "2024-01-01 10:00", "2024-01-02"), texts("when", "2024-01-01", "soon"), texts("kept", "2024-01-01", ""), texts("none", "", "")),
	}
	s := fitted(t, parts, func() table.Stage { return &Dates{Except: []string{"kept"}} }).(*Dates)
	if len(s.Columns) != 1 || !s.Columns["at"] {
		t.Errorf("dates %v", s.Columns)
	}
	for most, want := range map[int][]string{2: {"at"}, 3: nil, -1: {"at", "kept", "when"}} {
		parts := []*table.Batch{batch(texts("at", "a", "b"), texts("when", "x", "y"), texts("kept", "k", "k")), batch(texts("at", "c", ""), texts("when", "x", ""), texts("kept", "k", ""))}
		s := fitted(t, parts, func() table.Stage { return &DropMany{Values: most} }).(*DropMany)
		if out := transformed(t, s, parts[0]); !slices.Equal(s.Dropped, want) || len(out.Columns) != 3-len(want) {
			t.Errorf("of more than %d values: %q, of %q", most, s.Dropped, out.Names())
		}
	}
}

// own is a stage of a service.
type own struct {
	Add     float64 `json:"add"`
	Learned float64 `json:"learned"`
}

func (s *own) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	s.Learned = 1
	return nil
}

func (s *own) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Number, map[string]bool{"x": true}, func(c *table.Column, _ bool) []table.Column {
		return mapped(c, func(x float64) float64 { return x + s.Add })
	})
}

// A stage of a service is written and read where its kind is known, and nowhere else.
func TestAStageOfOnesOwn(t *testing.T) {
	kinds := Kinds().With("add", func() table.Stage { return &own{} })
	p, _, err := Plan{Stages: []table.Stage{&own{Add: 2}, &MinMax{}}, Kinds: kinds}.Prepare(t.Context(), table.Alone{}, table.Held(batch(numbers("x", 1, 3))))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := p.Pipeline.Write(&file); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(p.Pipeline)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &Pipeline{}); !errors.Is(err, ErrPipeline) || !strings.Contains(err.Error(), `"add"`) {
		t.Error(err)
	}
	read := Pipeline{Kinds: kinds}
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	out, err := read.Transform(batch(numbers("x", 2)))
	if err != nil || out.Columns[0].Numbers[0] != 0.5 {
		t.Errorf("%v, %v", out, err)
	}
	if err := (&Pipeline{Stages: []table.Stage{&own{}}}).Write(&file); err == nil || !strings.Contains(err.Error(), "*prepare.own") {
		t.Error(err)
	}
}

// low is a stage of a service that leaves rows out, as stages may.
type low struct{}

func (*low) Fit(context.Context, table.Flock, table.Source) error { return nil }

func (*low) Transform(b *table.Batch) (*table.Batch, error) {
	x := b.Find("x").Numbers
	return b.Keep(func(row int) bool { return x[row] < 5 }), nil
}

// TestTargetsAreOfTheRowsThatStagesKeep: each prepared row has its own target.
func TestTargetsAreOfTheRowsThatStagesKeep(t *testing.T) {
	p, rows, err := Plan{Target: "y", Only: []string{"x"}, Stages: []table.Stage{&low{}}}.Prepare(t.Context(), table.Alone{}, table.Held(batch(numbers("x", 1, 9, 3, 8, 4), numbers("y", 10, 90, math.NaN(), 80, 40))))
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range rows(t.Context()) {
		made, target, faulty := p.Of(b)
		if err := errors.Join(err, faulty); err != nil {
			t.Fatal(err)
		}
		if x := made.Find("x").Numbers; !slices.Equal(x, []float64{1, 4}) || !slices.Equal(target, []float64{10, 40}) {
			t.Errorf("rows %v with targets %v", x, target)
		}
	}
}

// TestEffectsAreOnTheRowsThatStagesKeep: so it is for DropUseless.
func TestEffectsAreOnTheRowsThatStagesKeep(t *testing.T) {
	rows := table.Held(batch(numbers("x", 1, 9, 3, 8, 4), numbers("y", 7, 1, 7, 2, 7)))
	p, _, err := Plan{Target: "y", Stages: []table.Stage{&low{}, &DropUseless{}}}.Prepare(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := p.Columns(); err != nil || len(made.Columns) != 0 {
		t.Errorf("%v, %v: nothing explains a target that is 7 in all rows that stay", made.Names(), err)
	}
}
