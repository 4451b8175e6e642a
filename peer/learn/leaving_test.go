package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// leaver is a member that leaves before one of its sums.
type leaver struct {
	table.Flock
	after int
}

var errLeft = errors.New("this member has left")

func (l *leaver) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	if l.after--; l.after < 0 {
		return nil, 0, errLeft
	}
	return l.Flock.Sum(ctx, name, vector)
}

// Whenever a member leaves, those that are left end with the model of their rows or, where it
// left after the last sum, of all: never with one of sums over unlike rows.
func TestAMemberMayLeaveAtAnySum(t *testing.T) {
	for _, learner := range []Learner{&Linear{}, &Linear{Ridge: 1}, &Logistic{Tolerance: 1e-8}, &Logistic{Tolerance: 1e-8, C: 0.1, L1Ratio: 0.5}, &GaussianNB{}} {
		t.Run(fmt.Sprintf("%T%+v", learner, learner), func(t *testing.T) {
			rows := mixedRows(240, 2, 71)
			parts := make([]Rows, 3)
			for p := range parts {
				parts[p] = rows.Select(func(row int) bool { return row%3 == p })
			}
			left := rows.Select(func(row int) bool { return row%3 != 2 })
			withoutIt := predict(t, fitAlone(t, learner, left), rows)
			withIt := predict(t, fitAlone(t, learner, rows), rows)
			for after := range 12 {
				models, errs := make([]Model, 3), make([]error, 3)
				table.Together(3, func(flock table.Flock, i int) {
					if i == 2 {
						flock = &leaver{flock, after}
					}
					models[i], errs[i] = learner.Fit(t.Context(), table.Scope(flock, "f"), parts[i])
				})
				if errs[0] != nil || errs[1] != nil {
					t.Fatalf("left before sum %d: %v, %v", after+1, errs[0], errs[1])
				}
				want := withoutIt
				if errs[2] == nil {
					want = withIt
				}
				for i, p := range predict(t, models[0], rows) {
					if math.Abs(p-want[i]) > 1e-6 {
						t.Fatalf("left before sum %d (%v): prediction %d is %v, want %v", after+1, errs[2], i, p, want[i])
					}
				}
			}
		})
	}
}
