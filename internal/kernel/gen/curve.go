package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Codes of comparisons that signal nothing.
const (
	less    = 17 // false for NaN
	notLess = 21 // true for NaN
)

// The constants of exp_go.go and activate_go.go.
const (
	log2E     = 1.44269504
	wholeStep = 3 << 22
	ln2High   = 0.693359375
	ln2Low    = -2.12194440e-4

	expMost       = 88.72283
	expLeast      = -87.336525
	expNegligible = -27.631021
	exponentPlace = 23

	tailRate  = 0.35
	tailMost  = 14
	rootTwoPi = 0.3989422804014327

	tanhSmall = 0.625
)

var (
	expTerms  = []float64{0.001381422160193324, 0.00836889911442995, 0.04166840389370918, 0.1666651964187622, 0.4999999403953552}
	tailTerms = []float64{
		0.046574223786592484, -0.1920234113931656, 0.22284914553165436, -0.00030709977727383375,
		0.14697407186031342, 0.13609834015369415, 0.13983482122421265,
	}
	tanhTerms = []float64{-0.005666936282068491, 0.020606141537427902, -0.05372999608516693, 0.13331331312656403, -0.33333277702331543}
)

// The methods below give new registers, but where they say so.

func (p part) product(a, b operand.Op) reg.VecVirtual {
	v := p.vector()
	p.VMULPS(a, b, v)
	return v
}

// minus is a-b.
func (p part) minus(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	v := p.vector()
	p.VSUBPS(b, a, v)
	return v
}

// polynomial of x, with the constant term last.
func (p part) polynomial(x reg.VecVirtual, terms []float64) reg.VecVirtual {
	v := p.product(p.constant(terms[0]), x)
	for i, term := range terms[1:] {
		if i > 0 {
			p.VMULPS(x, v, v)
		}
		p.VADDPS(p.constant(term), v, v)
	}
	return v
}

// exponential is exp(x), and 0 for x below least.
func (p part) exponential(x reg.VecVirtual, least float64) reg.VecVirtual {
	t := p.product(p.constant(log2E), x)
	p.VADDPS(p.constant(wholeStep), t, t)
	n := p.minus(t, p.constant(wholeStep))
	r := p.minus(x, p.product(p.constant(ln2High), n))
	p.VMULPS(p.constant(ln2Low), n, n)
	p.VSUBPS(n, r, r)
	v := p.polynomial(r, expTerms)
	p.VMULPS(p.product(r, r), v, v)
	p.VADDPS(r, v, v)
	p.VADDPS(p.constant(1), v, v)
	p.VPSLLD(operand.U8(exponentPlace), t, t)
	p.VPADDD(t, v, v)
	least32, infinity := p.constant(least), p.constant(math.Inf(1))
	if p.width == widthZ {
		inside, beyond := p.K(), p.K()
		p.VCMPPS(operand.U8(notLess), least32, x, inside)
		p.VMOVAPS_Z(v, inside, v)
		p.VCMPPS(operand.U8(notLessOrEqual), p.constant(expMost), x, beyond)
		p.VADDPS(infinity, x, beyond, v)
		return v
	}
	p.VCMPPS(operand.U8(notLess), least32, x, t)
	p.VANDPS(t, v, v)
	p.VCMPPS(operand.U8(notLessOrEqual), p.constant(expMost), x, t)
	p.VADDPS(infinity, x, n)
	p.VBLENDVPS(t, n, v, v)
	return v
}

// share is a/v, in place of v.
func (p part) share(a float64, v reg.VecVirtual) reg.VecVirtual {
	one := p.vector()
	p.VMOVUPS(p.constant(a), one)
	p.VDIVPS(v, one, v)
	return v
}

// logistic is 1/(1+exp(-x)).
func (p part) logistic(x reg.VecVirtual) reg.VecVirtual {
	minus := p.vector()
	p.VXORPS(p.word(signWord), x, minus)
	v := p.exponential(minus, expLeast)
	p.VADDPS(p.constant(1), v, v)
	return p.share(1, v)
}

// tail is |x|, bounded by most, exp(-x²/2) and the normal distribution beyond |x|.
func (p part) tail(x, most reg.VecVirtual) (size, density, beyond reg.VecVirtual) {
	size = p.vector()
	p.VANDPS(p.word(magnitudeBits), x, size)
	p.VMINPS(size, most, size) // keeps NaN
	square := p.product(size, size)
	p.VMULPS(p.constant(-0.5), square, square)
	density = p.exponential(square, expLeast)
	t := p.product(p.constant(tailRate), size)
	p.VADDPS(p.constant(1), t, t)
	p.share(1, t)
	beyond = p.polynomial(t, tailTerms)
	p.VMULPS(t, beyond, beyond)
	p.VMULPS(density, beyond, beyond)
	return size, density, beyond
}

// curve emits what gives dst from x, value by value.
func curve(of func(p part, x reg.VecVirtual) reg.VecVirtual) func(*routine) {
	return func(r *routine) {
		dst, from := r.stream("dst").next, r.stream("x").next
		r.walk().along("values", r.left, func(p part) { p.store(of(p, p.load(from)), dst) })
		r.close()
	}
}

// slope emits what multiplies grad by a function of x, value by value.
func slope(of func(p part, x reg.VecVirtual) reg.VecVirtual) func(*routine) {
	return func(r *routine) {
		grad, from := r.stream("grad").next, r.stream("x").next
		r.walk().along("values", r.left, func(p part) {
			v := of(p, p.load(from))
			p.VMULPS(p.load(grad), v, v)
			p.store(v, grad)
		})
		r.close()
	}
}

func exp(p part, x reg.VecVirtual) reg.VecVirtual { return p.exponential(x, expLeast) }

func gelu(r *routine) {
	most, zero := r.bits(math.Float32bits(tailMost)), r.zero()
	curve(func(p part, x reg.VecVirtual) reg.VecVirtual {
		size, _, beyond := p.tail(x, most)
		p.VMULPS(size, beyond, beyond)
		p.VMAXPS(x, zero, x) // keeps NaN
		p.VSUBPS(beyond, x, x)
		return x
	})(r)
}

func geluGradient(r *routine) {
	most := r.bits(math.Float32bits(tailMost))
	slope(func(p part, x reg.VecVirtual) reg.VecVirtual {
		size, density, below := p.tail(x, most)
		return p.slopeOfGELU(x, size, density, below)
	})(r)
}

// slopeOfGELU is the derivative at x, in place of what tail gave.
func (p part) slopeOfGELU(x, size, density, below reg.VecVirtual) reg.VecVirtual {
	p.VMULPS(p.constant(rootTwoPi), density, density)
	p.VMULPS(density, size, size)
	p.VSUBPS(size, below, below)
	one := p.vector()
	p.VMOVUPS(p.constant(1), one)
	above := p.minus(one, below)
	if p.width == widthZ {
		negative := p.K()
		p.VPMOVD2M(x, negative)
		p.VBLENDMPS(below, above, negative, above)
	} else {
		p.VBLENDVPS(x, below, above, above)
	}
	return above
}

// addRowsGELU has one tail give both the function and its derivative.
func addRowsGELU(r *routine) {
	x, to, row := r.stream("x").next, r.stream("slope").next, r.stream("row").next
	most, zero := r.bits(math.Float32bits(tailMost)), r.zero()
	w, length := r.walk(), r.GP64()
	r.Load(r.Param("row").Len(), length)
	r.Label("row")
	w.along("values", length, func(p part) {
		v := p.load(x)
		p.VADDPS(p.load(row), v, v)
		size, density, beyond := p.tail(v, most)
		above := p.vector()
		p.VMAXPS(v, zero, above) // keeps NaN
		p.VSUBPS(p.product(size, beyond), above, above)
		p.store(above, x)
		p.store(p.slopeOfGELU(v, size, density, beyond), to)
	})
	for _, next := range []reg.GPVirtual{x, to} {
		r.LEAQ(operand.Mem{Base: next, Index: length, Scale: floatSize}, next)
	}
	r.DECQ(r.number("rows"))
	r.JNZ(operand.LabelRef("row"))
	r.close()
}

func silu(p part, x reg.VecVirtual) reg.VecVirtual {
	v := p.logistic(x)
	p.VMULPS(v, x, v)
	return v
}

func siluGradient(p part, x reg.VecVirtual) reg.VecVirtual {
	s, one := p.logistic(x), p.vector()
	p.VMOVUPS(p.constant(1), one)
	v := p.minus(one, s)
	p.VMULPS(v, x, v)
	p.VADDPS(p.constant(1), v, v)
	p.VMULPS(v, s, v)
	return v
}

func sigmoid(p part, x reg.VecVirtual) reg.VecVirtual { return p.logistic(x) }

func sigmoidGradient(p part, out reg.VecVirtual) reg.VecVirtual {
	v := p.vector()
	p.VMOVUPS(p.constant(1), v)
	p.VSUBPS(out, v, v)
	p.VMULPS(v, out, v)
	return v
}

func tanhGradient(p part, out reg.VecVirtual) reg.VecVirtual {
	v, square := p.vector(), p.product(out, out)
	p.VMOVUPS(p.constant(1), v)
	p.VSUBPS(square, v, v)
	return v
}

func tanh(p part, x reg.VecVirtual) reg.VecVirtual {
	square := p.product(x, x)
	near := p.polynomial(square, tanhTerms)
	p.VMULPS(square, near, near)
	p.VMULPS(x, near, near)
	p.VADDPS(x, near, near)

	size, far := p.vector(), p.vector()
	p.VANDPS(p.word(magnitudeBits), x, size)
	p.VADDPS(size, size, far)
	far = p.exponential(far, expLeast)
	p.VADDPS(p.constant(1), far, far)
	p.share(2, far)
	one := p.vector()
	p.VMOVUPS(p.constant(1), one)
	p.VSUBPS(far, one, far)
	sign := p.vector()
	p.VANDPS(p.word(signWord), x, sign)
	p.VORPS(sign, far, far)
	if p.width == widthZ {
		small := p.K()
		p.VCMPPS(operand.U8(less), p.constant(tanhSmall), size, small)
		p.VBLENDMPS(near, far, small, far)
	} else {
		p.VCMPPS(operand.U8(less), p.constant(tanhSmall), size, size)
		p.VBLENDVPS(size, near, far, far)
	}
	return far
}
