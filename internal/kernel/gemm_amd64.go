//go:build !purego

package kernel

// Columns of panels, which are those of two registers and of one.
const (
	wideAVX2     = 16
	narrowAVX2   = 8
	wideAVX512   = maxTileColumns
	narrowAVX512 = 16
)

// Tilers returns those that this CPU has, the best one last.
func Tilers() []Tiler {
	var list []Tiler
	for l := levelAVX2; l <= level; l++ {
		list = append(list, Tiler(l))
	}
	return list
}

// BestTiler returns the best that this CPU has, or the zero Tiler.
func BestTiler() Tiler { return Tiler(level) }

// String names the instructions.
func (t Tiler) String() string {
	return [...]string{levelGo: "none", levelAVX2: "avx2", levelAVX512: "avx512"}[t]
}

// Columns returns how many columns the panels of the two microkernels have.
func (t Tiler) Columns() (wide, narrow int) {
	if cpuLevel(t) == levelAVX512 {
		return wideAVX512, narrowAVX512
	}
	return wideAVX2, narrowAVX2
}

// masks has the mask of n values from element 8-n on.
var masks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// Multiply computes a panel of so many columns: with the narrow microkernel if
// they fit, or else with the wide one, whose columns they must fit. Nothing
// outside of A, of B's rows and of C's is read or written but Room.
func (t Tiler) Multiply(p *GemmPanel, columns int) {
	_, narrow := t.Columns()
	short := columns <= narrow
	last := columns
	if !short {
		last = columns - narrow
	}
	p.Masked, p.Bits = 0, uint32(1)<<last-1
	if last < narrow {
		p.Masked = 1
	}
	switch {
	case cpuLevel(t) == levelAVX512 && short:
		gemmNarrowAVX512(p)
	case cpuLevel(t) == levelAVX512:
		gemmWideAVX512(p)
	case short:
		p.Mask = (*[8]int32)(masks[narrow-last:])
		gemmNarrowAVX2(p)
	default:
		p.Mask = (*[8]int32)(masks[narrow-last:])
		gemmWideAVX2(p)
	}
}

// Transpose writes rows of src, at most 8 of depth values each, as columns of dst,
// of which it fills 8. Steps are in bytes, from a row to the next.
func (Tiler) Transpose(dst *float32, dstStep int, src *float32, srcStep, rows, depth int) {
	gemmTransposeAVX2(dst, dstStep, src, srcStep, rows, depth)
}

// peakPiece is how many iterations one call of assembly makes: it cannot be
// interrupted, and this is a tenth of a millisecond.
const peakPiece = 1 << 15

func multiplyAddPeak(iterations int) float64 {
	const (
		each       = 2  // operations
		sumsAVX2   = 12 // accumulators
		sumsAVX512 = 24
	)
	sums := 0
	for left := iterations; left > 0; left -= peakPiece {
		switch n := min(left, peakPiece); level {
		case levelAVX512:
			multiplyAddPeakAVX512(n)
			sums = sumsAVX512 * 16
		case levelAVX2:
			multiplyAddPeakAVX2(n)
			sums = sumsAVX2 * 8
		default:
			return multiplyAddPeakGo(iterations)
		}
	}
	return each * float64(sums) * float64(iterations)
}
