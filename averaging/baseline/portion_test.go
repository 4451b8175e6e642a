package baseline

import "testing"

// TestEighthsOfLongParts: also where an int has 32 bits, an eighth of a part of a long model is ready when its values are.
func TestEighthsOfLongParts(t *testing.T) {
	s := portion{length: 1 << 26, part: 7, parts: 8}
	for i := range eighths {
		begin := s.length/64*(7*eighths) + s.length/64*i
		if got, want := s.from(begin), all<<i; got != want {
			t.Errorf("from value %d: %08b, want %08b", begin, got, want)
		}
	}
	if got := s.from(0); got != all {
		t.Errorf("of a whole gradient %08b is ready", got)
	}
}
