package read

import (
	"bytes"
	"math"
	"strconv"
)

// exact are the powers of ten that a float64 holds exactly.
var exact = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// number reads a decimal number, with or without an exponent, or NaN or an infinity; spaces
// around it do not count. Point is what stands before its fraction. Digits that fit a float64 exactly, which most tables have, are read
// here, since they are most of the time of reading.
func number(text []byte, point byte) (float64, bool) {
	mantissa, digits, after, fraction := int64(0), 0, 0, false
	rest := text
	negative := len(rest) > 0 && rest[0] == '-'
	if negative {
		rest = rest[1:]
	}
	for _, c := range rest {
		switch {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + int64(c-'0')
			digits++
			if fraction {
				after++
			}
			if digits > 15 {
				return slowNumber(text, point)
			}
		case c == point && !fraction:
			fraction = true
		default:
			return slowNumber(text, point)
		}
	}
	if digits == 0 {
		return 0, false
	}
	v := float64(mantissa) / exact[after]
	if negative {
		v = -v
	}
	return v, true
}

func slowNumber(text []byte, point byte) (float64, bool) {
	text = bytes.TrimSpace(text)
	if point != '.' {
		if bytes.IndexByte(text, '.') >= 0 {
			return 0, false
		}
		text = bytes.Replace(text, []byte{point}, []byte{'.'}, 1)
	}
	if bytes.ContainsAny(text, "_xX") { // a Go literal is no number of a table
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && v == 0 { // out of range is an infinity
		return 0, false
	}
	return v, true
}

// maxExact is the size from which on a float64 does not tell all integers apart.
const maxExact = 1 << 53

// isLong says whether a text whose number is v is an integer that a float64 may not hold.
func isLong(text []byte, v float64) bool {
	return math.Abs(v) >= maxExact && len(bytes.Trim(text, "0123456789-+ ")) == 0
}
