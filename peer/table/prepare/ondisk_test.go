package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// failing is a table that can be read so many times.
type failing struct {
	table.Table
	passes int
	read   *int
}

var errGone = errors.New("the file is gone")

func (f failing) Rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	if *f.read++; f.passes > 0 && *f.read > f.passes {
		return func(yield func(*table.Batch, error) bool) { yield(nil, errGone) }
	}
	return f.Table.Rows(ctx)
}

// Rows that stay on disk are prepared as those in memory, and are read for each pass; a member whose file is gone before
// one of them tells the others.
func TestPlanOnDisk(t *testing.T) {
	held, passes := usualPlan(), 0
	disk := held
	disk.OnDisk = true
	disk.Memory = 1 // which the rows do not need
	want, _, err := held.Prepare(t.Context(), table.Alone{}, table.Held(people()))
	if err != nil {
		t.Fatal(err)
	}
	got, own, err := disk.Prepare(t.Context(), table.Alone{}, failing{table.Held(people()), 0, &passes})
	if err != nil || passes < 3 {
		t.Fatalf("%d passes, %v", passes, err)
	}
	a, _ := json.Marshal(want)
	if b, _ := json.Marshal(got); string(a) != string(b) {
		t.Errorf("%s\n%s", a, b)
	}
	if before := passes; len(collectAll(t, own)) == 0 || passes != before+1 {
		t.Errorf("%d passes after %d", passes, before)
	}
	parts := split(people(), 2, func(row int) int { return row % 2 })
	for after := 1; after < passes-1; after++ {
		var errs [2]error
		table.Together(2, func(flock table.Flock, i int) {
			read, p := 0, held
			var mine table.Table = table.Held(parts[i])
			if i == 1 {
				p, mine = disk, failing{mine, after, &read}
			}
			_, _, errs[i] = p.Prepare(t.Context(), flock, mine)
		})
		if !errors.Is(errs[0], table.ErrMember) || !errors.Is(errs[1], errGone) {
			t.Errorf("gone after %d passes: %v", after, errs)
		}
	}
}

func collectAll(t *testing.T, rows table.Source) (all []*table.Batch) {
	for b, err := range rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}
