package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// cellCase is a table of rows, some of which are added.
func cellCase(seed uint64, rows, stride, chosen int) (bins []uint32, list []int32, add []Cell) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range rows * stride {
		bins = append(bins, rng.Uint32()>>rng.IntN(9)) // crowded bins too
	}
	for range chosen {
		list = append(list, int32(rng.IntN(rows)))
		add = append(add, Cell{G: rng.Int64() - rng.Int64(), HN: rng.Uint64()})
	}
	return bins, list, add
}

func fourLanes(h *[4][256]Cell) *[4]*[256]Cell { return &[4]*[256]Cell{&h[0], &h[1], &h[2], &h[3]} }

func TestCellsAddUp(t *testing.T) {
	for seed, chosen := range []int{0, 1, 2, 3, 100, 1024, 70_000} {
		for stride := 1; stride < 4; stride++ {
			bins, rows, add := cellCase(uint64(seed), 3000, stride, chosen)
			bins = bins[stride-1:] // the last of each row
			var want, got, plain [4][256]Cell
			for i, row := range rows {
				for lane := range want {
					cell := &want[lane][byte(bins[int(row)*stride]>>(8*lane))]
					cell.G += add[i].G
					cell.HN += add[i].HN
				}
			}
			AddCells(fourLanes(&got), bins, stride, rows, append(add, Cell{G: 1}))
			addCellsGo(fourLanes(&plain), bins, stride, rows, add)
			if got != want || plain != want {
				t.Errorf("%d rows of %d numbers: the sums differ from the plain loop's", chosen, stride)
			}
		}
	}
}

func TestCellsOfRowsThatAreNotThere(t *testing.T) {
	for _, row := range []int32{3, -1, 1 << 30} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("row %d of 3 is added", row)
				}
			}()
			var h [4][256]Cell
			AddCells(fourLanes(&h), make([]uint32, 6), 2, []int32{0, row, 1}, make([]Cell, 3))
		}()
	}
}

func BenchmarkCells(b *testing.B) {
	bins, rows, add := cellCase(1, 1<<13, 1, 1024)
	slices.Sort(rows) // as those of a tree's node
	for name, do := range map[string]func(*[4]*[256]Cell, []uint32, int, []int32, []Cell){"best": AddCells, "go": addCellsGo} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var h [4][256]Cell
			for to := fourLanes(&h); b.Loop(); {
				do(to, bins, 1, rows, add)
			}
		})
	}
}
