package read

import (
	"bytes"
	"math"
	"strconv"
)

// exact are the powers of ten that a float64 holds exactly.
var exact = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// number reads a decimal number, with or without an exponent, or NaN or an infinity, and ignores spaces around it.
// point is the decimal point. It converts digits that fit a float64 exactly, which most tables have, without strconv,
// since reading spends most of its time on them.
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
	if bytes.ContainsAny(text, "_xX") { // Go's notation for literals is not allowed
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && v == 0 { // out of range gives an infinity
		return 0, false
	}
	return v, true
}

// maxExact is the size above which a float64 cannot represent every integer.
const maxExact = 1 << 53

// isLong tells whether text, a number of value v, is an integer that a float64 may not represent.
func isLong(text []byte, v float64) bool {
	return math.Abs(v) >= maxExact && len(bytes.Trim(text, "0123456789-+ ")) == 0
}
