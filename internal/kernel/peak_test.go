package kernel

import "testing"

func TestMultiplyAddPeakCountsOperations(t *testing.T) {
	one := MultiplyAddPeak(1)
	if one < 2 {
		t.Fatalf("one iteration is %v operations", one)
	}
	if many := MultiplyAddPeak(100_000); many != 100_000*one {
		t.Errorf("100000 iterations are %v operations, of %v each", many, one)
	}
	if none := MultiplyAddPeak(-1); none != one {
		t.Errorf("at least one iteration is made; %v operations", none)
	}
}
