package peak

import (
	"sync"
	"testing"
)

func TestPeakOfManyAtOnce(t *testing.T) {
	var p Peak
	var noting sync.WaitGroup
	for first := range 8 {
		noting.Go(func() {
			for n := first; n < 8000; n += 8 {
				p.Note(int64(n))
			}
		})
	}
	noting.Wait()
	if p.Load() != 7999 {
		t.Errorf("the largest of 0 to 7999 is said to be %d", p.Load())
	}
	if p.Note(5); p.Load() != 7999 {
		t.Errorf("a smaller number replaced the largest: %d", p.Load())
	}
}
