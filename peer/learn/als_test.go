package learn

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// ratings are of users and items with two factors each; a third is left out.
func ratings(users, items int) (rows Rows, left Rows) {
	chance := rand.New(rand.NewPCG(8, 8))
	factors := func(n int) (f [][2]float64) {
		for range n {
			f = append(f, [2]float64{chance.NormFloat64(), chance.NormFloat64()})
		}
		return f
	}
	x, y := factors(users), factors(items)
	user, item := table.Column{Name: "user", Kind: table.Category}, table.Column{Name: "film", Kind: table.Category}
	for u := range users {
		user.Values = append(user.Values, fmt.Sprint("user", u))
	}
	for i := range items {
		item.Values = append(item.Values, fmt.Sprint("film", i))
	}
	all := Rows{}
	for u := range users {
		for i := range items {
			user.Codes, item.Codes = append(user.Codes, int32(u)), append(item.Codes, int32(i))
			all.Target = append(all.Target, 3+x[u][0]*y[i][0]+x[u][1]*y[i][1])
		}
	}
	all.Features = &table.Batch{Rows: users * items, Columns: []table.Column{user, item}}
	out := func(row int) bool { return draw(1, 0, int64(row)) < 1./3 }
	return part(all, func(row int) bool { return !out(row) }), part(all, out)
}

func TestALSIsThatOfAllRows(t *testing.T) {
	rows, left := ratings(90, 50)
	var parts []Rows
	for i := range 4 { // by user; the last has none
		parts = append(parts, part(rows, func(row int) bool { return int(rows.Features.Columns[0].Codes[row])%3 == i }))
	}
	learner := ALS{Item: "film", Factors: 3, Rounds: 20, Ridge: 0.001, Seed: 5}
	a, b := fitBoth(t, learner, rows, parts...)
	alone, together := a.(*ALSModel), b.(*ALSModel)
	if !close1(alone.RMSE, together.RMSE, 1e-7) || !close1(alone.Mean, together.Mean, 1e-12) {
		t.Errorf("RMSE %v and mean %v, alone %v and %v", together.RMSE, together.Mean, alone.RMSE, alone.Mean)
	}
	for name, f := range alone.Items {
		sameFloats(t, name, together.Items[name], f, 1e-7)
	}
	predicted, err := alone.Predict(nil, left.Features)
	if err != nil {
		t.Fatal(err)
	}
	off := 0.0
	for i, p := range predicted {
		off += (p - left.Target[i]) * (p - left.Target[i])
	}
	if rmse := math.Sqrt(off / float64(len(predicted))); rmse > 0.05 {
		t.Errorf("RMSE %v on ratings that were left out, %v on the others", rmse, alone.RMSE)
	}
	ridged, err := ALS{Item: "film", Ridge: 1e6}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil || math.Abs(ridged.(*ALSModel).Users["user1"][0]) > 1e-6 {
		t.Errorf("%v; want factors that a large ridge keeps from growing", err)
	}
	// Users of others are not in a member's model; what is unknown is the mean.
	models, _ := fitTogether(t, learner, parts)
	mine := models[0].(*ALSModel)
	if len(mine.Users) != 30 || mine.Users["user1"] != nil {
		t.Errorf("member 0 has factors of %d users, want its own 30", len(mine.Users))
	}
	if p, err := mine.Predict(nil, part(rows, func(row int) bool { return rows.Features.Columns[0].Codes[row] == 1 }).Features); err != nil || p[0] != mine.Mean {
		t.Errorf("%v, %v; want the mean %v for a user of another member", p, err, mine.Mean)
	}
}

func TestALSSaysWhatIsWrong(t *testing.T) {
	rows, _ := ratings(6, 5)
	halves := []Rows{part(rows, func(row int) bool { return row%2 == 0 }), part(rows, func(row int) bool { return row%2 == 1 })}
	_, errs := fitTogether(t, ALS{Item: "film"}, halves)
	if !errors.Is(errs[0], ErrUserShared) || !errors.Is(errs[1], ErrUserShared) {
		t.Errorf("%v; want ErrUserShared of both", errs)
	}
	none := part(rows, func(int) bool { return true })
	none.Features.Columns[1].Codes = slices.Clone(none.Features.Columns[1].Codes)
	none.Features.Columns[1].Codes[3] = table.Missing
	numbers := Rows{Features: numbersBatch([][]float64{{1, 2}}), Target: []float64{1}}
	for _, c := range []struct {
		learner ALS
		rows    Rows
		says    string
	}{
		{ALS{}, rows, `"item" is not there`},
		{ALS{}, Rows{}, errNoFeatures.Error()},
		{ALS{User: "c0", Item: "c1"}, numbers, `"c0" has numbers`},
		{ALS{Item: "film"}, none, "no user or no item"},
		{ALS{Item: "film", Ridge: -1}, rows, "ridge -1"},
		{ALS{Item: "film"}, part(rows, func(int) bool { return false }), ErrNoRows.Error()},
	} {
		if _, err := c.learner.Fit(t.Context(), table.Alone{}, c.rows); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v; want it to say %q", err, c.says)
		}
	}
}
