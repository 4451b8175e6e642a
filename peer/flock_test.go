package peer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// record is a member's word on its steps.
func record(name string, steps uint64) seam.Record {
	return seam.Record{Peer: seam.PeerID(name), Incarnation: 1, Steps: steps}
}

func TestFlockCountsEverybody(t *testing.T) {
	f := newFlock()
	f.observe([]seam.Record{record("me", 100), record("b", 90), record("c", 110)}, "me", time.Time{})
	if got := f.total(100); got != 300 {
		t.Errorf("%d steps, want 300", got)
	}
}

func TestFlockKeepsWhatTheDepartedDid(t *testing.T) {
	f := newFlock()
	all := []seam.Record{record("me", 100), record("b", 90), record("c", 110)}
	f.observe(all, "me", time.Time{})
	lost := f.observe(all[:2], "me", time.Time{}).lost
	if len(lost) != 1 || lost[0] != "c" {
		t.Errorf("lost %v, want c", lost)
	}
	if got := f.total(100); got != 300 {
		t.Errorf("%d steps without c, want 300", got)
	}
	f.observe(all, "me", time.Time{})
	if got := f.total(100); got != 300 {
		t.Errorf("%d steps with c back, want 300: it was counted twice", got)
	}
	again := record("c", 5)
	again.Incarnation = 2
	f.observe([]seam.Record{all[0], all[1], again}, "me", time.Time{})
	if got := f.total(100); got != 305 {
		t.Errorf("%d steps with c reborn, want 305", got)
	}
	if present, lost := f.members(); present != 3 || lost != 2 {
		t.Errorf("%d present, %d lost", present, lost)
	}
}

func TestFlockDoesNotCallALeaverLost(t *testing.T) {
	f := newFlock()
	leaver := record("b", 90)
	leaver.Flags = flagLeaving
	f.observe([]seam.Record{record("me", 100), leaver}, "me", time.Time{})
	if lost := f.observe([]seam.Record{record("me", 100)}, "me", time.Time{}).lost; len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

// TestLiarsAddLittle: of five members and more a fifth may lie and add nothing; in a smaller
// flock a liar adds one share.
func TestLiarsAddLittle(t *testing.T) {
	for _, c := range []struct{ liars, honest, want int }{{1, 15, 1600}, {3, 13, 1600}, {1, 4, 500}, {4, 12, 2000}, {1, 3, 500}} {
		f := newFlock()
		var members []seam.Record
		for i := range c.liars {
			members = append(members, record(fmt.Sprintf("liar-%d", i), 1<<60))
		}
		for i := range c.honest {
			members = append(members, record(fmt.Sprintf("honest-%d", i), 100))
		}
		f.observe(members, "honest-0", time.Time{})
		if got := f.total(100); got != uint64(c.want) {
			t.Errorf("%d steps with %d liars beside %d of 100 each, want %d", got, c.liars, c.honest, c.want)
		}
	}
}

func TestLatecomersNeitherAddNorTake(t *testing.T) {
	f := newFlock()
	members := []seam.Record{record("me", 1000)}
	for i := range 4 {
		late := record(fmt.Sprintf("late-%d", i), 10)
		late.Head = 1000
		members = append(members, late)
	}
	f.observe(members, "me", time.Time{})
	if got := f.total(1000); got != 1040 {
		t.Errorf("%d steps, want 1040", got)
	}
}

func TestALatecomerInheritsWhatItCannotSee(t *testing.T) {
	f := newFlock()
	present := []seam.Record{record("b", 400), record("c", 300)}
	f.inherit(1000, 0, "me", present) // 300 steps are of a member that has departed
	if got := f.total(0); got != 1000 {
		t.Errorf("%d steps at once, want 1000", got)
	}
	present[0].Steps, present[1].Steps = 450, 350
	me := record("me", 60)
	me.Head = 400
	f.observe(append(present, me), "me", time.Time{})
	if got := f.total(60); got != 1160 {
		t.Errorf("%d steps later, want 1160", got)
	}
}

func TestFlockNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFlock()
		var last uint64
		steps := map[string]uint64{}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			members := []seam.Record{record("me", 0)}
			for _, name := range []string{"b", "c", "d", "e"} {
				steps[name] += uint64(rapid.IntRange(0, 50).Draw(t, "steps"))
				if rapid.Bool().Draw(t, "here") {
					members = append(members, record(name, steps[name]))
				}
			}
			f.observe(members, "me", time.Time{})
			if now := f.total(0); now < last {
				t.Fatalf("from %d back to %d steps", last, now)
			} else {
				last = now
			}
			if n := f.participants.Load(); n < 1 || n > 5 {
				t.Fatalf("%d participants", n)
			}
		}
	})
}

// TestLivesOfOneIdentityCountAsOnePeer: however many it has, of whatever kind.
func TestLivesOfOneIdentityCountAsOnePeer(t *testing.T) {
	f := newFlock()
	var members []seam.Record
	for i := range 15 {
		members = append(members, record(fmt.Sprintf("honest-%d", i), 100))
	}
	for life := uint64(1); life <= 1000; life++ {
		again := record("again", 150)
		again.Incarnation, again.Flags = life, uint8(life%3/2)*flagResumed
		seen := append(slices.Clone(members), again)
		if life%5 == 0 {
			seen = members // it has gone
		}
		f.observe(seen, "honest-0", time.Time{})
		if got := f.total(100); got > 1700 {
			t.Fatalf("%d steps after %d lives of one among 16 of 100 each, want at most 1700", got, life)
		}
	}
	if n := f.accounts["again"].lives("again"); len(n) > 2 {
		t.Errorf("%d lives are kept", len(n))
	}
}

// TestComingAndGoingMovesNoTarget: the work is that of the peers that were there at once, not
// of every identity that was ever seen.
func TestComingAndGoingMovesNoTarget(t *testing.T) {
	f := newFlock()
	for i := range 100 {
		f.observe([]seam.Record{record("me", 100), record("b", 100), record(fmt.Sprintf("guest-%d", i), 0)}, "me", time.Time{})
	}
	if n := f.participants.Load(); n != 3 {
		t.Errorf("the work is that of %d peers, 3 were there at once", n)
	}
	lives, inherited, peers := f.past()
	again := newFlock()
	again.resume("me", Checkpoint{Own: 100, Incarnation: 1, Past: lives, Inherited: inherited, Peers: peers})
	if n := again.participants.Load(); n != 3 {
		t.Errorf("after a restart the work is that of %d peers", n)
	}
}
