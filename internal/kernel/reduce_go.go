package kernel

import "math"

const (
	magnitudeBits = 0x7fffffff // all of a float32 but its sign
	exponentStep  = 0x00800000 // one in the exponent's lowest bit
	signBit       = 0x80000000
)

// sumSquaresGo keeps four sums, because one alone would wait for each addition's
// latency.
func sumSquaresGo(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		a := (*[4]float32)(x)
		s0 += float64(float64(a[0]) * float64(a[0]))
		s1 += float64(float64(a[1]) * float64(a[1]))
		s2 += float64(float64(a[2]) * float64(a[2]))
		s3 += float64(float64(a[3]) * float64(a[3]))
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(float64(v) * float64(v))
	}
	return (s0 + s1) + (s2 + s3)
}

func squaredDistanceGo(x, y []float32) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		a, b := (*[4]float32)(x), (*[4]float32)(y)
		d0 := float64(a[0]) - float64(b[0])
		d1 := float64(a[1]) - float64(b[1])
		d2 := float64(a[2]) - float64(b[2])
		d3 := float64(a[3]) - float64(b[3])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		d := float64(v) - float64(y[i])
		s0 += float64(d * d)
	}
	return (s0 + s1) + (s2 + s3)
}

func scaledDistanceGo(dst []float32, w float32, x, y []float32) float64 {
	x, y = x[:len(dst)], y[:len(dst)]
	var s0, s1, s2, s3 float64
	for len(dst) >= 4 {
		to, a, b := (*[4]float32)(dst), (*[4]float32)(x), (*[4]float32)(y)
		d0, d1, d2, d3 := a[0]-b[0], a[1]-b[1], a[2]-b[2], a[3]-b[3]
		s0 += float64(float64(d0) * float64(d0))
		s1 += float64(float64(d1) * float64(d1))
		s2 += float64(float64(d2) * float64(d2))
		s3 += float64(float64(d3) * float64(d3))
		to[0], to[1], to[2], to[3] = w*d0, w*d1, w*d2, w*d3
		dst, x, y = dst[4:], x[4:], y[4:]
	}
	for i, v := range x {
		d := v - y[i]
		s0 += float64(float64(d) * float64(d))
		dst[i] = w * d
	}
	return (s0 + s1) + (s2 + s3)
}

// maxAbsGo compares magnitudes as integers: IEEE 754 orders them alike, with
// every NaN above infinity.
func maxAbsGo(x []float32) float32 {
	var m0, m1, m2, m3 uint32
	for len(x) >= 4 {
		a := (*[4]float32)(x)
		m0 = max(m0, math.Float32bits(a[0])&magnitudeBits)
		m1 = max(m1, math.Float32bits(a[1])&magnitudeBits)
		m2 = max(m2, math.Float32bits(a[2])&magnitudeBits)
		m3 = max(m3, math.Float32bits(a[3])&magnitudeBits)
		x = x[4:]
	}
	for _, v := range x {
		m0 = max(m0, math.Float32bits(v)&magnitudeBits)
	}
	return math.Float32frombits(max(m0, m1, m2, m3))
}

// finiteGo adds one to each exponent: only the exponent of all ones, which NaN
// and infinity have, carries into the sign.
func finiteGo(x []float32) bool {
	var carry uint32
	for len(x) >= 4 {
		a := (*[4]float32)(x)
		carry |= math.Float32bits(a[0])&magnitudeBits + exponentStep
		carry |= math.Float32bits(a[1])&magnitudeBits + exponentStep
		carry |= math.Float32bits(a[2])&magnitudeBits + exponentStep
		carry |= math.Float32bits(a[3])&magnitudeBits + exponentStep
		x = x[4:]
	}
	for _, v := range x {
		carry |= math.Float32bits(v)&magnitudeBits + exponentStep
	}
	return carry&signBit == 0
}
