package session_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/session"
)

// way is one direction of a link with a rate, in bytes a second, and a delay.
type way struct {
	rate   float64
	delay  time.Duration
	free   time.Duration   // when it has sent all that it was given
	busy   time.Duration   // for how long it has been sending
	travel []time.Duration // when what is on its way arrives
	frames [][]byte        // what is
	most   int             // frames on their way at once
}

func (w *way) send(now time.Duration, frame []byte) {
	takes := time.Duration(float64(len(frame)) / w.rate * 1e9)
	w.free = max(w.free, now) + takes
	w.busy += takes
	w.travel, w.frames = append(w.travel, w.free+w.delay), append(w.frames, frame)
	w.most = max(w.most, len(w.frames))
}

// carry runs an exchange over a link, and returns how long it took and how busy its ways
// were. Most is how many frames were on their way to P at once.
func (x *pair) carry(rate float64, round time.Duration) (took time.Duration, busy [2]time.Duration, most int) {
	x.quiet = true
	x.propose(1)
	s := x.ways[0]
	ways := [2]*way{{rate: rate, delay: round / 2}, {rate: rate, delay: round / 2}} // to A, to P
	for {
		for side := range 2 {
			for !s.done[side] && x.speaks(s, side) {
			}
		}
		next := -1
		for to, w := range ways {
			for _, frame := range s.queues[to] {
				w.send(x.now, frame)
			}
			s.queues[to] = nil
			if len(w.travel) > 0 && (next < 0 || w.travel[0] < ways[next].travel[0]) {
				next = to
			}
		}
		if next < 0 {
			for to := range ways { // nothing is on its way but the end of a stream
				if s.closed[to] && !s.done[to] {
					x.now += round / 2
					x.hear(s, to)
					next = to
				}
			}
			if next < 0 {
				return x.now, [2]time.Duration{ways[0].busy, ways[1].busy}, ways[1].most
			}
			continue
		}
		w := ways[next]
		x.now = w.travel[0]
		s.queues[next] = w.frames[:1:1]
		w.travel, w.frames = w.travel[1:], w.frames[1:]
		if !s.done[next] {
			x.hear(s, next)
		}
		s.queues[next] = nil
	}
}

// TestWindowFillsTheLink: whatever the link is like, an exchange keeps it busy but for the
// round trips of its beginning and its end, in which the window grows.
func TestWindowFillsTheLink(t *testing.T) {
	const rounds = 7 // that may be lost
	for _, link := range []struct {
		name  string
		bits  float64
		round time.Duration
	}{
		{"1 Gbit/s, 20 ms", 1e9, 20 * time.Millisecond},
		{"100 Mbit/s, 40 ms", 1e8, 40 * time.Millisecond},
		{"10 Gbit/s, 1 ms", 1e10, time.Millisecond},
		{"10 Mbit/s, 100 ms", 1e7, 100 * time.Millisecond},
	} {
		for _, codec := range []string{"raw", "lattice6+4"} {
			t.Run(link.name+", "+codec, func(t *testing.T) {
				x := newPair(t, setting{codec: codec, values: 6_000_000, slice: 32768, lanes: 1})
				x.a.local.Deadline, x.p.local.Deadline = time.Hour, time.Hour
				took, busy, _ := x.carry(link.bits/8, link.round)
				if r := x.results["A"]; r.Outcome != session.Finished {
					t.Fatalf("the exchange ended as %+v", r)
				}
				lost := float64(took-max(busy[0], busy[1])) / float64(link.round)
				if lost > rounds {
					t.Errorf("it took %v, in which the link was busy for %v at most: %.1f round trips were lost, want %v", took, max(busy[0], busy[1]), lost, rounds)
				}
			})
		}
	}
}

// TestWindowOfTheNear: with a partner that answers soon, the window begins with as many slices
// as a cache holds; with others with as many bytes whatever the codec.
func TestWindowOfTheNear(t *testing.T) {
	for round, want := range map[time.Duration]int{time.Millisecond: 16, 40 * time.Millisecond: 31} {
		x := newPair(t, setting{codec: "int8", values: 2_000_000, slice: 32768, lanes: 1})
		x.a.local.Deadline, x.p.local.Deadline = time.Hour, time.Hour
		if _, _, most := x.carry(1e6, round); most != want {
			t.Errorf("%v: %d slices were under way at once, want %d", round, most, want)
		}
	}
}
