package peer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// resumedRecord is that of a member that has come back with a checkpoint.
func resumedRecord(name string, incarnation, steps uint64) seam.Record {
	return seam.Record{Peer: seam.PeerID(name), Incarnation: incarnation, Steps: steps, Flags: flagResumed}
}

// TestAResumedLifeIsNotCountedTwice: what a member did before its checkpoint is in both
// of its lives.
func TestAResumedLifeIsNotCountedTwice(t *testing.T) {
	f := newFlock()
	me, b := record("me", 100), record("b", 90)
	f.observe([]seam.Record{me, b}, "me", time.Time{})
	f.observe([]seam.Record{me}, "me", time.Time{})
	for _, c := range []struct{ steps, want uint64 }{
		{70, 190}, // its checkpoint is of step 70: 90 were taken
		{90, 190},
		{95, 195},
	} {
		f.observe([]seam.Record{me, resumedRecord("b", 2, c.steps)}, "me", time.Time{})
		if got := f.total(100); got != c.want {
			t.Errorf("%d steps with b back at %d, want %d", got, c.steps, c.want)
		}
	}
	f.observe([]seam.Record{me}, "me", time.Time{})
	f.observe([]seam.Record{me, {Peer: "b", Incarnation: 3, Steps: 5}}, "me", time.Time{})
	if got := f.total(100); got != 200 {
		t.Errorf("%d steps with b back without a checkpoint, want 200", got)
	}
}

// TestAFlockResumesFromItsMembers: whichever of its members come back, in whatever
// order and as often as they do, each sees no less than was done before, and once all
// are back what all have done.
func TestAFlockResumesFromItsMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		steps := map[string]uint64{}
		for _, n := range names {
			steps[n] = uint64(rapid.IntRange(80, 100).Draw(t, n))
		}
		checkpoints := map[string]Checkpoint{}
		life := uint64(1)
		sum := func() (all uint64) {
			for _, n := range names {
				all += steps[n]
			}
			return all
		}
		for range rapid.IntRange(1, 3).Draw(t, "restarts") {
			for _, n := range names { // each saves when it knows of all
				f := newFlock()
				if c, ok := checkpoints[n]; ok {
					f.resume(seam.PeerID(n), c)
				}
				var members []seam.Record
				for _, m := range names {
					r := record(m, steps[m])
					if r.Incarnation = life; life > 1 {
						r.Flags = flagResumed
					}
					members = append(members, r)
				}
				f.observe(members, seam.PeerID(n), time.Time{})
				if got := f.total(steps[n]); got != sum() {
					t.Fatalf("%s counts %d steps of all, want %d", n, got, sum())
				}
				c := Checkpoint{Own: steps[n], Incarnation: life}
				c.Past, c.Inherited, c.Peers = f.past()
				checkpoints[n] = c
			}
			back := newFlock()
			back.resume("a", checkpoints["a"])
			if got := back.total(steps["a"]); got != sum() || back.participants.Load() != 4 {
				t.Fatalf("alone it counts %d steps of %d peers, want %d of 4", got, back.participants.Load(), sum())
			}
			life++
			for _, n := range names {
				steps[n] += uint64(rapid.IntRange(0, 20).Draw(t, "more"))
			}
		}
	})
}

// TestInheritingWithoutOnesOwn: what the flock says of all includes what this peer did
// in earlier lives.
func TestInheritingWithoutOnesOwn(t *testing.T) {
	f := newFlock()
	f.resume("me", Checkpoint{Own: 100, Incarnation: 1, Past: []Past{{Peer: "b", Incarnation: 1, Steps: 80}}})
	f.inherit(250, 100, "me", []seam.Record{resumedRecord("me", 2, 100), record("b", 90)})
	if got := f.total(100); got != 250 {
		t.Errorf("%d steps, want 250", got)
	}
	f.observe([]seam.Record{resumedRecord("me", 2, 110), record("b", 95)}, "me", time.Time{})
	if got := f.total(110); got != 265 {
		t.Errorf("%d steps later, want 265", got)
	}
}

// TestRestartsDoNotAddUp: what was done after a checkpoint is lost and done again. However
// often that happens, the estimate is right once it has been.
func TestRestartsDoNotAddUp(t *testing.T) {
	b, others := Checkpoint{Own: 100, Incarnation: 1}, uint64(0)
	b.Past = []Past{{Peer: "a", Incarnation: 1, Steps: 100}}
	for life := uint64(2); life < 12; life++ {
		f := newFlock()
		f.resume("b", b)
		f.atLeast(2*b.Own+30, b.Own) // a knows of 30 steps that b has lost
		for steps := b.Own; steps <= b.Own+50; steps += 10 {
			a := resumedRecord("a", life, steps)
			f.observe([]seam.Record{a, resumedRecord("b", life, steps)}, "b", time.Time{})
			others = steps
		}
		if got := f.total(0); got != others {
			t.Fatalf("in life %d the others have done %d steps, want %d", life, got, others)
		}
		b.Own, b.Incarnation = b.Own+50, life
		b.Past, b.Inherited, b.Peers = f.past()
	}
}

// TestWhatIsKeptOfTheOthersIsBounded: beyond MaxPast lives only their sum is kept.
func TestWhatIsKeptOfTheOthersIsBounded(t *testing.T) {
	f := newFlock()
	c := Checkpoint{Own: 1, Incarnation: 1}
	for i := range MaxPast {
		c.Past = append(c.Past, Past{Peer: seam.PeerID(rune('a' + i)), Incarnation: 1, Steps: 3})
	}
	f.resume("me", c)
	lives, inherited, _ := f.past()
	if f.departed.Len() != maxDeparted || f.total(0) != 3*MaxPast || uint64(len(lives))*3+inherited != 3*MaxPast {
		t.Errorf("%d lives are kept, %d in the checkpoint, %d steps beside, %d in all", f.departed.Len(), len(lives), inherited, f.total(0))
	}
	if !slices.IsSortedFunc(lives, func(a, b Past) int { return int(a.Peer[0]) - int(b.Peer[0]) }) {
		t.Error("the lives are in no order: two checkpoints of one state differ")
	}
}
