//go:build !purego

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestTilersMultiply goes through every number of rows up to two tiles and more,
// every number of columns of a panel, and depths around the unrolled loop's, with
// B where it is and packed, and compares bits: a sum in the order of the depth of
// products that are not rounded has one result.
func TestTilersMultiply(t *testing.T) {
	for _, tiler := range Tilers() {
		wide, narrow := tiler.Columns()
		for rows := 1; rows <= 27; rows++ {
			for columns := 1; columns <= wide; columns++ {
				random := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
				for _, depth := range []int{1, 3, 4, 9} {
					width := wide
					if columns <= narrow {
						width = narrow
					}
					if err := tilerProduct(tiler, random, rows, columns, width, depth); err != nil {
						t.Fatalf("%s: %d rows, %d columns, depth %d: %v", tiler, rows, columns, depth, err)
					}
				}
			}
		}
	}
}

// tilerProduct compares a product that packs its panel, and one with the panel
// that is packed then.
func tilerProduct(tiler Tiler, random *rand.Rand, rows, columns, width, depth int) error {
	draw := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
		return v
	}
	a, b, room := draw(rows*depth), draw(depth*columns), make([]float32, depth*width)
	p := GemmPanel{
		A: &a[0], RowStep: 4 * depth, DepthStep: 4, B: &b[0], BStep: 4 * columns, Room: &room[0], Pack: 1,
		CStep: 4 * columns, Rows: rows, Depth: depth, Alpha: float32(random.IntN(3)) / 2, Beta: float32(random.IntN(3)),
	}
	p.Next = p.Room
	for range 2 {
		c := draw(rows * columns)
		want := append([]float32(nil), c...)
		p.C = &c[0]
		tiler.Multiply(&p, columns)
		if p.Pack != 0 {
			return fmt.Errorf("the panel still counts as not packed")
		}
		for i := range rows {
			for j := range columns {
				sum, at := float32(0), i*columns+j
				for l := range depth {
					sum = fused(a[i*depth+l], b[l*columns+j], sum)
				}
				w := p.Alpha * sum
				if p.Beta != 0 {
					w = fused(p.Alpha, sum, p.Beta*want[at])
				}
				if c[at] != w {
					return fmt.Errorf("element (%d, %d) is %v, want %v", i, j, c[at], w)
				}
			}
		}
	}
	return nil
}

// fused is x*y+z, rounded once. The product is exact in float64; of its sum with z,
// which is not, rounding to odd keeps what the last rounding has to know.
func fused(x, y, z float32) float32 {
	product := float64(x) * float64(y)
	sum := product + float64(z)
	v := sum - product
	rest := (product - (sum - v)) + (float64(z) - v)
	if bits := math.Float64bits(sum); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}

// TestTilersTranspose has guards around what is to be filled.
func TestTilersTranspose(t *testing.T) {
	for _, tiler := range Tilers() {
		for rows := 1; rows <= 8; rows++ {
			for depth := 1; depth <= 20; depth++ {
				const step, eight = 11, 8 // rows of more than the step overlap
				src := values(rand.New(rand.NewPCG(uint64(rows), uint64(depth))), (rows-1)*step+depth)
				dst, check := guarded(t, make([]float32, (depth-1)*step+eight))
				tiler.Transpose(&dst[0], 4*step, &src[0], 4*step, rows, depth)
				check()
				for l := range depth {
					for i := range eight {
						got, want := dst[l*step+i], src[min(i, rows-1)*step+l]
						if math.Float32bits(got) != math.Float32bits(want) {
							t.Fatalf("%s: %d rows, depth %d: value (%d, %d) is %v, want %v", tiler, rows, depth, l, i, got, want)
						}
					}
				}
			}
		}
	}
}
