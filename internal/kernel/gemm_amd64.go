//go:build !purego

package kernel

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

// masks has the mask of n values from element 8-n on.
var masks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

func multiplyPanel(t Tiler, p *GemmPanel, columns int) {
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

func transposePanel(dst *float32, dstStep int, src *float32, srcStep, rows, depth int) {
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
