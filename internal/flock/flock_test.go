package flock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// record is a member's word on its steps.
func record(name string, steps uint64) transport.Record {
	return transport.Record{Peer: transport.PeerID(name), Incarnation: 1, Steps: steps}
}

// observe has a flock see members; the record of the flock's own peer is what that has done.
func observe(f *Flock, members []transport.Record) News {
	for _, r := range members {
		if r.Peer == f.self {
			f.steps.Store(r.Steps)
			f.head.Store(r.Head)
		}
	}
	return f.Observe(members, time.Time{})
}

// total is the estimate of a flock whose own peer has taken so many steps.
func total(f *Flock, own uint64) uint64 {
	f.steps.Store(own)
	return f.Total()
}

func TestFlockCountsEverybody(t *testing.T) {
	f := New("me")
	observe(f, []transport.Record{record("me", 100), record("b", 90), record("c", 110)})
	if got := total(f, 100); got != 300 {
		t.Errorf("%d steps, want 300", got)
	}
}

func TestFlockKeepsWhatTheDepartedDid(t *testing.T) {
	f := New("me")
	all := []transport.Record{record("me", 100), record("b", 90), record("c", 110)}
	observe(f, all)
	lost := observe(f, all[:2]).Lost
	if len(lost) != 1 || lost[0] != "c" {
		t.Errorf("lost %v, want c", lost)
	}
	if got := total(f, 100); got != 300 {
		t.Errorf("%d steps without c, want 300", got)
	}
	observe(f, all)
	if got := total(f, 100); got != 300 {
		t.Errorf("%d steps with c back, want 300: it was counted twice", got)
	}
	again := record("c", 5)
	again.Incarnation = 2
	observe(f, []transport.Record{all[0], all[1], again})
	if got := total(f, 100); got != 305 {
		t.Errorf("%d steps with c reborn, want 305", got)
	}
	if present, lost := f.Members(); present != 3 || lost != 2 {
		t.Errorf("%d present, %d lost", present, lost)
	}
}

func TestFlockDoesNotCallALeaverLost(t *testing.T) {
	f := New("me")
	leaver := record("b", 90)
	leaver.Flags = Leaving
	observe(f, []transport.Record{record("me", 100), leaver})
	if lost := observe(f, []transport.Record{record("me", 100)}).Lost; len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

// TestFlockDoesNotCallOneThatRestsLost: a member that gave up training for a while trains again in a new incarnation.
func TestFlockDoesNotCallOneThatRestsLost(t *testing.T) {
	f, at := New("me"), time.Time{}
	for life := uint64(1); life < 20; life++ {
		trains, rests := record("b", 90*life), record("b", 90*life)
		trains.Incarnation, rests.Incarnation, rests.Flags = life, life, Idle
		for _, r := range []transport.Record{trains, rests} {
			if news := f.Observe([]transport.Record{record("me", 100), r}, at); len(news.Lost)+len(news.Duplicates) > 0 {
				t.Errorf("life %d: %+v", life, news)
			}
			at = at.Add(time.Second)
		}
	}
	if _, lost := f.Members(); lost != 0 {
		t.Errorf("%d lost, want none", lost)
	}
}

// TestLiarsAddLittle: of five members and more a fifth may lie and add nothing; in a smaller
// flock a liar adds one share.
func TestLiarsAddLittle(t *testing.T) {
	for _, c := range []struct{ liars, honest, want int }{{1, 15, 1600}, {3, 13, 1600}, {1, 4, 500}, {4, 12, 2000}, {1, 3, 500}} {
		f := New("honest-0")
		var members []transport.Record
		for i := range c.liars {
			members = append(members, record(fmt.Sprintf("liar-%d", i), 1<<60))
		}
		for i := range c.honest {
			members = append(members, record(fmt.Sprintf("honest-%d", i), 100))
		}
		observe(f, members)
		if got := total(f, 100); got != uint64(c.want) {
			t.Errorf("%d steps with %d liars beside %d of 100 each, want %d", got, c.liars, c.honest, c.want)
		}
	}
}

func TestLatecomersNeitherAddNorTake(t *testing.T) {
	f := New("me")
	members := []transport.Record{record("me", 1000)}
	for i := range 4 {
		late := record(fmt.Sprintf("late-%d", i), 10)
		late.Head = 1000
		members = append(members, late)
	}
	observe(f, members)
	if got := total(f, 1000); got != 1040 {
		t.Errorf("%d steps, want 1040", got)
	}
}

func TestALatecomerInheritsWhatItCannotSee(t *testing.T) {
	f := New("me")
	present := []transport.Record{record("b", 400), record("c", 300)}
	f.Inherit(1000, present) // 300 steps are of a member that has departed
	if got := total(f, 0); got != 1000 {
		t.Errorf("%d steps at once, want 1000", got)
	}
	present[0].Steps, present[1].Steps = 450, 350
	me := record("me", 60)
	me.Head = 400
	observe(f, append(present, me))
	if got := total(f, 60); got != 1160 {
		t.Errorf("%d steps later, want 1160", got)
	}
}

func TestFlockNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := New("me")
		var last uint64
		steps := map[string]uint64{}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			members := []transport.Record{record("me", 0)}
			for _, name := range []string{"b", "c", "d", "e"} {
				steps[name] += uint64(rapid.IntRange(0, 50).Draw(t, "steps"))
				if rapid.Bool().Draw(t, "here") {
					members = append(members, record(name, steps[name]))
				}
			}
			observe(f, members)
			if now := total(f, 0); now < last {
				t.Fatalf("from %d back to %d steps", last, now)
			} else {
				last = now
			}
			if n := f.Participants(); n < 1 || n > 5 {
				t.Fatalf("%d participants", n)
			}
		}
	})
}

// TestLivesOfOneIdentityCountAsOnePeer: however many it has, of whatever kind.
func TestLivesOfOneIdentityCountAsOnePeer(t *testing.T) {
	f := New("honest-0")
	var members []transport.Record
	for i := range 15 {
		members = append(members, record(fmt.Sprintf("honest-%d", i), 100))
	}
	for life := uint64(1); life <= 1000; life++ {
		again := record("again", 150)
		again.Incarnation, again.Flags = life, uint8(life%3/2)*Resumed
		seen := append(slices.Clone(members), again)
		if life%5 == 0 {
			seen = members // it has gone
		}
		observe(f, seen)
		if got := total(f, 100); got > 1700 {
			t.Fatalf("%d steps after %d lives of one among 16 of 100 each, want at most 1700", got, life)
		}
	}
	if n := f.present["again"].account.lives("again"); len(n) > 2 {
		t.Errorf("%d lives are kept", len(n))
	}
}

// TestComingAndGoingMovesNoTarget: the work is that of the peers that were there at once, not
// of every identity that was ever seen.
func TestComingAndGoingMovesNoTarget(t *testing.T) {
	f := New("me")
	for i := range 100 {
		observe(f, []transport.Record{record("me", 100), record("b", 100), record(fmt.Sprintf("guest-%d", i), 0)})
	}
	if n := f.Participants(); n != 3 {
		t.Errorf("the work is that of %d peers, 3 were there at once", n)
	}
	lives, inherited := f.Past()
	again := New("me")
	again.Resume(100, 100, lives, inherited, f.Participants())
	if n := again.Participants(); n != 3 {
		t.Errorf("after a restart the work is that of %d peers", n)
	}
}

// TestTheRunIsOverForAll: once nothing is left to do for this peer, nor for any other that
// is here.
func TestTheRunIsOverForAll(t *testing.T) {
	f := New("me")
	over := func() bool {
		select {
		case <-f.Flown():
			return true
		default:
			return false
		}
	}
	done := record("b", 90)
	done.Flags = Over
	observe(f, []transport.Record{record("me", 100), done})
	if over() {
		t.Error("over, though this peer is at work")
	}
	observe(f, []transport.Record{record("me", 100), done, record("c", 5)})
	if f.IsOver() || !f.Finish() || f.Finish() || !f.IsOver() {
		t.Error("the run is over for this peer before it says so, or not after")
	}
	<-f.Over()
	f.Settle()
	if !f.Settled() || over() || !slices.Equal(f.Working(), []transport.PeerID{"c"}) {
		t.Errorf("over, though %v are at work", f.Working())
	}
	observe(f, []transport.Record{record("me", 100), done})
	if !over() {
		t.Error("not over, though nobody is at work")
	}
	observe(f, []transport.Record{record("me", 100), record("d", 0)}) // comes too late
}

// TestTwoProcessesWithOneKeyAreNamed: lives that follow one another quickly are two
// processes, which is told once in a while.
func TestTwoProcessesWithOneKeyAreNamed(t *testing.T) {
	f, now := New("me"), time.Unix(1e9, 0)
	told := 0
	for life := range uint64(20) {
		r := record("twin", 5)
		r.Incarnation = life
		told += len(f.Observe([]transport.Record{r}, now.Add(time.Duration(life)*time.Second)).Duplicates)
	}
	now = now.Add(20 * time.Second)
	if told != 1 || f.Duplicates(now) != 1 {
		t.Errorf("told %d times of %d twins, want once of 1", told, f.Duplicates(now))
	}
	for range twinLives {
		f.Superseded(now)
	}
	if n := f.Duplicates(now); n != 2 {
		t.Errorf("%d twins with this peer's own, want 2", n)
	}
	if n := f.Duplicates(now.Add(time.Hour)); n != 0 {
		t.Errorf("%d twins an hour later", n)
	}
}

// TestHearing: a newer record of a member that is here counts, one of a stranger does not.
func TestHearing(t *testing.T) {
	f := New("me")
	observe(f, []transport.Record{record("b", 5)})
	newer, stranger := record("b", 9), record("c", 9)
	newer.Incarnation = 2
	f.Receive(newer)
	f.Receive(stranger)
	f.Receive(record("b", 1))
	if r, here := f.Record("b"); !here || r.Steps != 9 {
		t.Errorf("the record %+v, want that of 9 steps", r)
	}
	if f.Here("c") || len(f.Records()) != 1 {
		t.Error("a stranger is here")
	}
}

// TestTheAgeOfTheModelIsAtLeastOnesOwnSteps.
func TestTheAgeOfTheModelIsAtLeastOnesOwnSteps(t *testing.T) {
	f := New("me")
	f.SetAge(70)
	f.Stepped()
	if f.Age() != 71 || f.Head() != 70 || f.Steps() != 1 {
		t.Errorf("age %d, head %d", f.Age(), f.Head())
	}
	f.SetAge(0)
	if f.Age() != 1 {
		t.Errorf("age %d with a step of its own", f.Age())
	}
}
