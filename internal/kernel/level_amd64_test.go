//go:build !purego

package kernel

import "testing"

func TestBestLevel(t *testing.T) {
	for _, c := range []struct {
		avx2, avx512 bool
		want         cpuLevel
	}{
		{false, false, levelGo},
		{false, true, levelGo},
		{true, false, levelAVX2},
		{true, true, levelAVX512},
	} {
		if got := bestLevel(c.avx2, c.avx512); got != c.want {
			t.Errorf("bestLevel(%v, %v) is %v, want %v", c.avx2, c.avx512, got, c.want)
		}
	}
	t.Logf("this CPU's instructions: %s", Instructions())
}
