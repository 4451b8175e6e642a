package sums

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// thousand is as many members that make one sum, over links that take 20 ms each way.
func thousand(t *testing.T, length int) *world {
	w := newWorld(t, 1, 1000)
	w.delay, w.constant = 20*time.Millisecond, true
	for _, m := range w.members {
		m.calls = []Call{{Name: "x", Vector: make([]float64, length), Least: 1, Timeout: time.Minute}}
		for k := range length {
			m.calls[0].Vector[k] = float64(m.index)
		}
		w.after(0, m.next)
	}
	return w
}

// TestAThousandMembers shows that a sum of 8 numbers over a thousand members 20 ms apart takes less than a
// second: each message waits for the one before it, and there are few such.
func TestAThousandMembers(t *testing.T) {
	w := thousand(t, 8)
	w.run(time.Minute)
	for _, m := range w.members {
		if len(m.results) != 1 || m.results[0].Err != nil || m.results[0].Peers != 1000 || m.results[0].Vector[7] != 999*500 {
			t.Fatalf("%s at %s: %+v", m.self, w.now, m.results)
		}
	}
	if w.now > time.Second {
		t.Errorf("it took %s", w.now)
	}
	t.Logf("it took %s", w.now)
}

// BenchmarkACoordinatorHears is a word to a coordinator of 1,024 members that waits for the last.
func BenchmarkACoordinatorHears(b *testing.B) {
	m := New("m", Times{})
	ids := []ID{"m"}
	for i := range 1023 {
		ids = append(ids, ID(fmt.Sprintf("n%04d", i)))
	}
	m.View(0, ids)
	for _, id := range ids[1:1023] {
		m.Receive(0, id, wire.Sum{Kind: wire.SumStatus, Name: "x", Length: 8})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Receive(0, ids[1+i%1022], wire.Sum{Kind: wire.SumStatus, Name: "x", Length: 8})
		m.Outcomes()
	}
}
