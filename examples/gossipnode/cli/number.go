package cli

import (
	"encoding/json"
	"math"
)

// Number is a float that may be unknown: NaN in the program, null in JSON.
type Number float64

// MarshalJSON writes null for a number that JSON cannot write.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Mean is the mean of the known numbers.
type Mean struct {
	sum   float64
	known int
}

// Add adds a number, if it is known.
func (m *Mean) Add(n Number) {
	if !math.IsNaN(float64(n)) {
		m.sum += float64(n)
		m.known++
	}
}

// Value is NaN if no number was known.
func (m *Mean) Value() Number { return Number(m.sum / float64(m.known)) }
