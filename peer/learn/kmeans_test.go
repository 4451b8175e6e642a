package learn

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// blobs are rows round centers 20 apart on a circle, cluster after cluster, far from 0.
func blobs(clusters, each int) Rows {
	chance := rand.New(rand.NewPCG(1, 2))
	var rows [][]float64
	for c := range clusters {
		for range each {
			turn := 2 * math.Pi * float64(c) / float64(clusters)
			rows = append(rows, []float64{1e6 + 40*math.Cos(turn) + chance.NormFloat64(), 40*math.Sin(turn) + chance.NormFloat64(), chance.NormFloat64()})
		}
	}
	return Rows{Features: numbersBatch(rows)}
}

func TestKMeansIsThatOfAllRows(t *testing.T) {
	rows := blobs(6, 60)
	rows.Weight = make([]float64, rows.Features.Rows)
	for i := range rows.Weight {
		rows.Weight[i] = float64(1 + i%3)
	}
	for name, member := range map[string]func(row, part int) bool{
		"at random":                   func(row, part int) bool { return row*7%4 == part },
		"by cluster, and one is idle": func(row, part int) bool { return row/120 == part },
	} {
		t.Run(name, func(t *testing.T) {
			var parts []Rows
			for i := range 4 {
				parts = append(parts, part(rows, func(row int) bool { return member(row, i) }))
			}
			a, b := fitBoth(t, KMeans{Clusters: 6, Seed: 3}, rows, parts...)
			alone, together := a.(*KMeansModel), b.(*KMeansModel)
			sameFloats(t, "centers", slices.Concat(together.Centers...), slices.Concat(alone.Centers...), 1e-9)
			sameFloats(t, "sizes", together.Sizes, alone.Sizes, 0)
			if !close1(together.Inertia, alone.Inertia, 1e-9) {
				t.Errorf("inertia %v, alone %v", together.Inertia, alone.Inertia)
			}
			labels, _ := together.Predict(nil, rows.Features)
			inertia := 0.0
			for row, label := range labels {
				if label != labels[row/60*60] {
					t.Fatalf("row %d is in cluster %v, the first of its blob in %v", row, label, labels[row/60*60])
				}
				for j, c := range rows.Features.Columns {
					off := c.Numbers[row] - together.Centers[int(label)][j]
					inertia += rows.Weight[row] * off * off
				}
			}
			if !close1(inertia, together.Inertia, 1e-6) {
				t.Errorf("inertia %v, but rows are %v from their centers", together.Inertia, inertia)
			}
		})
	}
}

// A center that has lost its rows takes the one that is farthest from its own.
func TestKMeansFillsEmptyClusters(t *testing.T) {
	rows := Rows{Features: numbersBatch([][]float64{{0}, {1}, {2}, {100}})}
	p, _ := pointsOf(rows, []string{"c0"})
	p.from = []float64{0}
	l, _ := KMeans{Clusters: 3}.withDefaults()
	f := kmeansFit{KMeans: l, points: p, flock: table.Alone{}}
	var c centers
	for _, at := range []float64{1, 1, 1} {
		c.add([]float64{at})
	}
	m, err := f.lloyd(t.Context(), c, 1e-9)
	if err != nil || len(m.Centers) != 3 || m.Inertia > 0.5 {
		t.Fatalf("%+v, %v; want three clusters, one of them of the row at 100", m, err)
	}
}

func TestKMeansOfFewDistinctRows(t *testing.T) {
	rows := Rows{Features: numbersBatch([][]float64{{1, 2}, {1, 2}, {3, 4}, {1, 2}, {3, 4}})}
	m, err := KMeans{Clusters: 4}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	if k := m.(*KMeansModel); len(k.Centers) != 2 || k.Inertia > 1e-20 || total(k.Sizes) != 5 {
		t.Errorf("%+v; want a cluster for each of two distinct rows", k)
	}
}

func TestKMeansSaysWhatIsWrong(t *testing.T) {
	good := Rows{Features: numbersBatch([][]float64{{1}, {2}})}
	none := Rows{Features: numbersBatch([][]float64{{1}, {math.NaN()}})}
	none.Features.First = 40
	texts := Rows{Features: &table.Batch{Rows: 1, Columns: []table.Column{{Name: "color", Kind: table.Category, Codes: []int32{0}, Values: []string{"red"}}}}}
	for _, c := range []struct {
		learner KMeans
		rows    Rows
		says    string
	}{
		{KMeans{}, none, `column "c0" has NaN in row 41`},
		{KMeans{}, texts, `column "color" is of categories`},
		{KMeans{}, Rows{Features: &table.Batch{Rows: 1}}, "without columns"},
		{KMeans{Clusters: -1}, good, "-1 clusters"},
		{KMeans{}, Rows{Features: good.Features, Weight: []float64{1, -1}}, "the weight of row 1 is -1"},
		{KMeans{}, part(good, func(int) bool { return false }), ErrNoRows.Error()},
	} {
		if _, err := c.learner.Fit(t.Context(), table.Alone{}, c.rows); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v; want it to say %q", err, c.says)
		}
	}
	_, errs := fitTogether(t, KMeans{}, []Rows{good, none})
	if !errors.Is(errs[0], table.ErrMember) || !strings.Contains(errs[1].Error(), "NaN") {
		t.Errorf("%v; want the member with the NaN to say so, and the other to end too", errs)
	}
	m := &KMeansModel{Columns: []string{"other"}, Centers: [][]float64{{1}}}
	if _, err := m.Predict(nil, good.Features); err == nil || !strings.Contains(err.Error(), `no column "other"`) {
		t.Errorf("%v; want it to name the column", err)
	}
}

// unlike is a member whose processor rounds in another way.
type unlike struct {
	table.Flock
	first []float64
}

func (u unlike) Gather(_ context.Context, name string, data []byte) ([][]byte, error) {
	if strings.HasSuffix(name, "/first") {
		return [][]byte{appendFloats(nil, u.first...), data}, nil
	}
	return [][]byte{[]byte("another hash"), data}, nil
}

func TestWhatIsUnlikeIsSettled(t *testing.T) {
	got, err := settle(t.Context(), unlike{first: []float64{1, 2}}, "x", []float64{1, 2 + 1e-15})
	if err != nil || got[1] != 2 {
		t.Errorf("%v, %v; want what the first has", got, err)
	}
	if _, err := settle(t.Context(), unlike{first: []float64{1}}, "x", []float64{1, 2}); err == nil {
		t.Error("one number instead of two was taken")
	}
}
