package kernel

func maxPoolGo(dst, x []float32, g grid) { maxPoolPlacesGo(dst, nil, x, g) }

func maxPoolPlacesGo(dst []float32, places []byte, x []float32, g grid) {
	at, line := 0, g.line/floatBytes
	for range g.rows {
		for range g.cols {
			n := g.channels
			second, third, fourth := x[at+n:][:n], x[at+line:][:n], x[at+line+n:][:n]
			for c, best := range x[at : at+n] {
				place := byte(0)
				if v := second[c]; v > best {
					best, place = v, 1
				}
				if v := third[c]; v > best {
					best, place = v, 2
				}
				if v := fourth[c]; v > best {
					best, place = v, 3
				}
				dst[c] = best
				if places != nil {
					places[c] = place
				}
			}
			if dst = dst[n:]; places != nil {
				places = places[n:]
			}
			at += 2 * n
		}
		at += g.xNext / floatBytes
	}
}

func maxPoolGradientGo(dst []float32, places []byte, x []float32, g grid) {
	at, line := 0, g.line/floatBytes
	for range g.rows {
		for range g.cols {
			n := g.channels
			offsets := [4]int{0, n, line, line + n}
			for c, v := range x[:n] {
				for place, offset := range offsets {
					to := &dst[at+offset+c]
					if *to = 0; int(places[c]) == place {
						*to = v
					}
				}
			}
			x, places = x[n:], places[n:]
			at += 2 * n
		}
		at += g.xNext / floatBytes
	}
}
