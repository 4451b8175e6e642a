package topology

import (
	"fmt"
	"testing"
)

// BenchmarkRebuild is what a peer does when its view changes: decide roles, make
// the overlay, list its own neighbours.
func BenchmarkRebuild(b *testing.B) {
	for _, n := range []int{8, 64, 200, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			members := peers(n, Undecided)
			b.ReportAllocs()
			for b.Loop() {
				if err := rebuild(members); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func rebuild(members []Member) error {
	v, err := NewView(members)
	if err != nil {
		return err
	}
	o, err := NewOverlay(v)
	if err != nil {
		return err
	}
	if len(o.Neighbours(members[0].ID)) == 0 {
		return ErrNoPassive
	}
	return nil
}
