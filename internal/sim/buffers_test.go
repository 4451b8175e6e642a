package sim

import "testing"

// TestSparesKeepWhatIsNeeded takes and gives back many at a time, then few: as many as are in
// use at once stay, and the others go.
func TestSparesKeepWhatIsNeeded(t *testing.T) {
	var s spares[*int]
	round := func(n int) (made int) {
		var taken []*int
		for range n {
			one, ok := s.take()
			if !ok {
				made++
				one = new(int)
			}
			taken = append(taken, one)
		}
		for _, one := range taken {
			s.give(one)
		}
		return made
	}
	const many, few = 100, 7
	if made := round(many); made != many {
		t.Fatalf("%d of %d were there from the beginning", many-made, many)
	}
	for i := range 10 * lately {
		if made := round(many); made > 0 {
			t.Fatalf("round %d: %d were made anew", i, made)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { one, _ := s.take(); s.give(one) }); allocs > 0 {
		t.Errorf("taking and giving one allocates %g times", allocs)
	}
	for range 2 * lately * many {
		if made := round(few); made > 0 {
			t.Fatalf("%d were made anew where %d are in use", made, few)
		}
	}
	if n := len(s.idle); n < few || n > 2*few || s.made != n {
		t.Errorf("%d of %d are kept where %d are in use", n, s.made, few)
	}
}

// Made is how many exchanges, served conversations and gradients the world has made and still
// keeps, in use or not, and how many different overlays its members know.
func (w *World) Made() (exchanges, served, gradients, overlays int) {
	known := map[any]bool{}
	for _, p := range w.peers {
		if !p.gone {
			known[p.seen] = true
		}
	}
	return w.spare.exchanges.made, w.spare.served.made, w.gradients.spare.made, len(known)
}
