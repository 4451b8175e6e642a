package prepare

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/flocktest"
	"github.com/seed-97356399/murmuration/peer/table"
)

func TestDistinctRowsOfAFlock(t *testing.T) {
	b := batch(numbers("x", 1, 1, 2, 3, 2, 1), texts("c", "a", "a", "b", "b", "b", "z"))
	parts := split(b, 2, func(row int) int { return row / 3 })
	left := make([]int, 2)
	flocktest.Run(2, func(m flocktest.Member, i int) {
		keep, dropped, err := Distinct(t.Context(), m, "d", table.InMemory(parts[i]))
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

// TestSamplingEvensOut shows that members who have other shares of a group draw it alike.
func TestSamplingEvensOut(t *testing.T) {
	flocktest.Run(2, func(m flocktest.Member, i int) {
		var groups []string
		for row := range 1000 {
			if row < 100+700*i {
				groups = append(groups, "a")
			} else {
				groups = append(groups, "b")
			}
		}
		s, err := NewSampler(t.Context(), m, "s", groups)
		if err != nil {
			t.Error(err)
			return
		}
		of := 0
		for _, row := range s.Draw(nil, rand.New(rand.NewPCG(1, uint64(i))), 10000) {
			if groups[row] == "a" {
				of++
			}
		}
		if of < 4300 || of > 4700 { // 900 of 2000 rows
			t.Errorf("member %d draws a %d times of 10000", i, of)
		}
	})
}

// TestSharedRowsAreOfAll shows that each member ends with as many rows, of all members'.
func TestSharedRowsAreOfAll(t *testing.T) {
	flocktest.Run(3, func(m flocktest.Member, i int) {
		x := make([]float64, 300)
		for row := range x {
			x[row] = float64(i)
		}
		got, err := Share(t.Context(), m, "s", batch(numbers("x", x...), numbers("y", x...)), Sharing{Bytes: 1000, Seed: 1})
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
