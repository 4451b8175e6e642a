package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/seed-97356399/murmuration/peer/table"
)

// listened is how often users had items: those of their own third of them far more often. Some rows are of one user
// and item, and a third of the pairs is left out.
func listened(users, items int) (rows Rows, left Rows) {
	chance := rand.New(rand.NewPCG(12, 8))
	user, item := table.Column{Name: "user", Kind: table.Category}, table.Column{Name: "song", Kind: table.Category}
	for u := range users {
		user.Values = append(user.Values, fmt.Sprint("user", u))
	}
	for i := range items {
		item.Values = append(item.Values, fmt.Sprint("song", i))
	}
	all, out := Rows{}, map[int]bool{}
	for u := range users {
		for i := range items {
			if likes := u%3 == i%3; chance.Float64() > 0.5 && likes || chance.Float64() > 0.98 || u%items == i {
				leave := u%items != i && chance.IntN(3) == 0
				for range 1 + chance.IntN(2) {
					out[len(all.Target)] = leave
					user.Codes, item.Codes = append(user.Codes, int32(u)), append(item.Codes, int32(i))
					all.Target = append(all.Target, float64(1+chance.IntN(4))/2)
				}
			}
		}
	}
	all.Features = &table.Batch{Rows: len(all.Target), Columns: []table.Column{user, item}}
	return part(all, func(row int) bool { return !out[row] }), part(all, func(row int) bool { return out[row] })
}

// plainALS is Hu, Koren and Volinsky's, each of all users and items by a matrix of how much each pair counts.
func plainALS(count *mat.Dense, items *mat.Dense, ridge, alpha float64, rounds int) (users *mat.Dense) {
	side := func(count mat.Matrix, of *mat.Dense) *mat.Dense {
		n, m := count.Dims()
		_, k := of.Dims()
		found := mat.NewDense(n, k, nil)
		for u := range n {
			weights, right := mat.NewDiagDense(m, nil), mat.NewVecDense(m, nil)
			for i := range m {
				weights.SetDiag(i, 1+alpha*count.At(u, i))
				if count.At(u, i) > 0 {
					right.SetVec(i, 1+alpha*count.At(u, i))
				}
			}
			var a mat.Dense
			a.Product(of.T(), weights, of)
			for i := range k {
				a.Set(i, i, a.At(i, i)+ridge)
			}
			var b, x mat.VecDense
			b.MulVec(of.T(), right)
			if err := x.SolveVec(&a, &b); err != nil {
				panic(err)
			}
			found.SetRow(u, x.RawVector().Data)
		}
		return found
	}
	for range rounds {
		items.Copy(side(count.T(), side(count, items)))
	}
	return side(count, items)
}

func TestImplicitALSAsByThePaper(t *testing.T) {
	const users, items, factors = 24, 15, 4
	rows, _ := listened(users, items)
	learner := ALS{Item: "song", Factors: factors, Rounds: 6, Ridge: 0.5, Alpha: 3, Seed: 9, Implicit: true}
	var parts []Rows
	for i := range 4 { // by user; the last has none
		parts = append(parts, part(rows, func(row int) bool { return int(rows.Features.Columns[0].Codes[row])%3 == i }))
	}
	a, b := fitBoth(t, learner, rows, parts...)
	alone, together := a.(*ALSModel), b.(*ALSModel)
	names := slices.Clone(rows.Features.Columns[1].Values)
	slices.Sort(names)
	if len(alone.Items) != items {
		t.Fatalf("%d items", len(alone.Items))
	}
	count, begun := mat.NewDense(users, items, nil), mat.NewDense(items, factors, nil)
	for row, often := range rows.Target {
		u, i := int(rows.Features.Columns[0].Codes[row]), slices.Index(names, rows.Features.Columns[1].Values[rows.Features.Columns[1].Codes[row]])
		count.Set(u, i, count.At(u, i)+often)
	}
	chance := rand.New(rand.NewPCG(learner.Seed, items))
	for i := range items {
		for k := range factors {
			begun.Set(i, k, chance.NormFloat64()/math.Sqrt(factors))
		}
	}
	want := plainALS(count, begun, learner.Ridge, learner.Alpha, learner.Rounds)
	for i, name := range names {
		sameFloats(t, name, alone.Items[name], begun.RawRowView(i), 1e-9)
		sameFloats(t, name, together.Items[name], begun.RawRowView(i), 1e-7)
	}
	for u := range users {
		name := fmt.Sprint("user", u)
		sameFloats(t, name, alone.Users[name], want.RawRowView(u), 1e-9)
	}
}

// Pairs that were left out stand at the beginning of their users' lists, and what is not known in the middle.
func TestImplicitALSRanks(t *testing.T) {
	rows, left := listened(60, 30)
	m, err := ALS{Item: "song", Factors: 3, Ridge: 5, Implicit: true, Seed: 1}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Evaluate(t.Context(), table.Alone{}, m, left)
	if err != nil || !(s.Ranks.Rank < 0.3) || s.Ranks.Rows != total(left.Target) {
		t.Fatalf("%+v, %v", s.Ranks, err)
	}
	once := left
	once.Target = nil
	if n, err := Evaluate(t.Context(), table.Alone{}, m, once); err != nil || n.Ranks.Rows != float64(left.Features.Rows) {
		t.Errorf("%+v, %v", n.Ranks, err)
	}
	parts := func(r Rows, i int) Rows {
		return part(r, func(row int) bool { return int(r.Features.Columns[0].Codes[row])%3 == i })
	}
	table.Together(3, func(flock table.Flock, i int) {
		m, err := ALS{Item: "song", Factors: 3, Ridge: 5, Implicit: true, Seed: 1}.Fit(t.Context(), table.Scope(flock, "f"), parts(rows, i))
		if err != nil {
			t.Error(err)
			return
		}
		s2, err := Evaluate(t.Context(), table.Scope(flock, "s"), m, parts(left, i))
		if err != nil || !close1(s.Ranks.Rank, s2.Ranks.Rank, 1e-7) || s2.Ranks.Peers != 3 {
			t.Errorf("%+v, %v; want %+v", s2.Ranks, err, s.Ranks)
		}
	})
	// Three items whose places are known, two of them alike: 0 and 0.75; an item and a user that are not known: 0.5.
	known := &ALSModel{User: "u", Item: "i", Implicit: true, Users: map[string][]float64{"me": {1}}, Items: map[string][]float64{"a": {2}, "b": {1}, "c": {1}}}
	for _, c := range []struct {
		user, item string
		rank       float64
	}{{"me", "a", 0}, {"me", "b", 0.75}, {"me", "d", 0.5}, {"you", "a", 0.5}} {
		one := func(name, value string) table.Column {
			return table.Column{Name: name, Kind: table.Category, Codes: []int32{0}, Values: []string{value}}
		}
		s, err := Evaluate(t.Context(), table.Alone{}, known, Rows{Features: &table.Batch{Rows: 1, Columns: []table.Column{one("u", c.user), one("i", c.item)}}})
		if err != nil || s.Ranks.Rank != c.rank {
			t.Errorf("%v: %+v, %v", c, s.Ranks, err)
		}
	}
}

func TestImplicitALSSaysWhatIsWrong(t *testing.T) {
	rows, _ := listened(6, 5)
	below := rows
	below.Target = slices.Repeat([]float64{-1}, rows.count())
	none := rows
	none.Target = make([]float64, rows.count())
	for _, c := range []struct {
		learner ALS
		rows    Rows
		says    string
	}{
		{ALS{Item: "song", Implicit: true}, below, "not below 0"}, {ALS{Item: "song", Implicit: true}, none, ErrNoRows.Error()},
		{ALS{Item: "song", Implicit: true, Alpha: -1}, rows, "alpha -1"},
	} {
		if _, err := c.learner.Fit(t.Context(), table.Alone{}, c.rows); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v; want it to say %q", err, c.says)
		}
	}
}
