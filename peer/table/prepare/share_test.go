package prepare

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

func TestDistinctRowsOfAFlock(t *testing.T) {
	b := batch(numbers("x", 1, 1, 2, 3, 2, 1), texts("c", "a", "a", "b", "b", "b", "z"))
	parts := split(b, 2, func(row int) int { return row / 3 })
	left := make([]int, 2)
	table.Together(2, func(m table.Flock, i int) {
		keep, dropped, err := Distinct(t.Context(), table.Scope(m, "d"), table.InMemory(parts[i]))
		if err != nil {
			t.Error(err)
			return
		}
		for b, err := range table.Filtered(table.InMemory(parts[i]), keep)(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			left[i] += b.Rows
		}
		if dropped != 1 {
			t.Errorf("member %d drops %d", i, dropped)
		}
	})
	if !slices.Equal(left, []int{2, 2}) {
		t.Errorf("rows left: %v", left)
	}
}

// TestSharedRowsAreOfAll shows that each member ends with as many rows, of all members'.
func TestSharedRowsAreOfAll(t *testing.T) {
	table.Together(3, func(m table.Flock, i int) {
		x := make([]float64, 300)
		for row := range x {
			x[row] = float64(i)
		}
		got, err := Share(t.Context(), table.Scope(m, "s"), batch(numbers("x", x...), numbers("y", x...)), Sharing{Bytes: 1000, Seed: 1})
		if err != nil {
			t.Error(err)
			return
		}
		counts := make([]int, 3)
		for row, v := range got.Columns[0].Numbers {
			counts[int(v)]++
			if got.Columns[1].Numbers[row] != v {
				t.Errorf("row %d is torn", row)
			}
		}
		if got.Rows != 300 || slices.Min(counts) < 60 {
			t.Errorf("member %d has %d rows, %v of each", i, got.Rows, counts)
		}
	})
}

// TestOnlyAsManyRowsMoveAsAreWanted shows that what members bring together is what they end with.
func TestOnlyAsManyRowsMoveAsAreWanted(t *testing.T) {
	table.Together(4, func(m table.Flock, i int) {
		x := make([]float64, 100*i)
		for row := range x {
			x[row] = float64(1000*i + row)
		}
		w := &weighing{Flock: m}
		got, err := Share(t.Context(), table.Scope(w, "s"), batch(numbers("x", x...)), Sharing{Rows: 15, Bytes: 80})
		if err != nil || got.Rows != 15 {
			t.Errorf("member %d: %+v, %v", i, got, err)
			return
		}
		if want := 8 * 10 * i; w.most > 80 || w.sent != want { // a tenth of the rows
			t.Errorf("member %d brings %d bytes, %d at once, want %d", i, w.sent, w.most, want)
		}
	})
}

// weighing is a member that counts the bytes of rows that it brings.
type weighing struct {
	table.Flock
	sent, most int
}

func (w *weighing) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	if !strings.HasSuffix(name, "/columns") {
		w.sent, w.most = w.sent+len(data), max(w.most, len(data))
	}
	return w.Flock.Gather(ctx, name, data)
}
