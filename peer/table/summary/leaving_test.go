package summary

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// leaving dies at some call.
type leaving struct {
	table.Flock
	calls *int
}

var errLeft = errors.New("it has left")

func (l leaving) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	if *l.calls--; *l.calls < 0 {
		return nil, 0, errLeft
	}
	return l.Flock.Sum(ctx, name, vector)
}

// Of a member that dies the others tell nothing: what they are told is of their own rows alone.
func TestAMemberThatDies(t *testing.T) {
	rows := apart(drawn(600, 5), 3, func(row int) int { return row % 3 })
	want, err := together(t, Config{Target: "z"}, rows[:2]...)
	if err != nil {
		t.Fatal(err)
	}
	for calls := range 12 {
		table.Together(3, func(flock table.Flock, i int) {
			if i == 2 {
				flock = leaving{flock, &calls}
			}
			got, err := Config{Target: "z"}.Describe(t.Context(), flock, rows[i])
			switch {
			case i == 2 && err == nil: // it has got to the end
			case i == 2:
				if !errors.Is(err, errLeft) {
					t.Error(err)
				}
			case err != nil:
				t.Error(err)
			case got.Members == 2:
				same(t, got, want)
			case got.Members != 3:
				t.Errorf("%d members", got.Members)
			}
		})
	}
}
