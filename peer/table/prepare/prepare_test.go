package prepare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
)

func numbers(name string, values ...float64) table.Column {
	return table.Column{Name: name, Kind: table.Number, Numbers: values}
}

// texts is a column of categories; "" is missing.
func texts(name string, values ...string) table.Column {
	c := table.Column{Name: name, Kind: table.Category}
	for _, v := range values {
		code := int32(slices.Index(c.Values, v))
		if v == "" {
			code = table.Missing
		} else if code < 0 {
			code, c.Values = int32(len(c.Values)), append(c.Values, v)
		}
		c.Codes = append(c.Codes, code)
	}
	return c
}

func batch(columns ...table.Column) *table.Batch {
	return &table.Batch{Columns: columns, Rows: max(len(columns[0].Numbers), len(columns[0].Codes))}
}

// split deals the rows of a batch out to members.
func split(b *table.Batch, n int, owner func(row int) int) []*table.Batch {
	parts := make([]*table.Batch, n)
	for m := range parts {
		var rows []int
		for row := range b.Rows {
			if owner(row) == m {
				rows = append(rows, row)
			}
		}
		parts[m] = b.Pick(rows)
	}
	return parts
}

// fitted fits a stage at members who have parts of the rows, and checks that all learn the same.
func fitted(t *testing.T, parts []*table.Batch, stage func() table.Stage) table.Stage {
	t.Helper()
	stages := make([]table.Stage, len(parts))
	table.Together(len(parts), func(m table.Flock, i int) {
		rows := table.InMemory()
		if parts[i].Rows > 0 {
			rows = table.InMemory(parts[i])
		}
		s := stage()
		if err := s.Fit(t.Context(), table.Scope(m, "fit"), rows); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
		stages[i] = s
	})
	if t.Failed() {
		t.FailNow()
	}
	first, err := json.Marshal(stages[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range stages {
		if data, _ := json.Marshal(s); !bytes.Equal(data, first) {
			t.Fatalf("member %d has learned\n%s, member 0\n%s", i, data, first)
		}
	}
	return stages[0]
}

func transformed(t *testing.T, s table.Stage, b *table.Batch) *table.Batch {
	t.Helper()
	out, err := s.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pooled is the mean and the variance of numbers, by exact arithmetic.
func pooled(values []float64) (mean, variance, size float64) {
	const precision = 4096
	sum, n := new(big.Float).SetPrec(precision), big.NewFloat(0).SetPrec(precision)
	for _, x := range values {
		if !math.IsNaN(x) {
			sum.Add(sum, new(big.Float).SetPrec(precision).SetFloat64(x))
			n.Add(n, big.NewFloat(1))
			size = max(size, math.Abs(x))
		}
	}
	if n.Sign() == 0 {
		return 0, 0, 0
	}
	m := new(big.Float).SetPrec(precision).Quo(sum, n)
	squares := new(big.Float).SetPrec(precision)
	for _, x := range values {
		if !math.IsNaN(x) {
			d := new(big.Float).SetPrec(precision).SetFloat64(x)
			d.Sub(d, m)
			squares.Add(squares, d.Mul(d, d))
		}
	}
	squares.Quo(squares, n)
	mean, _ = m.Float64()
	variance, _ = squares.Float64()
	return mean, variance, size
}

// TestStandardizationIsThatOfAllRows compares with the pooled mean and variance, for any rows
// and any split: empty members, constant columns, offsets of a billion.
func TestStandardizationIsThatOfAllRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		n, members := rapid.IntRange(1, 300).Draw(r, "rows"), rapid.IntRange(1, 5).Draw(r, "members")
		offset := rapid.SampledFrom([]float64{0, 1, 1e9, -1e9, 1e-9}).Draw(r, "offset")
		spread := rapid.SampledFrom([]float64{0, 1, 1e3, 1e-3}).Draw(r, "spread")
		values := make([]float64, n)
		for i := range values {
			if values[i] = offset + spread*rng.NormFloat64(); rng.IntN(10) == 0 {
				values[i] = math.NaN()
			}
		}
		owners := make([]int, n)
		for i := range owners {
			owners[i] = rng.IntN(members)
			if members > 2 && owners[i] == 1 {
				owners[i] = 0 // the second has no rows
			}
		}
		b := batch(numbers("x", values...))
		stage := fitted(t, split(b, members, func(row int) int { return owners[row] }), func() table.Stage { return &Standardize{} })
		got := stage.(*Standardize).Learned["x"]
		mean, variance, size := pooled(values)
		if math.Abs(got.From+got.Rest-mean) > 1e-9*max(size, math.SmallestNonzeroFloat64) {
			r.Errorf("mean %v and %v, want %v", got.From, got.Rest, mean)
		}
		if math.Abs(got.By*got.By-variance) > 1e-9*variance {
			r.Errorf("variance %v, want %v (%g relative)", got.By*got.By, variance, got.By*got.By/variance-1)
		}
		for _, x := range transformed(t, stage, b).Columns[0].Numbers {
			if variance == 0 && x != 0 && !math.IsNaN(x) {
				r.Errorf("a constant becomes %g", x)
			}
		}
	})
}

// TestASketchIsWithinItsBound compares ranks with those of all numbers, merged from members.
func TestASketchIsWithinItsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, members := range []int{1, 3, 10} {
		var all []float64
		merged := &Sketch{}
		for range members {
			one := &Sketch{}
			for range 30000 {
				x := math.Exp(3 * rng.NormFloat64())
				one.Add(x)
				all = append(all, x)
			}
			merged.Merge(one)
		}
		sort.Float64s(all)
		bound := merged.ErrorBound()
		if bound > 0.01 {
			t.Errorf("the bound of %d members is %g", members, bound)
		}
		for q := 0.01; q < 1; q += 0.01 {
			rank := float64(sort.SearchFloat64s(all, merged.Quantile(q))) / float64(len(all))
			if math.Abs(rank-q) > bound+1e-4 {
				t.Errorf("quantile %.2f has rank %.4f, beyond the bound %.4f", q, rank, bound)
			}
		}
	}
}

func TestStages(t *testing.T) {
	nan := math.NaN()
	b := batch(
		numbers("x", 1, 2, 3, nan, 5, 99), numbers("flat", 7, 7, 7, 7, 7, 7), numbers("y", 0, 0, 0, 1, 1, 1),
		texts("city", "b", "a", "b", "", "c", "b"),
	)
	parts := split(b, 3, func(row int) int { return 2 * (row % 2) })
	show := func(b *table.Batch, name string) string {
		c := b.Find(name)
		if c == nil {
			return "none"
		}
		if c.Kind == table.Number {
			return fmt.Sprint(c.Numbers)
		}
		return fmt.Sprint(c.Codes, c.Values)
	}
	for _, c := range []struct {
		stage  func() table.Stage
		column string
		want   string
	}{
		{func() table.Stage { return &Standardize{Columns: []string{"flat"}} }, "flat", "[0 0 0 0 0 0]"},
		{func() table.Stage { return &MinMax{Columns: []string{"x"}} }, "x", fmt.Sprint([]float64{0, 1 / 98., 2 / 98., nan, 4 / 98., 1})},
		{func() table.Stage { return &Impute{By: Constant, Value: -1} }, "x", "[1 2 3 -1 5 99]"},
		{func() table.Stage { return &Impute{} }, "x", "[1 2 3 22 5 99]"},
		{func() table.Stage { return &Impute{By: Median, Indicator: true} }, "x", "[1 2 3 3 5 99]"},
		{func() table.Stage { return &Impute{Indicator: true} }, "x is missing", "[0 0 0 1 0 0]"},
		{func() table.Stage { return &Impute{Indicator: true} }, "flat is missing", "none"},
		{func() table.Stage { return &Bins{Columns: []string{"x"}, Count: 2} }, "x", "[0 0 1 NaN 1 1]"},
		{func() table.Stage { return &Outliers{Columns: []string{"x"}, Reach: 1} }, "x", "[1 2 3 NaN 5 8]"},
		{func() table.Stage { return &Outliers{Columns: []string{"x"}, Reach: 1, Remove: true} }, "x", "[1 2 3 NaN 5 NaN]"},
		{func() table.Stage { return &OneHot{Floor: 2} }, "city=b", "[1 0 1 0 0 1]"},
		{func() table.Stage { return &OneHot{Floor: 2} }, "city=other", "[0 1 0 0 1 0]"},
		{func() table.Stage { return &OneHot{Floor: 2} }, "city=a", "none"},
		{func() table.Stage { return &Codes{} }, "city", "[1 0 1 -1 2 1] [a b c other]"},
		{func() table.Stage { return &DropUseless{Target: "y"} }, "flat", "none"},
		{func() table.Stage { return &DropUseless{Target: "y", Tolerance: 0.2} }, "city", show(b, "city")},
		{func() table.Stage { return &DropUseless{Target: "y", Tolerance: 0.9} }, "x", "none"},
	} {
		stage := fitted(t, parts, c.stage)
		if got := show(transformed(t, stage, b), c.column); got != c.want {
			t.Errorf("%s: %q is %s, want %s", kindOf(stage), c.column, got, c.want)
		}
	}
}

func TestWhatWasNotSeenIsOther(t *testing.T) {
	stage := fitted(t, []*table.Batch{batch(texts("city", "a", "b"))}, func() table.Stage { return &Codes{} })
	got := transformed(t, stage, batch(texts("city", "z", "b", ""))).Columns[0]
	if !slices.Equal(got.Codes, []int32{2, 1, table.Missing}) {
		t.Errorf("codes %v", got.Codes)
	}
}

func TestTextsAndBuckets(t *testing.T) {
	b := batch(texts("note", "Late again, late", "", "on time"))
	for _, stage := range []table.Stage{&NGrams{Words: 2, Letters: 4, Count: 32}, &Buckets{Count: 8}} {
		out := transformed(t, fitted(t, []*table.Batch{b}, func() table.Stage { return stage }), b)
		for row, want := range []float64{1, 0, 1} {
			length := 0.0
			for _, c := range out.Columns {
				length += c.Numbers[row] * c.Numbers[row]
			}
			if math.Abs(length-want) > 1e-12 {
				t.Errorf("%s: row %d has length %g, want %g", kindOf(stage), row, length, want)
			}
		}
	}
}

// TestAPipelineIsAFile shows that what is read back does the same, and what is no whole
// pipeline is refused.
func TestAPipelineIsAFile(t *testing.T) {
	b := batch(numbers("x", 1, math.NaN(), 3), texts("city", "a", "b", "a"), numbers("unused", 1, 2, 3))
	p := &Pipeline{
		Input:  table.Schema{Fields: []table.Field{{Name: "x"}, {Name: "city", Kind: table.Category}}},
		Stages: []table.Stage{&Outliers{}, &Impute{Indicator: true}, &Standardize{}, &OneHot{}},
	}
	if err := p.Fit(t.Context(), table.Alone{}, table.InMemory(b)); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Transform(b)
	if err != nil || fmt.Sprint(got.Columns) != fmt.Sprint(want.Columns) || len(got.Columns) != 5 {
		t.Errorf("%v\nwant %v (%v)", got, want, err)
	}
	if _, err := p.Transform(batch(numbers("x", 1))); err == nil || !strings.Contains(err.Error(), `"city"`) {
		t.Errorf("without a column: %v", err)
	}
	if _, err := p.Transform(batch(texts("x", "a"), texts("city", "a"))); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a column of another kind: %v", err)
	}
	whole := file.String()
	for what, text := range map[string]string{
		"empty": "", "cut": whole[:len(whole)-1], "changed": strings.Replace(whole, "city", "town", 1), "another file": "hello\n",
	} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrPipeline) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"version":1,"input":{"fields":null},"stages":[{"kind":"magic","stage":{}}]}`), again); !errors.Is(err, ErrPipeline) {
		t.Errorf("an unknown stage: %v", err)
	}
}

func TestBadColumns(t *testing.T) {
	inf := table.InMemory(batch(numbers("x", 1, math.Inf(1))))
	if err := (&Standardize{}).Fit(t.Context(), table.Alone{}, inf); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("infinite: %v", err)
	}
	none := table.InMemory(batch(numbers("x", math.NaN())))
	if err := (&Impute{}).Fit(t.Context(), table.Alone{}, none); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("all missing: %v", err)
	}
	if err := (&Standardize{Columns: []string{"z"}}).Fit(t.Context(), table.Alone{}, none); err == nil || !strings.Contains(err.Error(), `"z"`) {
		t.Errorf("not there: %v", err)
	}
	for _, s := range []table.Stage{&Bins{Count: 1}, &Outliers{Reach: -1}, &Buckets{Count: -1}, &NGrams{Letters: 2}, &DropUseless{Tolerance: 1}, &Impute{By: "luck"}} {
		if err := s.Fit(t.Context(), table.Alone{}, none); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}
