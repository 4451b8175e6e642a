package kernel

func packGo(code, values []byte, width, at int) {
	mask := byte(1)<<width - 1
	clear(code)
	for k := 0; len(values) > 0; k += width {
		n := min(len(code), len(values))
		for j, v := range values[:n] {
			code[j] |= v >> at & mask << k
		}
		values = values[n:]
	}
}

func unpackGo(values, code []byte, width, at int, flip, minus byte) {
	mask := byte(1)<<width - 1
	for k := 0; len(values) > 0; k += width {
		n := min(len(code), len(values))
		for j, v := range code[:n] {
			values[j] = (values[j] | v>>k&mask<<at) ^ flip - minus
		}
		values = values[n:]
	}
}
