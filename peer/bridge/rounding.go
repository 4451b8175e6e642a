package bridge

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// rounding rounds values that are handed over to the types to which the trainer converts
// them, so that the conversion is exact. The rounding errors stay in the replica: since
// the base is rounded too, a commit adds only the trainer's own steps.
type rounding struct {
	ranges []roundedRange
	code   []byte
}

type roundedRange struct {
	offset, length int
	half           bool // IEEE half precision, else bfloat16
}

// roundedAtOnce is how many values are rounded at a time.
const roundedAtOnce = 4096

func roundingOf(layout *tensor.Layout, types []dtype) (r rounding) {
	for i, t := range types {
		if t != float32Type {
			one := layout.At(i)
			r.ranges = append(r.ranges, roundedRange{one.Offset, one.Len, t == float16Type})
		}
	}
	if len(r.ranges) > 0 {
		r.code = make([]byte, 2*roundedAtOnce)
	}
	return r
}

// round rounds a whole vector's ranges, and copies them into other. A value beyond the
// type's range becomes the largest of the type.
func (r rounding) round(v, other tensor.Vector) {
	for _, one := range r.ranges {
		end := one.offset + one.length
		for at := one.offset; at < end; at += roundedAtOnce {
			piece := v[at:min(at+roundedAtOnce, end)]
			one.round(piece, r.code)
			copy(other[at:], piece)
		}
	}
}

const (
	largestHalf     = 65504
	largestBfloat16 = 0x1.fep127
)

func (o roundedRange) round(v tensor.Vector, code []byte) {
	code = code[:2*len(v)]
	largest := largestBfloat16
	if o.half {
		largest = largestHalf
		kernel.FP16Encode(code, v)
		kernel.FP16Decode(v, code)
	} else {
		kernel.BF16Encode(code, v)
		kernel.BF16Decode(v, code)
	}
	if tensor.Finite(v) {
		return
	}
	for i, x := range v {
		if math.IsInf(float64(x), 0) {
			v[i] = float32(math.Copysign(largest, float64(x)))
		}
	}
}
