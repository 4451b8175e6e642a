package settings

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/quant"
)

// TestCodecNames: the help of --codec tells of all codecs, and of no other.
func TestCodecNames(t *testing.T) {
	told := []string{"raw", "bf16", "fp16", "int8"}
	for _, a := range []int{8, 6, 5, 4} {
		for _, b := range []int{8, 4, 3, 1} {
			told = append(told, fmt.Sprintf("lattice%d+%d", a, b))
		}
	}
	if names := quant.Names(); !slices.Equal(names, told) {
		t.Errorf("the codecs are %q; the help tells of %q", names, told)
	}
}
