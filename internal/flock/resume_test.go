package flock

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// resumedRecord is that of a member that has come back with a checkpoint.
func resumedRecord(name string, incarnation, steps uint64) transport.Record {
	return transport.Record{Peer: transport.PeerID(name), Incarnation: incarnation, Steps: steps, Flags: Resumed}
}

// checkpoint is what a peer keeps of its flock.
type checkpoint struct {
	own              uint64
	lives            []transport.Record
	inherited, peers uint64
}

func save(f *Flock, own uint64) checkpoint {
	lives, inherited := f.Past()
	return checkpoint{own, lives, inherited, f.Participants()}
}

func (c checkpoint) resume(self transport.PeerID) *Flock {
	f := New(self)
	f.Resume(c.own, c.own, c.lives, c.inherited, c.peers)
	return f
}

// TestAResumedLifeIsNotCountedTwice: what a member did before its checkpoint is in both
// of its lives.
func TestAResumedLifeIsNotCountedTwice(t *testing.T) {
	f := New("me")
	me, b := record("me", 100), record("b", 90)
	observe(f, []transport.Record{me, b})
	observe(f, []transport.Record{me})
	for _, c := range []struct{ steps, want uint64 }{
		{70, 190}, // its checkpoint is of step 70: 90 were taken
		{90, 190},
		{95, 195},
	} {
		observe(f, []transport.Record{me, resumedRecord("b", 2, c.steps)})
		if got := total(f, 100); got != c.want {
			t.Errorf("%d steps with b back at %d, want %d", got, c.steps, c.want)
		}
	}
	observe(f, []transport.Record{me})
	observe(f, []transport.Record{me, {Peer: "b", Incarnation: 3, Steps: 5}})
	if got := total(f, 100); got != 200 {
		t.Errorf("%d steps with b back without a checkpoint, want 200", got)
	}
}

// TestALifeGoesOnFromACheckpointLater: a node that has a trainer since is of one life before and after.
func TestALifeGoesOnFromACheckpointLater(t *testing.T) {
	f := New("me")
	me := record("me", 100)
	for _, r := range []transport.Record{
		record("b", 90),
		{Peer: "b", Incarnation: 2, Flags: Idle},
		resumedRecord("b", 2, 90),
		{Peer: "b", Incarnation: 2, Steps: 90},
	} {
		observe(f, []transport.Record{me, r})
		if got := total(f, 100); got != 190 {
			t.Errorf("%d steps with %+v, want 190", got, r)
		}
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
		checkpoints := map[string]checkpoint{}
		life := uint64(1)
		sum := func() (all uint64) {
			for _, n := range names {
				all += steps[n]
			}
			return all
		}
		for range rapid.IntRange(1, 3).Draw(t, "restarts") {
			for _, n := range names { // each saves when it knows of all
				f := New(transport.PeerID(n))
				if c, ok := checkpoints[n]; ok {
					f = c.resume(transport.PeerID(n))
				}
				var members []transport.Record
				for _, m := range names {
					r := record(m, steps[m])
					if r.Incarnation = life; life > 1 {
						r.Flags = Resumed
					}
					members = append(members, r)
				}
				observe(f, members)
				if got := total(f, steps[n]); got != sum() {
					t.Fatalf("%s counts %d steps of all, want %d", n, got, sum())
				}
				checkpoints[n] = save(f, steps[n])
			}
			back := checkpoints["a"].resume("a")
			if got := total(back, steps["a"]); got != sum() || back.Participants() != 4 {
				t.Fatalf("alone it counts %d steps of %d peers, want %d of 4", got, back.Participants(), sum())
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
	f := checkpoint{own: 100, lives: []transport.Record{record("b", 80)}}.resume("me")
	f.Inherit(250, []transport.Record{resumedRecord("me", 2, 100), record("b", 90)})
	if got := total(f, 100); got != 250 {
		t.Errorf("%d steps, want 250", got)
	}
	observe(f, []transport.Record{resumedRecord("me", 2, 110), record("b", 95)})
	if got := total(f, 110); got != 265 {
		t.Errorf("%d steps later, want 265", got)
	}
}

// TestRestartsDoNotAddUp: what was done after a checkpoint is lost and done again. However
// often that happens, the estimate is right once it has been.
func TestRestartsDoNotAddUp(t *testing.T) {
	b, others := checkpoint{own: 100, lives: []transport.Record{record("a", 100)}}, uint64(0)
	for life := uint64(2); life < 12; life++ {
		f := b.resume("b")
		f.AtLeast(2*b.own + 30) // a knows of 30 steps that b has lost
		for steps := b.own; steps <= b.own+50; steps += 10 {
			a := resumedRecord("a", life, steps)
			observe(f, []transport.Record{a, resumedRecord("b", life, steps)})
			others = steps
		}
		if got := total(f, 0); got != others {
			t.Fatalf("in life %d the others have done %d steps, want %d", life, got, others)
		}
		b = save(f, b.own+50)
	}
}

// TestWhatIsKeptOfTheOthersIsBounded: beyond MaxPast lives only their sum is kept.
func TestWhatIsKeptOfTheOthersIsBounded(t *testing.T) {
	c := checkpoint{own: 1}
	for i := range MaxPast {
		c.lives = append(c.lives, record(string(rune('a'+i)), 3))
	}
	f := c.resume("me")
	lives, inherited := f.Past()
	if f.departed.known.Len() != MaxDeparted || total(f, 0) != 3*MaxPast || uint64(len(lives))*3+inherited != 3*MaxPast {
		t.Errorf("%d lives are kept, %d in the checkpoint, %d steps beside, %d in all", f.departed.known.Len(), len(lives), inherited, total(f, 0))
	}
	if !slices.IsSortedFunc(lives, func(a, b transport.Record) int { return int(a.Peer[0]) - int(b.Peer[0]) }) {
		t.Error("the lives are in no order: two checkpoints of one state differ")
	}
}
