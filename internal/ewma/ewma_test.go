package ewma

import "testing"

func TestMeanStartsAtItsFirstSample(t *testing.T) {
	var m Mean
	if m.Known() || m.Value() != 0 {
		t.Errorf("before any sample: %g", m.Value())
	}
	for _, c := range []struct{ sample, want float64 }{{8, 8}, {4, 7}, {7, 7}} {
		if m.Add(c.sample, 0.25); m.Value() != c.want || !m.Known() {
			t.Errorf("after %g: %g, want %g", c.sample, m.Value(), c.want)
		}
	}
}
