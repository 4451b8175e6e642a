package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
)

// anyTable is a table at random: columns of few and of many values, far from 0, alike, mostly
// missing, or of categories; and a target that has to do with some of them.
func anyTable(t *rapid.T) Rows {
	n := rapid.IntRange(1, 400).Draw(t, "rows")
	classes := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "classes")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	b := &table.Batch{Rows: n}
	for c := range rapid.IntRange(1, 6).Draw(t, "columns") {
		column := table.Column{Name: fmt.Sprint("c", c)}
		switch kind := rng.IntN(6); kind {
		case 0, 1:
			column.Kind = table.Category
			values := []int{3, 600}[kind]
			for v := range values {
				column.Values = append(column.Values, fmt.Sprint("v", v))
			}
			for range n {
				column.Codes = append(column.Codes, int32(rng.IntN(values+1))-1)
			}
		default:
			for range n {
				x := []float64{0, 0, rng.NormFloat64(), 1e9 + rng.Float64(), float64(rng.IntN(9) - 4), 7}[kind]
				switch rng.IntN(12) {
				case 0:
					x = math.NaN()
				case 1:
					x = math.Inf(rng.IntN(2) - 1)
				}
				column.Numbers = append(column.Numbers, x)
			}
		}
		b.Columns = append(b.Columns, column)
	}
	rows := Rows{Features: b}
	for i := range n {
		y := rng.NormFloat64()
		if c := b.Columns[0]; c.Kind == table.Number && !missing(c.Numbers[i]) {
			y += math.Mod(c.Numbers[i], 10)
		} else if c.Kind == table.Category {
			y += float64(c.Codes[i] % 2)
		}
		if classes > 0 {
			y = float64(min(max(int(y+1), 0), classes-1))
		}
		rows.Target = append(rows.Target, y)
	}
	for c := range classes {
		rows.Classes = append(rows.Classes, fmt.Sprint(c))
	}
	if rapid.Bool().Draw(t, "weighted") {
		for range n {
			rows.Weight = append(rows.Weight, rng.Float64())
		}
	}
	return rows
}

// anySplit gives the rows to members at random, some of whom have none, and each of whom
// numbers its categories in its own order.
func anySplit(t *rapid.T, rows Rows) []Rows {
	n := rapid.IntRange(1, 4).Draw(t, "members")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "split"), 2))
	owners := rng.Perm(n)[:1+rng.IntN(n)]
	owner := make([]int, rows.count())
	for i := range owner {
		owner[i] = owners[rng.IntN(len(owners))]
	}
	parts := make([]Rows, n)
	for p := range parts {
		parts[p] = rows.Select(func(row int) bool { return owner[row] == p })
		if rows.Weight != nil && parts[p].Weight == nil {
			parts[p].Weight = []float64{}
		}
		for c := range parts[p].Features.Columns {
			column := &parts[p].Features.Columns[c]
			order := rng.Perm(len(column.Values))
			values := make([]string, len(order))
			for from, to := range order {
				values[to] = column.Values[from]
			}
			column.Values = values
			for i, code := range column.Codes {
				if code >= 0 {
					column.Codes[i] = int32(order[code])
				}
			}
		}
	}
	return parts
}

// equalWhateverTheSplit fits one peer with all rows, and several; the models are the same bytes.
func equalWhateverTheSplit(t *rapid.T, learner Learner) {
	rows := anyTable(t)
	alone, err := learner.Fit(context.Background(), table.Alone{}, rows)
	if err != nil && !errors.Is(err, ErrOneClass) && !errors.Is(err, ErrNoRows) {
		t.Fatal(err)
	}
	want, _ := json.Marshal(alone)
	parts := anySplit(t, rows)
	models, errs := make([][]byte, len(parts)), make([]error, len(parts))
	table.Together(len(parts), func(flock table.Flock, i int) {
		var m Model
		m, errs[i] = learner.Fit(context.Background(), table.Scope(flock, "f"), parts[i])
		models[i], _ = json.Marshal(m)
	})
	for i, got := range models {
		if (errs[i] == nil) != (err == nil) {
			t.Fatalf("member %d: %v, alone: %v", i, errs[i], err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("member %d of %d has\n%s\nalone:\n%s", i, len(parts), got, want)
		}
	}
}

func TestBoostIsTheSameWhateverTheSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		equalWhateverTheSplit(t, Boost{
			Trees: 3, MinRows: 3, Seed: 5,
			Leaves:  rapid.IntRange(2, 12).Draw(t, "leaves"),
			Depth:   rapid.IntRange(0, 3).Draw(t, "depth"),
			Rows:    rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "row share"),
			Columns: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "column share"),
		})
	})
}

// What a fit adds up for its rows is what the model predicts for them: bins and thresholds are
// the same.
func TestBoostPredictsWhatItFitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTable(t)
		s := Boost{Trees: 5, Leaves: 8, MinRows: 2, Rate: 0.3, Rows: rapid.SampledFrom([]float64{1, 0.5}).Draw(t, "rows")}
		b, err := binRows(t.Context(), table.Alone{}, rows, s)
		if err != nil {
			return
		}
		f, err := newBoosting(t.Context(), s, table.Alone{}, b, rows)
		if err != nil {
			return
		}
		for round := range s.Trees {
			if err := f.round(t.Context(), round); err != nil {
				t.Fatal(err)
			}
		}
		var want []float64
		for sums := range slices.Chunk(f.output, len(f.trees)) {
			want = f.model.finish(want, sums)
		}
		got, err := f.model.Predict(nil, rows.Features)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("predicted %v, fitted %v, %v", got, want, err)
		}
	})
}

// late is a task with a number, missing values and a category that matter, and one that does not.
func late(n int) Rows {
	rng := rand.New(rand.NewPCG(8, 8))
	b := &table.Batch{Rows: n, Columns: []table.Column{{Name: "hour"}, {Name: "gust"}, {Name: "noise"},
		{Name: "carrier", Kind: table.Category, Values: []string{"a", "b", "c", "d", "e", "f"}}}}
	rows := Rows{Features: b, Classes: []string{"on time", "late"}}
	for range n {
		hour, gust, carrier := float64(rng.IntN(24)), math.NaN(), int32(rng.IntN(6))
		odds := hour/4 - 4
		if rng.IntN(2) == 0 {
			gust = rng.NormFloat64()
			odds += 2
		}
		if carrier == 1 || carrier == 4 {
			odds += 2
		}
		y := 0.0
		if rng.Float64() < sigmoid(odds) {
			y = 1
		}
		rows.Target = append(rows.Target, y)
		b.Columns[0].Numbers = append(b.Columns[0].Numbers, hour)
		b.Columns[1].Numbers = append(b.Columns[1].Numbers, gust)
		b.Columns[2].Numbers = append(b.Columns[2].Numbers, rng.Float64())
		b.Columns[3].Codes = append(b.Columns[3].Codes, carrier)
	}
	return rows
}

// TestBoostLearns compares with what the best guesser, who knows the odds, would reach: an
// area of 0.86 on these rows.
func TestBoostLearns(t *testing.T) {
	rows := late(4000)
	train, test := rows.Select(func(i int) bool { return i%2 == 0 }), rows.Select(func(i int) bool { return i%2 == 1 })
	m := fitParts(t, Boost{Trees: 40, Leaves: 8}, train)
	s, err := Evaluate(t.Context(), table.Alone{}, m, test)
	if err != nil || s.Classes.AUC < 0.84 {
		t.Errorf("area %v, %v", s.Classes, err)
	}
	gain := m.(*TreeModel).Gain()
	for _, column := range []string{"hour", "gust", "carrier"} {
		if gain[column] < 3*gain["noise"] {
			t.Errorf("%s gained %v, noise %v", column, gain[column], gain["noise"])
		}
	}
}

func TestTreesSplitByWhatIsMissingAndBySets(t *testing.T) {
	b := &table.Batch{Rows: 600, Columns: []table.Column{{Name: "x"}, {Name: "c", Kind: table.Category, Values: []string{"p", "q", "r", "s"}}}}
	rows := Rows{Features: b}
	for i := range b.Rows {
		x, y := float64(i%7), 0.0
		if i%3 == 0 {
			x = math.NaN()
		}
		code := int32(i / 3 % 4)
		if i%3 == 0 {
			y += 10
		}
		if code == 0 || code == 3 {
			y++
		}
		b.Columns[0].Numbers, b.Columns[1].Codes, rows.Target = append(b.Columns[0].Numbers, x), append(b.Columns[1].Codes, code), append(rows.Target, y)
	}
	m := fitParts(t, Boost{Trees: 1, Leaves: 4, Rate: 1}, rows)
	got, err := m.Predict(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	for i, y := range rows.Target {
		if math.Abs(got[i]-y) > 0.5 { // L2 of categories does not change values
			t.Fatalf("row %d: %v instead of %v", i, got[i], y)
		}
	}
	// A category that was never seen goes somewhere, as does one that is missing.
	b.Columns[1].Values = []string{"new", "q", "r", "s"}
	b.Columns[1].Codes[5] = table.Missing
	if _, err := m.Predict(nil, b); err != nil {
		t.Error(err)
	}
}

// counted counts sums.
type counted struct {
	table.Alone
	sums, largest int
}

func (c *counted) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	c.sums++
	c.largest = max(c.largest, len(vector))
	return c.Alone.Sum(ctx, name, vector)
}

func TestBoostNeedsFewSums(t *testing.T) {
	few, more := &counted{}, &counted{}
	rows := late(5000)
	for trees, flock := range map[int]*counted{2: few, 12: more} {
		if _, err := (Boost{Trees: trees}).Fit(t.Context(), table.Scope(flock, "f"), rows); err != nil {
			t.Fatal(err)
		}
	}
	if each := (more.sums - few.sums) / 10; each > 7 {
		t.Errorf("%d sums for each tree of 31 leaves", each)
	}
}

func TestTreesRefuse(t *testing.T) {
	rows := late(100)
	for name, change := range map[string]func(*Rows, *Boost){
		"a target that is none": func(r *Rows, _ *Boost) { r.Target[3] = math.NaN() },
		"a short column": func(r *Rows, _ *Boost) {
			r.Features.Columns[0].Numbers = r.Features.Columns[0].Numbers[:9]
		},
		"no features":         func(r *Rows, _ *Boost) { r.Features = nil },
		"one class":           func(r *Rows, _ *Boost) { clear(r.Target) },
		"no row":              func(r *Rows, _ *Boost) { *r = r.Select(func(int) bool { return false }) },
		"only weights of 0":   func(r *Rows, _ *Boost) { r.Weight = make([]float64, len(r.Target)) },
		"a rate below 0":      func(_ *Rows, s *Boost) { s.Rate = -1 },
		"a share of rows > 1": func(_ *Rows, s *Boost) { s.Rows = 2 },
	} {
		changed, s := late(100), Boost{Trees: 1}
		change(&changed, &s)
		if _, err := s.Fit(t.Context(), table.Alone{}, changed); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	m, err := Boost{Trees: 1}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	rows.Features.Columns[0].Name = "time"
	if _, err := m.Predict(nil, rows.Features); err == nil {
		t.Error("predicts without a column that it wants")
	}
	rows.Features.Columns[0].Name, rows.Features.Columns[3].Name = "carrier", "hour"
	if _, err := m.Predict(nil, rows.Features); err == nil {
		t.Error("predicts with a category for a number")
	}
}

// counting is a flock with a member that says of each part or bin of a column that it has a row there.
type counting struct {
	table.Alone
	in      string // of the names of the sums where it does
	largest int
}

func (c *counting) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	c.largest = max(c.largest, len(vector))
	sum, peers, err := c.Alone.Sum(ctx, name, vector)
	for i := range sum {
		if strings.Contains(name, c.in) {
			sum[i]++
		}
	}
	return sum, peers, err
}

// A member that counts more rows than all have makes no sum grow, round by round.
func TestEdgesOfAMemberThatLies(t *testing.T) {
	for _, l := range []Learner{Boost{}, Forest{}, Tree{}} {
		for _, in := range []string{"edges", "trees/"} {
			flock := &counting{in: in}
			_, err := l.Fit(t.Context(), table.Scope(flock, "f"), mixedRows(300, 2, 9))
			if !errors.Is(err, table.ErrSum) || !strings.Contains(err.Error(), in) || flock.largest > columnsAtOnce*partsARound {
				t.Errorf("%T, %s: %v, after a sum of %d numbers", l, in, err, flock.largest)
			}
		}
	}
}

// What a member says of its rows is held against itself, before it becomes the bits and lengths of sums.
func TestSummariesThatCannotBe(t *testing.T) {
	sound := rowsSummary{Rows: 5, Weight: 1, Target: 2, Columns: []columnSummary{{Rows: 5, Values: []string{"a", "b"}, Counts: []int64{3, 2}}}}
	if err := sound.check(1); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(s *rowsSummary, c *columnSummary){
		func(s *rowsSummary, _ *columnSummary) { s.Rows = -5 },
		func(s *rowsSummary, _ *columnSummary) { s.Rows = math.MaxInt64 },
		func(s *rowsSummary, _ *columnSummary) { s.Weight = -1 },
		func(s *rowsSummary, _ *columnSummary) { s.Target = 1e300 },
		func(_ *rowsSummary, c *columnSummary) { c.Rows = 6 },
		func(_ *rowsSummary, c *columnSummary) { c.Counts = nil },
		func(_ *rowsSummary, c *columnSummary) { c.Counts = []int64{3, -2} },
		func(_ *rowsSummary, c *columnSummary) { c.Counts = []int64{3, 1e18} },
	} {
		s := sound
		s.Columns = slices.Clone(sound.Columns)
		spoil(&s, &s.Columns[0])
		if err := s.check(1); !errors.Is(err, table.ErrSum) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
