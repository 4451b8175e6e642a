package flocktest_test

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Whatever the flock gives, a task from table to model ends with an error, or with a model that predicts.
func TestTaskOverAFlockWithAMemberAtFault(t *testing.T) {
	rows := batch(numbers("id", 1, 2, 3, 4, 5, 6, 7, 8), numbers("x", 1, 9, 3, 8, 2, 7, 1, 9), texts("c", "a", "b", "a", "b", "b", "a", "b", "a"),
		texts("d", "2024-01-01", "2024-01-02", "2024-02-01", "2024-03-01", "2024-01-05", "2024-01-01", "2024-01-01", "2024-01-09"))
	for _, learner := range []learn.Learner{learn.Linear{Ridge: 1}, learn.Tree{MinRows: 1}, learn.KMeans{Clusters: 2}} {
		task := learn.Task{Plan: prepare.Plan{Target: "x>5", Distinct: true, Drop: []string{"id"}, Split: "row:3/4"}, Learner: learner}
		if _, is := learner.(learn.KMeans); is {
			task.Target = ""
		}
		everyCall(table.Alone{}, 100, func(s *spoilt) {
			what := func() string { return fmt.Sprintf("%T, %q %s", learner, s.Name, s.How.Name) }
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: panic: %v", what(), r)
				}
			}()
			fitted, err := task.Fit(t.Context(), s, table.Held(rows))
			if err != nil {
				if s.Call < 0 {
					t.Errorf("%s: %v", what(), err)
				}
				return
			}
			if wrong := usable(s, fitted.Model, nil, fitted.Train); wrong != nil {
				t.Errorf("%s: %v", what(), wrong)
			}
		})
	}
}
