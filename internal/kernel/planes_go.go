package kernel

func packBitsGo(code, values []byte, bits int) {
	at := 0
	for width := 4; width > 0; width /= 2 {
		if bits&width == 0 {
			continue
		}
		plane := code[:PackedSize(len(values), width)]
		clear(plane)
		rest := values
		for k := 0; len(rest) > 0; k += width {
			n := min(len(plane), len(rest))
			for j, v := range rest[:n] {
				plane[j] |= v >> at & (1<<width - 1) << k
			}
			rest = rest[n:]
		}
		code, at = code[len(plane):], at+width
	}
}

func unpackBitsGo(values, code []byte, bits int) {
	clear(values)
	at := 0
	for width := 4; width > 0; width /= 2 {
		if bits&width == 0 {
			continue
		}
		plane := code[:PackedSize(len(values), width)]
		rest := values
		for k := 0; len(rest) > 0; k += width {
			n := min(len(plane), len(rest))
			for j, v := range plane[:n] {
				rest[j] |= v >> k & (1<<width - 1) << at
			}
			rest = rest[n:]
		}
		code, at = code[len(plane):], at+width
	}
}

func unpackStepsGo(values, code []byte, bits int) {
	unpackBitsGo(values, code, bits)
	if bits == 1 {
		for i, v := range values {
			values[i] = 1 - 2*v
		}
		return
	}
	sign := byte(1) << (bits - 1)
	for i, v := range values {
		values[i] = v ^ sign - sign
	}
}
