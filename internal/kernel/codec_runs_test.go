package kernel

import (
	"fmt"
	"math"
)

// codecRun is a call of one kernel of codecs on memory that all have: of the vectors
// a and b are read and d written to, of the codes half is read and full written to.
type codecRun struct {
	name  string
	block bool // takes no more than a block
	apply func(v codecVariant, m *memory) codecResult
}

// codecResult is what a kernel returns, as bits; every NaN is the same.
type codecResult [3]uint64

func word(x uint32) uint64 { return uint64(x) }

func single(x float32) uint64 {
	if x != x {
		return 1 << 63
	}
	return uint64(math.Float32bits(x))
}

func (r *codecRun) nothing(do func(v codecVariant, m *memory)) {
	r.apply = func(v codecVariant, m *memory) codecResult { do(v, m); return codecResult{} }
}

func codecRuns() []codecRun {
	elementwise := func(name string, do func(v codecVariant, m *memory)) codecRun {
		r := codecRun{name: name}
		r.nothing(do)
		return r
	}
	runs := []codecRun{
		elementwise("FP16Encode", func(v codecVariant, m *memory) { v.fp16Encode(m.full[:2*len(m.a)], m.a) }),
		{"FP16Finite", false, func(v codecVariant, m *memory) codecResult {
			if v.fp16Finite(m.half) {
				return codecResult{1}
			}
			return codecResult{}
		}},
	}
	return append(append(append(runs, latticeRuns()...), stepRuns()...), planeRuns()...)
}

func latticeRuns() []codecRun {
	const spacing = 0.01
	inverse := 1 / float32(spacing)
	runs := []codecRun{
		{"LatticeIndices", true, func(v codecVariant, m *memory) codecResult {
			sum, most := v.indices(m.full[:len(m.a)], m.a, inverse)
			return codecResult{word(sum), single(most)}
		}},
		{"LatticeValues in place", true, func(v codecVariant, m *memory) codecResult {
			return codecResult{word(v.values(m.d, m.half[:len(m.d)], nil, m.d, spacing, inverse, 6))}
		}},
	}
	high := codecRun{name: "LatticeHigh", block: true}
	high.nothing(func(v codecVariant, m *memory) { v.high(m.full[:len(m.a)], m.a, inverse) })
	runs = append(runs, high)
	for _, bits := range []int{4, 5, 6, 8, 9, 10, 12} {
		runs = append(runs, codecRun{fmt.Sprintf("LatticeValues of %d bits", bits), true, func(v codecVariant, m *memory) codecResult {
			n := len(m.a)
			return codecResult{word(v.values(m.d, m.half[:n], m.half[n:], m.a, spacing, inverse, bits))}
		}}, codecRun{fmt.Sprintf("LatticeDifference of %d bits", bits), true, func(v codecVariant, m *memory) codecResult {
			n := len(m.a)
			sum, peak, squares := v.difference(m.d, m.half[:n], m.half[n:], m.a, spacing, inverse, bits)
			return codecResult{word(sum), single(peak), single(squares)}
		}})
	}
	return runs
}

func stepRuns() []codecRun {
	signs := codecRun{name: "Signs", block: true}
	signs.nothing(func(v codecVariant, m *memory) { v.signs(m.full[:len(m.a)], m.a) })
	decode := codecRun{name: "StepsDecode", block: true}
	decode.nothing(func(v codecVariant, m *memory) { v.decode(m.d, m.half[:len(m.d)], m.factor) })
	add := codecRun{name: "StepsAdd", block: true}
	add.nothing(func(v codecVariant, m *memory) { v.add(m.d, m.half[:len(m.d)], m.factor) })
	return []codecRun{
		signs, decode, add,
		{"Steps", true, func(v codecVariant, m *memory) codecResult {
			return codecResult{word(v.steps(m.full[:len(m.b)], atMost(m.b, 127), 1))}
		}},
		{"Steps4", true, func(v codecVariant, m *memory) codecResult {
			return codecResult{word(v.steps4(m.full[:PackedSize(len(m.b), 4)], atMost(m.b, 7), 1))}
		}},
		{"SumAbs", true, func(v codecVariant, m *memory) codecResult {
			sum := v.sumAbs(m.a)
			if sum != sum {
				return codecResult{1}
			}
			return codecResult{math.Float64bits(sum)}
		}},
		{"StepSquares", true, func(v codecVariant, m *memory) codecResult {
			return codecResult{word(v.squares(m.half[:len(m.a)]))}
		}},
	}
}

// atMost brings values between -most and most, in place.
func atMost(x []float32, most float32) []float32 {
	for i, v := range x {
		if !(v >= -most && v <= most) {
			x[i] = most * float32(int16(math.Float32bits(v))) / (1 << 15)
		}
	}
	return x
}

func planeRuns() []codecRun {
	var runs []codecRun
	for bits := 1; bits <= 6; bits++ {
		pack := codecRun{name: fmt.Sprintf("PackBits of %d bits", bits), block: true}
		pack.nothing(func(v codecVariant, m *memory) {
			v.packBits(m.full[:PackedSize(len(m.a), bits)], m.half[:len(m.a)], bits)
		})
		unpack := codecRun{name: fmt.Sprintf("UnpackBits of %d bits", bits), block: true}
		unpack.nothing(func(v codecVariant, m *memory) {
			v.unpackBits(m.full[:len(m.a)], m.half[:PackedSize(len(m.a), bits)], bits)
		})
		runs = append(runs, pack, unpack)
		if bits == 1 || bits == 3 || bits == 4 {
			steps := codecRun{name: fmt.Sprintf("UnpackSteps of %d bits", bits), block: true}
			steps.nothing(func(v codecVariant, m *memory) {
				v.unpackSteps(m.full[:len(m.a)], m.half[:PackedSize(len(m.a), bits)], bits)
			})
			runs = append(runs, steps)
		}
	}
	return runs
}
