package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// ErrUserShared: a user has ratings at two members.
var ErrUserShared = errors.New("learn: a user has rows at more than one member; split the rows by user")

// ErrRating: a row is no rating: it has no user or item, or these are no columns of names.
var ErrRating = errors.New("learn: not a rating")

// Defaults of ALS.
const (
	defaultFactors = 10
	defaultRounds  = 10
	defaultRidge   = 0.1
	defaultAlpha   = 40
	// maxEquations is how many numbers a sum over items may have: 512 MB.
	maxEquations = 64 << 20
)

// ALS learns ratings, Rows.Target, that users give to items. A rating is the mean of all ratings plus the product of
// a few factors of the user and of the item, found by alternating least squares (Zhou et al. 2008: the ridge grows
// with the number of ratings). All rows of a user must be at one member, and the user's factors never leave it.
// Members see the names of all items, sums over users, and hashes of users, which detect a user at two members
// (ErrUserShared).
//
// Implicit learns from the items that users had, not from ratings (Hu, Koren and Volinsky 2008): Rows.Target is how
// often a user had an item, from 0; a nil target means once for each row. The model predicts how much users prefer
// items, from about 0 to about 1.
type ALS struct {
	User, Item string  // columns of categories; "" is "user" and "item"
	Factors    int     // 0 is 10
	Rounds     int     // 0 is 10
	Ridge      float64 // 0 is 0.1
	Seed       uint64
	Implicit   bool
	Alpha      float64 // with Implicit, how much more a target of 1 counts than a target of 0; 0 is 40, as in the paper
}

func (l ALS) withDefaults() (ALS, error) {
	l.User, l.Item = cmp.Or(l.User, "user"), cmp.Or(l.Item, "item")
	l.Factors, l.Rounds = cmp.Or(l.Factors, defaultFactors), cmp.Or(l.Rounds, defaultRounds)
	l.Ridge, l.Alpha = cmp.Or(l.Ridge, defaultRidge), cmp.Or(l.Alpha, defaultAlpha)
	if l.Factors < 1 || l.Rounds < 1 || !(l.Ridge > 0) || !(l.Alpha > 0) {
		return l, fmt.Errorf("learn: ALS with %d factors, %d rounds, ridge %v and alpha %v; want more than 0 of each", l.Factors, l.Rounds, l.Ridge, l.Alpha)
	}
	return l, nil
}

// ALSModel predicts ratings, or preferences if it is Implicit. All fields except Users are the same at all members.
// Users has the users of this member, so do not give a file of the model to others: use Shared, which leaves Users
// out.
type ALSModel struct {
	User     string               `json:"user"` // names of the columns
	Item     string               `json:"item"`
	Mean     float64              `json:"mean"` // of all ratings; 0 if Implicit
	RMSE     float64              `json:"rmse"` // on the rows of all members in the fit; 0 if Implicit
	Items    map[string][]float64 `json:"items"`
	Users    map[string][]float64 `json:"users,omitempty"`
	Implicit bool                 `json:"implicit,omitempty"` // predicts preferences
}

// Shared returns the part of the model that is the same at all members.
func (m *ALSModel) Shared() *ALSModel {
	shared := *m
	shared.Users = nil
	return &shared
}

// Outputs is 1: a rating or a preference.
func (*ALSModel) Outputs() int { return 1 }

// Predict appends a rating for each row: the mean if the model does not know the user or the item.
func (m *ALSModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	users, err := categories(features, m.User)
	if err != nil {
		return nil, err
	}
	items, err := categories(features, m.Item)
	if err != nil {
		return nil, err
	}
	for row := range features.Rows {
		rating := m.Mean
		if u, i := users.Codes[row], items.Codes[row]; u >= 0 && i >= 0 {
			x, y := m.Users[users.Values[u]], m.Items[items.Values[i]]
			if len(x) > 0 && len(y) > 0 {
				rating += floats.Dot(x, y)
			}
		}
		dst = append(dst, rating)
	}
	return dst, nil
}

func (m *ALSModel) check() error {
	factors := -1
	for _, all := range []map[string][]float64{m.Items, m.Users} {
		for name, f := range all {
			if factors < 0 {
				factors = len(f)
			}
			if len(f) != factors {
				return fmt.Errorf("%q has %d factors, another %d", name, len(f), factors)
			}
			if err := checkFinite(f); err != nil {
				return err
			}
		}
	}
	return checkFinite([]float64{m.Mean, m.RMSE})
}

func categories(b *table.Batch, name string) (*table.Column, error) {
	if b == nil {
		return nil, errNoFeatures
	}
	c := b.Find(name)
	if c == nil {
		return nil, fmt.Errorf("%w: column %q is not there", ErrRating, name)
	}
	if c.Kind != table.Category {
		return nil, fmt.Errorf("%w: column %q has numbers, where names are wanted; read it as a category", ErrRating, name)
	}
	return c, nil
}

// Fit makes an *ALSModel.
func (l ALS) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	l, local := l.withDefaults()
	f := alsFit{ALS: l, flock: flock, rows: rows}
	if local == nil {
		local = f.take()
	}
	if err := agree(ctx, flock, local, "als", l); err != nil {
		return nil, err
	}
	m, err := f.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("learn: ALS: %w", err)
	}
	return m, nil
}

// Stages implements Preparer: users and items keep their names; see prepare.Plan.Only.
func (l ALS) Stages(prepare.Usual) []table.Stage { return []table.Stage{} }

// alsFit is one fit.
type alsFit struct {
	ALS
	flock        table.Flock
	rows         Rows
	users, items *table.Column
	mean         float64
	names        []string // of all members' items
	place        []int    // index in names of each item of this member
}

// take reads the rows of this member.
func (f *alsFit) take() (err error) {
	if f.users, err = categories(f.rows.Features, f.User); err != nil {
		return err
	}
	if f.items, err = categories(f.rows.Features, f.Item); err != nil {
		return err
	}
	f.rows.Classes = nil
	if f.Implicit && f.rows.Target == nil {
		f.rows.Target = slices.Repeat([]float64{1}, f.rows.count())
	}
	if err := checkTarget(f.rows); err != nil {
		return err
	}
	for row := range f.rows.Features.Rows {
		if f.users.Codes[row] < 0 || f.items.Codes[row] < 0 {
			return fmt.Errorf("%w: row %d has no user or no item; leave it out", ErrRating, f.rows.Features.Key(row))
		}
		if f.Implicit && f.rows.Target[row] < 0 {
			return fmt.Errorf("%w: the target of row %d is %v; want how often the user had the item, not below 0", ErrRating, f.rows.Features.Key(row), f.rows.Target[row])
		}
	}
	if f.Implicit {
		f.mergePairs()
	}
	return nil
}

// gather exchanges hashes of the users' names, and the names of the items, with all members.
func (f *alsFit) gather(ctx context.Context) error {
	var hashes []byte
	for _, user := range usedValues(f.users) {
		hash := fnv.New64a()
		hash.Write([]byte(user))
		hashes = hash.Sum(hashes)
	}
	all, err := f.flock.Gather(ctx, "users", hashes)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, data := range all {
		for hash := range slices.Chunk(data, 8) {
			if seen[string(hash)] {
				return ErrUserShared
			}
			seen[string(hash)] = true
		}
	}
	items, err := table.GatherJSON(ctx, f.flock, "items", usedValues(f.items))
	if err != nil {
		return err
	}
	f.names = slices.Concat(items...)
	slices.Sort(f.names)
	f.names = slices.Compact(f.names)
	if most := maxEquations / f.width(); len(f.names) > most {
		return fmt.Errorf("%w: %d items, at most %d with %d factors", ErrSettings, len(f.names), most, f.Factors)
	}
	rows, _ := f.items.Uses()
	for i, item := range f.items.Values {
		at, known := slices.BinarySearch(f.names, item)
		if !known && rows[i] > 0 {
			return fmt.Errorf("%w: the list of items of all members lacks %q of this one", table.ErrSum, item)
		}
		f.place = append(f.place, at)
	}
	return nil
}

// usedValues are the values of a column that occur in the rows.
func usedValues(c *table.Column) (values []string) {
	rows, _ := c.Uses()
	for code, value := range c.Values {
		if rows[code] > 0 {
			values = append(values, value)
		}
	}
	return values
}

// run alternates between solving for this member's users and for all items.
func (f *alsFit) run(ctx context.Context) (*ALSModel, error) {
	if err := f.gather(ctx); err != nil {
		return nil, err
	}
	var err error
	if f.mean, err = f.average(ctx, "mean", func(row int, weight float64) float64 { return weight * f.rows.Target[row] }); err != nil {
		return nil, err
	}
	chance := rand.New(rand.NewPCG(f.Seed, uint64(len(f.names))))
	items := make([][]float64, len(f.names))
	for i := range items {
		for range f.Factors {
			items[i] = append(items[i], chance.NormFloat64()/math.Sqrt(float64(f.Factors)))
		}
	}
	for round := range f.Rounds {
		users := f.usersOf(items)
		sums, _, err := f.flock.Sum(ctx, fmt.Sprintf("items%d", round), append(f.equations(len(items), func(row int) (int, []float64) {
			return f.place[f.items.Codes[row]], users[f.users.Codes[row]]
		}), f.products(users)...))
		if err != nil {
			return nil, err
		}
		own := len(items) * f.width()
		flat, err := settle(ctx, f.flock, fmt.Sprintf("round%d", round), slices.Concat(f.solve(sums[:own], sums[own:])...))
		if err != nil {
			return nil, err
		}
		items = slices.Collect(slices.Chunk(flat, f.Factors))
	}
	return f.model(ctx, items)
}

// average is the sum of of(row, weight) over the rows of all members, divided by their weight.
func (f *alsFit) average(ctx context.Context, part string, of func(row int, weight float64) float64) (float64, error) {
	sum := make([]float64, 2)
	for row := range f.rows.Target {
		weight := f.rows.weight(row)
		sum[0] += of(row, weight)
		sum[1] += weight
	}
	sum, _, err := f.flock.Sum(ctx, part, sum)
	if err == nil {
		err = checkWeights(part, sum[1])
	}
	if err != nil {
		return 0, err
	}
	return sum[0] / sum[1], nil
}

// usersOf solves for the factors of this member's users, given those of all items.
func (f *alsFit) usersOf(items [][]float64) [][]float64 {
	return f.solve(f.equations(len(f.users.Values), func(row int) (int, []float64) {
		return int(f.users.Codes[row]), items[f.place[f.items.Codes[row]]]
	}), f.products(items))
}

// width is how many numbers the equations of one user or item have: the upper triangle, the right side, and the
// weight of the ratings.
func (f *alsFit) width() int { return f.Factors*(f.Factors+1)/2 + f.Factors + 1 }

// equations returns the normal equations of n users or items. of(row) returns the index of the row's user or item,
// and the factors of the other side.
func (f *alsFit) equations(n int, of func(row int) (int, []float64)) []float64 {
	sums := make([]float64, n*f.width())
	for row, rating := range f.rows.Target {
		i, x := of(row)
		w := f.rows.weight(row)
		square, right := w, w*(rating-f.mean)
		if f.Implicit {
			square, right = f.Alpha*rating, 1+f.Alpha*rating
		}
		at := addProducts(sums[i*f.width():(i+1)*f.width()], square, x)
		floats.AddScaled(at[:f.Factors], right, x)
		at[f.Factors] += w
	}
	return sums
}

// solve returns the factors of each user or item; 0 for one without ratings. all is what products returns for the
// other side.
func (f *alsFit) solve(sums, all []float64) [][]float64 {
	var solved [][]float64
	for at := range slices.Chunk(sums, f.width()) {
		x := make([]float64, f.Factors)
		solved = append(solved, x)
		weight := at[len(at)-1]
		if weight == 0 {
			continue
		}
		ridge := f.Ridge * weight
		if f.Implicit {
			ridge = f.Ridge
			floats.Add(at[:len(all)], all)
		}
		a := mat.NewSymDense(f.Factors, nil)
		for i := range f.Factors {
			for j := i; j < f.Factors; j++ {
				a.SetSym(i, j, at[0])
				at = at[1:]
			}
			a.SetSym(i, i, a.At(i, i)+ridge)
		}
		var c mat.Cholesky
		if c.Factorize(a) { // succeeds due to the ridge, unless values are extreme
			_ = c.SolveVecTo(mat.NewVecDense(len(x), x), mat.NewVecDense(len(x), at[:f.Factors]))
		}
	}
	return solved
}

// model makes the model from factors and names, and sums its errors. It solves for the users once more, given the
// last items.
func (f *alsFit) model(ctx context.Context, items [][]float64) (*ALSModel, error) {
	users := f.usersOf(items)
	m := &ALSModel{User: f.User, Item: f.Item, Mean: f.mean, Implicit: f.Implicit, Items: map[string][]float64{}, Users: map[string][]float64{}}
	for i, name := range f.names {
		m.Items[name] = items[i]
	}
	for _, code := range f.users.Codes {
		m.Users[f.users.Values[code]] = users[code]
	}
	if m.Implicit {
		m.Mean = 0
		return m, m.check()
	}
	predicted, err := m.Predict(nil, f.rows.Features)
	if err != nil {
		return nil, err
	}
	squared, err := f.average(ctx, "rmse", func(row int, weight float64) float64 {
		off := predicted[row] - f.rows.Target[row]
		return weight * off * off
	})
	if err != nil {
		return nil, err
	}
	m.RMSE = math.Sqrt(squared) // NaN if the sum is below 0; check finds that
	return m, m.check()
}
