package flock

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// raced are members of one run in virtual time, each with a flock of its own, that take steps at
// their speeds while they may, and hear of each other as members do. A speed of 0 is that of a
// liar, which claims what it likes and takes none.
func raced(trusts bool, target uint64, speeds ...float64) (taken uint64, took time.Duration) {
	const tick = time.Millisecond
	flocks, said, due := make([]*Flock, len(speeds)), make([]transport.Record, len(speeds)), make([]float64, len(speeds))
	for i, speed := range speeds {
		flocks[i], said[i] = New(transport.PeerID(fmt.Sprint(i))), record(fmt.Sprint(i), 0)
		if flocks[i].trusts = trusts; speed == 0 {
			said[i].Steps = 1 << 60
		}
	}
	news, now := NewsEvery(len(speeds)), time.Unix(1e9, 0)
	for began := now; ; now = now.Add(tick) {
		working := false
		for i, f := range flocks {
			if now.Sub(began)%news == 0 {
				f.Observe(said, now)
			}
			if f.IsOver() || speeds[i] == 0 {
				continue
			}
			if f.Total() >= target {
				f.Finish()
				said[i].Flags |= Over
			}
			working = working || !f.IsOver()
			if due[i] += speeds[i] * tick.Seconds(); due[i] >= 1 && !f.IsOver() && f.May(target, now) {
				due[i]--
				f.Stepped()
				taken++
			}
			due[i] = min(due[i], 1)
		}
		if !working {
			return taken, now.Sub(began)
		}
		if now.Sub(began)%news == 0 {
			for i, f := range flocks {
				if speeds[i] > 0 {
					said[i].Steps = f.Steps()
				}
			}
		}
	}
}

// TestAFastMemberCounts: where members are trusted, what one does that is many times as fast as
// the others counts, and the run takes no longer than its steps do. In an open run it counts up
// to twice the median, which is the price of liars.
func TestAFastMemberCounts(t *testing.T) {
	for _, c := range []struct {
		speeds       []float64
		open, trusts float64 // times the steps that were asked for, at most
		slower       float64 // than the members together
	}{
		{[]float64{10, 10, 10, 40}, 1.5, 1.02, 1.1},
		{[]float64{10, 10, 10, 200}, 5, 1.02, 1.2},
		{[]float64{10, 10, 10, 10, 10, 10, 10, 200}, 5, 1.02, 1.2},
		{[]float64{10, 10, 20, 100}, 2.7, 1.02, 1.2},
		{[]float64{10, 10, 10, 10}, 1.01, 1.01, 1.05},
	} {
		target, sum := uint64(300*len(c.speeds)), 0.0
		for _, s := range c.speeds {
			sum += s
		}
		open, _ := raced(false, target, c.speeds...)
		taken, took := raced(true, target, c.speeds...)
		t.Logf("%v: %d steps for %d in an open run, %d where members are trusted, in %v (all at work: %.0f s)", c.speeds, open, target, taken, took, float64(target)/sum)
		if got := float64(open) / float64(target); got > c.open {
			t.Errorf("%v: %.3f times the steps asked for in an open run, at most %v", c.speeds, got, c.open)
		}
		if got := float64(taken) / float64(target); got > c.trusts || got < 1 {
			t.Errorf("%v: %.3f times the steps asked for, want 1 to %v", c.speeds, got, c.trusts)
		}
		if got := took.Seconds() / (float64(target) / sum); got > c.slower {
			t.Errorf("%v: %.2f times as long as all together need, at most %v", c.speeds, got, c.slower)
		}
	}
}

// TestTrustIsBounded: whatever liars claim where members are trusted, and however many
// identities they make, at least a share of 1/trust of the work is done.
func TestTrustIsBounded(t *testing.T) {
	for _, speeds := range [][]float64{{10, 10, 10, 0}, {10, 10, 0}, {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0, 0, 0}} {
		target := uint64(300 * len(speeds))
		open, _ := raced(false, target, speeds...)
		taken, _ := raced(true, target, speeds...)
		t.Logf("%v: %d steps of %d in an open run, %d where members are trusted", speeds, open, target, taken)
		if taken < open/trust {
			t.Errorf("%v: the run ends after %d steps of %d; open after %d", speeds, taken, target, open)
		}
	}
	f := New("me")
	f.Trust()
	for i := range 100 {
		observe(f, []transport.Record{record("me", 100), record("b", 100), record(fmt.Sprintf("liar-%d", i), 1<<60)})
	}
	if got := total(f, 100); got > 2*trust*400+100*200 { // what each adds in an open run too, and two that come and go at once
		t.Errorf("%d steps after 100 identities of a liar beside two of 100", got)
	}
	f = New("me")
	f.Trust()
	liar := record("liar", 1<<60)
	liar.Flags = Idle // it says that it does not train any more
	observe(f, []transport.Record{record("me", 100), record("b", 100), liar})
	if got := total(f, 100); got > 2*trust*400 {
		t.Errorf("%d steps beside one that says that it has done %d", got, liar.Steps)
	}
	if got, want := trusted([]uint64{1 << 63, 1 << 63}, 1<<63, 1<<63, 1<<63), uint64(1<<63); got != want {
		t.Errorf("of numbers that overflow %d, want %d", got, want)
	}
}
