package prepare

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer/table"
)

// TestAFaultOfOneMemberIsToldToAll shows that nobody waits for the sums of a member whose rows or
// settings are at fault: in the bubble, one that did would be a deadlock. It tells what is wrong,
// the others that it does.
func TestAFaultOfOneMemberIsToldToAll(t *testing.T) {
	good := batch(numbers("x", 1, 2), numbers("y", 0, 1), texts("c", "a", "b"))
	for name, stage := range map[string]func(fault bool) table.Stage{
		"standardize":   func(bool) table.Stage { return &Standardize{Columns: []string{"x"}} },
		"min-max":       func(bool) table.Stage { return &MinMax{Columns: []string{"x"}} },
		"impute":        func(bool) table.Stage { return &Impute{Columns: []string{"x"}} },
		"most frequent": func(bool) table.Stage { return &Impute{By: MostFrequent, Columns: []string{"c"}} },
		"bins":          func(bool) table.Stage { return &Bins{Columns: []string{"x"}} },
		"outliers":      func(bool) table.Stage { return &Outliers{Columns: []string{"x"}} },
		"one-hot":       func(bool) table.Stage { return &OneHot{Columns: []string{"c"}} },
		"codes":         func(bool) table.Stage { return &Codes{Columns: []string{"c"}} },
		"buckets":       func(bool) table.Stage { return &Buckets{Columns: []string{"c"}} },
		"n-grams":       func(bool) table.Stage { return &NGrams{Columns: []string{"c"}} },
		"useless":       func(bool) table.Stage { return &DropUseless{Target: "y"} },
		"second stage": func(bool) table.Stage {
			return &Pipeline{Stages: []table.Stage{&Codes{}, &Standardize{Columns: []string{"x"}}}}
		},
		"bins' count":    func(fault bool) table.Stage { return &Bins{Count: map[bool]int{true: -1}[fault]} },
		"impute's by":    func(fault bool) table.Stage { return &Impute{By: map[bool]By{true: "luck"}[fault]} },
		"one-hot's rows": func(fault bool) table.Stage { return &OneHot{Floor: map[bool]float64{true: math.NaN()}[fault]} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table.Together(3, func(m table.Flock, i int) {
					rows := table.InMemory(good)
					if i == 1 && !strings.Contains(name, "'") {
						rows = table.InMemory(batch(numbers("z", math.Inf(1))))
					}
					s := stage(i == 1)
					if p, ok := s.(*Pipeline); ok && i != 1 {
						p.Input = table.Schema{Fields: []table.Field{{Name: "x"}, {Name: "c", Kind: table.Category}}}
					}
					err := s.Fit(t.Context(), table.Scope(m, "f"), rows)
					if err == nil || errors.Is(err, table.ErrMember) != (i != 1) {
						t.Errorf("member %d: %v", i, err)
					}
				})
			})
		})
	}
}

// TestFaultsBesideStages is the same of what is no stage.
func TestFaultsBesideStages(t *testing.T) {
	torn := errors.New("torn")
	synctest.Test(t, func(t *testing.T) {
		table.Together(2, func(m table.Flock, i int) {
			rows := table.InMemory(batch(numbers("x", 1)))
			want := table.ErrMember
			if i == 1 {
				ended, cancel := context.WithCancelCause(t.Context())
				cancel(torn)
				rows, want = func(context.Context) iter.Seq2[*table.Batch, error] {
					return table.InMemory(batch(numbers("x", 1)))(ended)
				}, context.Canceled
			}
			if _, _, err := Distinct(t.Context(), table.Scope(m, "d"), rows); !errors.Is(err, want) {
				t.Errorf("member %d: %v", i, err)
			}
		})
	})
}

// TestUnlikeSettings shows that members whose stages differ do not fit.
func TestUnlikeSettings(t *testing.T) {
	table.Together(2, func(m table.Flock, i int) {
		err := (&Bins{Count: 4 + i}).Fit(t.Context(), table.Scope(m, "f"), table.InMemory(batch(numbers("x", 1, 2))))
		if !errors.Is(err, table.ErrUnlike) {
			t.Errorf("member %d: %v", i, err)
		}
	})
}

// TestAllFaultsOfAStageAtOnce: of its settings, and of the columns that it names.
func TestAllFaultsOfAStageAtOnce(t *testing.T) {
	rows := table.InMemory(batch(numbers("x", 1)))
	for _, c := range []struct {
		stage table.Stage
		says  []string
	}{
		{&NGrams{Words: 99, Count: -1}, []string{"99 words", "Count is -1"}},
		{&Outliers{By: "luck", Reach: -1}, []string{"luck", "Reach is -1"}},
		{&Standardize{Columns: []string{"u", "x", "v"}}, []string{`"u"`, `"v"`}},
	} {
		err := c.stage.Fit(t.Context(), table.Alone{}, rows)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%T: %v, want %s", c.stage, err, want)
			}
		}
	}
}

func TestMostFrequent(t *testing.T) {
	parts := []*table.Batch{batch(texts("c", "b", "", "b")), batch(texts("c", "a", "a", "a")), batch(texts("c", "", "z", "b"))}
	s := fitted(t, parts, func() table.Stage { return &Impute{By: MostFrequent, Indicator: true} })
	out := transformed(t, s, batch(texts("c", "", "q")))
	c := out.Columns[0]
	if got := c.Values[c.Codes[0]] + c.Values[c.Codes[1]]; got != "aq" || out.Find("c is missing").Numbers[0] != 1 {
		t.Errorf("filled with %q, %v", got, out.Columns)
	}
}

// TestFencesByMedianDeviation compares them with those of all numbers sorted, of normal numbers and some
// far away.
func TestFencesByMedianDeviation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float64, 9000)
	for i := range x {
		if x[i] = 5 + 2*rng.NormFloat64(); i%10 == 0 {
			x[i] = 1e6
		}
	}
	parts := []*table.Batch{batch(numbers("x", x[:1000]...)), batch(numbers("x", x[1000:]...))}
	s := fitted(t, parts, func() table.Stage { return &Outliers{By: MedianDeviation, Remove: true} }).(*Outliers)
	sorted := slices.Sorted(slices.Values(x))
	median := sorted[len(x)/2]
	for i, v := range sorted {
		sorted[i] = math.Abs(v - median)
	}
	slices.Sort(sorted)
	reach := 3 * 1.4826 * sorted[len(x)/2]
	if got := s.Learned["x"]; math.Abs(got[0]-(median-reach)) > 0.3 || math.Abs(got[1]-(median+reach)) > 0.3 {
		t.Errorf("fences %v, want %v", got, [2]float64{median - reach, median + reach})
	}
	if out := transformed(t, s, parts[0]).Columns[0].Numbers; !math.IsNaN(out[0]) || math.IsNaN(out[1]) {
		t.Errorf("numbers %v", out[:2])
	}
}
