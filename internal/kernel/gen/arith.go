package main

// unroll is how many vectors the wide loop of an elementwise kernel takes at a
// time: enough that the counting costs nothing.
const unroll = 4

func add(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, dst := l.load("x"), l.load("dst")
		l.VADDPS(x, dst, dst)
		l.store(dst, "dst")
	})
}

func sub(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, dst := l.load("x"), l.load("dst")
		l.VSUBPS(x, dst, dst)
		l.store(dst, "dst")
	})
}

func mul(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, dst := l.load("x"), l.load("dst")
		l.VMULPS(x, dst, dst)
		l.store(dst, "dst")
	})
}

func axpy(r *routine) {
	a := r.argument("a")
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, dst := l.load("x"), l.load("dst")
		l.VMULPS(l.see(a, floatSize), x, x)
		l.VADDPS(x, dst, dst)
		l.store(dst, "dst")
	})
}

func scale(r *routine) {
	a := r.argument("a")
	r.each("dst", r.floats(), unroll, func(l lane) {
		dst := l.load("dst")
		l.VMULPS(l.see(a, floatSize), dst, dst)
		l.store(dst, "dst")
	})
}

func scaledDifference(r *routine) {
	w := r.argument("w")
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, y := l.load("x"), l.load("y")
		l.VSUBPS(y, x, x)
		l.VMULPS(l.see(w, floatSize), x, x)
		l.store(x, "dst")
	})
}
