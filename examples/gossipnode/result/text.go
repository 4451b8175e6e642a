package result

import "math"

// TextFigures are the figures of a model that has learned a text; left out for other models.
type TextFigures struct {
	// BitsPerByte is the cross entropy, in bits, of each next byte of the held-out text.
	BitsPerByte *Accuracy `json:"test_bits_per_byte,omitempty"`
	// Tokens is the number of bytes learned from, by all peers together.
	Tokens uint64 `json:"tokens,omitempty"`
}

// TextOf makes the figures of several peers from their losses on the held-out text, in nats per byte.
func TextOf(tokens uint64, losses ...float64) TextFigures {
	bits := make([]float64, len(losses))
	for i, loss := range losses {
		bits[i] = loss / math.Ln2
	}
	all := AccuracyOf(bits...)
	return TextFigures{BitsPerByte: &all, Tokens: tokens}
}
