package baseline_test

import (
	"time"

	"pgregory.net/rapid"
)

// enough is the time in which a flock that has come to rest makes a few steps at least.
const enough = 3 * time.Second

// hardships puts a flock through losses, deaths, joiners and unequal speeds, and then
// lets the run end at different moments at different peers.
// breaks is how many of the transfers break off in the worst case: in a sum each breaks
// the whole attempt off.
func hardships(r *rapid.T, w *world, breaks float64) {
	n := rapid.IntRange(1, 6).Draw(r, "peers")
	w.loss = rapid.SampledFrom([]float64{0, 0, 0.05, 0.2}).Draw(r, "loss")
	w.breaks = rapid.SampledFrom([]float64{0, 0, breaks / 5, breaks}).Draw(r, "breaks")
	all := names(n + 3)
	period := func() func() time.Duration {
		base := time.Duration(rapid.IntRange(5, 100).Draw(r, "period")) * time.Millisecond
		return func() time.Duration { return base + time.Duration(w.rng.Int64N(int64(base))) }
	}
	for _, id := range all[:n] {
		w.join(id, period())
	}
	w.view(50 * time.Millisecond)
	for _, id := range all[:n] {
		w.queue.After(time.Duration(w.rng.Int64N(int64(200*time.Millisecond))), w.peers[id].start)
	}
	living := n
	next := n
	for range rapid.IntRange(0, 4).Draw(r, "happenings") {
		w.queue.Run(w.queue.Now() + time.Duration(rapid.IntRange(1, 1000).Draw(r, "pause"))*time.Millisecond)
		switch {
		case rapid.Bool().Draw(r, "join") && next < len(all):
			p := w.join(all[next], period())
			next++
			living++
			w.view(300 * time.Millisecond)
			w.queue.After(time.Duration(w.rng.Int64N(int64(time.Second))), p.start)
		case living > 1:
			victim := w.peers[w.names[rapid.IntRange(0, len(w.names)-1).Draw(r, "victim")]]
			if victim.alive {
				living--
				if rapid.IntRange(0, 3).Draw(r, "frozen") == 0 {
					w.freeze(victim.id)
					continue
				}
				w.die(victim.id, rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, time.Second}).Draw(r, "notice"))
			}
		}
	}
	before := w.progress
	w.queue.Run(w.queue.Now() + enough)
	if !w.halted() && w.progress-before < living {
		w.t.Errorf("%d steps of %d peers in three seconds", w.progress-before, living)
	}
	w.settle(time.Duration(rapid.IntRange(1, 2000).Draw(r, "spread")) * time.Millisecond)
}
