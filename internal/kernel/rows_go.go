package kernel

func addRowsGo(x, row []float32, rows int) {
	for range rows {
		addGo(x[:len(row)], row)
		x = x[len(row):]
	}
}

func addRowsRectifyGo(x, row []float32, rows int) {
	addRowsGo(x, row, rows)
	rectifyGo(x[:rows*len(row)])
}

func scaleRowsGo(dst, x, scale, shift []float32, rows int) {
	shift = shift[:len(scale)]
	for range rows {
		to, from := dst[:len(scale)], x[:len(scale)]
		for c, a := range scale {
			to[c] = float32(from[c]*a) + shift[c]
		}
		dst, x = dst[len(scale):], x[len(scale):]
	}
}

func scaleRowsRectifyGo(dst, x, scale, shift []float32, rows int) {
	scaleRowsGo(dst, x, scale, shift, rows)
	rectifyGo(dst[:rows*len(scale)])
}

func combineRowsGo(dst, x, y, a, b, shift []float32, rows int) {
	n := len(shift)
	a, b = a[:n], b[:n]
	for range rows {
		to, p, q := dst[:n], x[:n], y[:n]
		for c, s := range shift {
			to[c] = float32(p[c]*a[c]) + float32(q[c]*b[c]) + s
		}
		dst, x, y = dst[n:], x[n:], y[n:]
	}
}

func sumRowsGo(sum, x []float32, rows int) {
	n := len(sum)
	for ; n >= 4; n -= 4 { // in registers: there is no room for float64 sums
		var s0, s1, s2, s3 float64
		c := len(sum) - n
		for i := range rows {
			v := (*[4]float32)(x[i*len(sum)+c:])
			s0, s1, s2, s3 = s0+float64(v[0]), s1+float64(v[1]), s2+float64(v[2]), s3+float64(v[3])
		}
		to := (*[4]float32)(sum[c:])
		to[0], to[1], to[2], to[3] = to[0]+float32(s0), to[1]+float32(s1), to[2]+float32(s2), to[3]+float32(s3)
	}
	for c := len(sum) - n; c < len(sum); c++ {
		s := 0.0
		for i := range rows {
			s += float64(x[i*len(sum)+c])
		}
		sum[c] += float32(s)
	}
}

func sumSquareRowsGo(sum, product []float64, x []float32, rows int) {
	sumProductRowsGo(sum, product, x, x, rows)
}

func sumProductRowsGo(sum, product []float64, x, y []float32, rows int) {
	n := len(sum)
	product = product[:n]
	for range rows {
		p, q := x[:n], y[:n]
		for c, v := range p {
			sum[c] += float64(v)
			product[c] += float64(float64(v) * float64(q[c]))
		}
		x, y = x[n:], y[n:]
	}
}
