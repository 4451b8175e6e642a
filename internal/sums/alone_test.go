package sums

import (
	"errors"
	"testing"
	"time"
)

// TestWhoWasAloneCoordinatesNobody: one that has made a sum before it knew the others follows the coordinator that they have, though it
// is before that one in the order. It hears at once which sums are over, and nobody waits for it.
func TestWhoWasAloneCoordinatesNobody(t *testing.T) {
	for seed := range uint64(100) {
		w := newWorld(t, seed, 3)
		first, others := w.members[0], w.members[1:]
		all, call := first.all(), func(m *member, name string) {
			m.calls = append(m.calls, Call{Name: name, Vector: []float64{1}, Timeout: 10 * time.Second})
			m.next()
		}
		first.see(all[:1])
		call(first, "alone")
		w.run(time.Minute)
		for _, m := range others {
			m.see(all[1:])
			call(m, "x")
		}
		w.run(time.Minute)
		for _, m := range w.members {
			m.see(all)
			m.longest = 0
		}
		call(first, "x")
		for _, m := range others {
			call(m, "y")
		}
		w.run(time.Minute)
		if last := first.results[len(first.results)-1]; !errors.Is(last.Err, ErrOver) || first.longest > 3*time.Second {
			t.Errorf("seed %d: who was alone hears %v after %v", seed, last.Err, first.longest)
		}
		for _, m := range others {
			if last := m.results[len(m.results)-1]; last.Name != "y" || last.Err != nil || m.longest > 3*time.Second {
				t.Errorf("seed %d: %s has %+v after %v", seed, m.self, last, m.longest)
			}
		}
	}
}
