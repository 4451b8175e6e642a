package stages

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// TestRounds: a holder computes what is of its round, keeps what is of the next, refuses what is of one before, or of one that is far,
// and steps when the round is over, even if it has computed nothing. Before it is in a round it takes nothing.
func TestRounds(t *testing.T) {
	h, err := NewHolder(Config{Stages: 1, Rounds: true, Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	h.Members(0, nil, func(topology.PeerID) bool { return true })
	of := func(round uint64) ID { return ID{Source: "a", Number: round, Round: round} }
	if do := h.Forward(0, "a", 9, of(0)); len(do) != 1 || do[0].Answer != NoRoom {
		t.Errorf("before it is in a round: %v", do)
	}
	h.Enter(1, 0)
	if do := h.Forward(1, "a", 1, of(1)); len(do) > 0 {
		t.Errorf("of a later round: %v", do)
	}
	if do := h.Forward(1, "a", 8, of(2)); len(do) != 1 || do[0].Answer != NoRoom {
		t.Errorf("of one that is far: %v", do)
	}
	if do := h.Forward(2, "a", 2, of(0)); !slices.Equal(kinds(do), []Kind{ComputeBack}) {
		t.Errorf("of this round: %v", do)
	}
	if do := h.RoundOver(3, 0); len(do) > 0 {
		t.Errorf("it steps while it computes: %v", do)
	}
	if do := h.Computed(4, Key{"a", 2}, false); !slices.Equal(kinds(do), []Kind{Reply, Release, Step}) {
		t.Errorf("the round is over: %v", do)
	}
	if do := h.Enter(5, 1); !slices.Equal(kinds(do), []Kind{ComputeBack}) {
		t.Errorf("in the next round: %v", do)
	}
	if do := h.Forward(6, "a", 3, of(0)); !slices.Equal(kinds(do), []Kind{Reply, Release}) || do[0].Answer != GivenUp {
		t.Errorf("of the round before: %v", do)
	}
	if do := h.Computed(7, Key{"a", 1}, false); slices.Contains(kinds(do), Step) {
		t.Errorf("before the round is over: %v", do)
	}
	h.RoundOver(8, 1)
	h.Enter(9, 2)
	if do := h.RoundOver(10, 2); !slices.Equal(kinds(do), []Kind{Step}) {
		t.Errorf("a round of others: %v", do)
	}
	if c := h.Counts(); c.Came != 2 || c.Done != 2 {
		t.Errorf("%+v", c)
	}
}

// TestWhatIsUnderWayWhenARoundIsOver came by two ways, and is waited for no more, wherever it is: it is given up, and what is asked
// for goes on.
func TestWhatIsUnderWayWhenARoundIsOver(t *testing.T) {
	h, err := NewHolder(Config{Stages: 2, Rounds: true, Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	h.Members(0, []topology.PeerID{"b"}, func(topology.PeerID) bool { return true })
	h.Enter(0, 0)
	h.Forward(1, "a", 1, ID{Source: "a"})
	sent := h.Computed(2, Key{"a", 1}, false)
	h.Forward(3, "a", 2, ID{Source: "a", Number: 1, Asks: true})
	h.Computed(4, Key{"a", 2}, false)
	h.Forward(5, "a", 3, ID{Source: "a", Number: 2})
	if do := h.RoundOver(6, 0); !slices.Equal(kinds(do), []Kind{Reply, Release}) || do[0].Answer != GivenUp || do[0].At.Number != 1 {
		t.Errorf("one is at the next stage, one asks, one is computed: %v", do)
	}
	if do := h.Computed(7, Key{"a", 3}, false); !slices.Equal(kinds(do), []Kind{Reply, Release, Step}) {
		t.Errorf("the last of the round: %v", do)
	}
	if _, do := h.Answer(8, "b", sent[0].Number, Done, Load{}); len(do) > 0 {
		t.Errorf("an answer that comes late: %v", do)
	}
	h.Enter(9, 1)
	if len(h.items) != 1 || !h.items[0].id.Asks || h.Counts().Lost != 2 {
		t.Errorf("%+v, of %d", h.Counts(), len(h.items))
	}
}

// TestASourceRestsBetweenRounds.
func TestASourceRestsBetweenRounds(t *testing.T) {
	s := NewSource("me", 2, 0)
	s.PerRound = 3
	s.Members(0, []topology.PeerID{"a"})
	var sent []uint64
	fill := func() {
		for s.Room() > 0 {
			id, do := s.Make(0)
			if id.Round != s.round {
				t.Errorf("round %d, not %d", id.Round, s.round)
			}
			for _, a := range do {
				sent = append(sent, a.Number)
			}
		}
	}
	if s.Room() > 0 || !s.Rests() {
		t.Error("it makes micro-batches before it is in a round")
	}
	for round := range uint64(3) {
		s.Round(round)
		fill()
		for len(sent) > 0 {
			if s.Rests() {
				t.Error("it rests with micro-batches on their way")
			}
			number := sent[0]
			sent = sent[1:]
			s.Answer(1, "a", number, Done, Load{})
			fill()
		}
		if !s.Rests() || s.Counts().Done != 3*(round+1) {
			t.Errorf("round %d: %+v", round, s.Counts())
		}
	}
}

// flockOf are the Rounds of members of stages, which tell each other all that they have to say, at once.
type flockOf struct {
	t     *testing.T
	of    map[topology.PeerID]*Rounds
	stage map[topology.PeerID]int
	now   time.Duration
}

func newFlockOf(t *testing.T, stage map[topology.PeerID]int) *flockOf {
	f := &flockOf{t: t, of: map[topology.PeerID]*Rounds{}, stage: map[topology.PeerID]int{}, now: time.Second}
	for id, s := range stage {
		f.comes(id, s)
	}
	return f
}

// comes adds a member, which the others see.
func (f *flockOf) comes(id topology.PeerID, stage int) {
	f.stage[id], f.of[id] = stage, NewRounds(id, stage, 2, time.Minute)
	f.see()
}

// goes has a member vanish.
func (f *flockOf) goes(id topology.PeerID) {
	delete(f.stage, id)
	delete(f.of, id)
	f.see()
}

func (f *flockOf) see() {
	for id, r := range f.of {
		others := maps.Clone(f.stage)
		delete(others, id)
		r.Members(f.now, others)
	}
}

// talk has all tell what they have to say.
func (f *flockOf) talk() {
	for range 2 {
		f.now += time.Second
		for _, id := range slices.Sorted(maps.Keys(f.of)) {
			to, w := f.of[id].ToSend(f.now)
			for _, other := range to {
				f.of[id].Sent(f.now, other, w, f.of[other] != nil && f.of[other].Received(f.now, id, w))
			}
		}
	}
}

// enters checks in which round a member is that begins a step at a version; none if that is -1.
func (f *flockOf) enters(id topology.PeerID, version uint64, want int, makes bool) {
	f.t.Helper()
	f.of[id].Begin(f.now, version)
	f.is(id, want, makes)
}

func (f *flockOf) is(id topology.PeerID, want int, makes bool) {
	f.t.Helper()
	f.talk()
	round, does, entered := f.of[id].Enter(f.now)
	if entered != (want >= 0) || entered && (int(round) != want || does != makes) {
		f.t.Errorf("%s is in round %d: %t, and makes micro-batches: %t; want %d, %t", id, round, entered, does, want, makes)
	}
}

// all checks that members are in a round which all begin at a version.
func (f *flockOf) all(version uint64, round int, ids ...topology.PeerID) {
	f.t.Helper()
	for _, id := range ids {
		f.of[id].Begin(f.now, version)
	}
	for _, id := range ids {
		f.is(id, round, true)
	}
}

// over checks for which members the round is over.
func (f *flockOf) over(want ...topology.PeerID) {
	f.t.Helper()
	f.talk()
	var over []topology.PeerID
	for _, id := range slices.Sorted(maps.Keys(f.of)) {
		if _, is := f.of[id].Over(f.now); is {
			over = append(over, id)
		}
	}
	if !slices.Equal(over, want) {
		f.t.Errorf("the round is over for %v, want %v", over, want)
	}
}

func (f *flockOf) rest(ids ...topology.PeerID) {
	for _, id := range ids {
		f.of[id].Rest(f.now)
	}
}

// TestARoundIsOverWhenAllRest: whoever has which stage, and once for each; a member that begins its step again is in the same round.
func TestARoundIsOverWhenAllRest(t *testing.T) {
	f := newFlockOf(t, map[topology.PeerID]int{"a": 0, "b": 0, "c": 1})
	for round := range 3 {
		f.all(uint64(round+1), round, "a", "b", "c")
		f.over()
		f.rest("a", "c")
		f.over()
		if f.of["a"].Begin(f.now, uint64(round+1)) {
			t.Error("the same version is another step")
		}
		f.is("a", -1, false)
		f.rest("b")
		f.over("a", "b", "c")
		f.over()
	}
	f.of["a"].Begin(f.now, 4)
	if to, w := f.of["a"].ToSend(f.now); len(to) > 0 {
		t.Errorf("%+v is told again to %v", w, to)
	}
}

// TestWhoIsWaitedFor: in the first round all who are there, though they have said nothing; later one that has just come is not, until
// it takes part, nor one that has gone; a stage without members is waited for.
func TestWhoIsWaitedFor(t *testing.T) {
	f := newFlockOf(t, map[topology.PeerID]int{"a": 0, "b": 0, "c": 1})
	f.enters("a", 1, -1, false)
	f.enters("c", 1, -1, false) // b trains, and has not begun
	f.enters("b", 1, 0, true)
	f.is("a", 0, true)
	f.rest("a", "b")
	f.over()
	f.is("c", 0, true)
	f.rest("c")
	f.over("a", "b", "c")
	f.enters("a", 2, 1, true)
	f.enters("b", 2, 1, true)
	f.enters("c", 2, 1, true)
	f.comes("d", 1)
	f.rest("a", "b", "c")
	f.over("a", "b", "c") // without d
	for _, id := range []topology.PeerID{"a", "b", "c"} {
		f.enters(id, 3, 2, true)
	}
	f.enters("d", 3, 2, false) // what it made now others might not wait for
	f.rest("a", "b", "c")
	f.over()
	f.rest("d")
	f.over("a", "b", "c", "d")
	for _, id := range []topology.PeerID{"a", "b", "c", "d"} {
		f.enters(id, 4, 3, true)
	}
	f.rest("a", "b", "c")
	f.over()
	f.goes("d")
	f.over("a", "b", "c")
	f.enters("a", 5, 4, true)
	f.enters("b", 5, 4, true)
	f.goes("c")
	f.rest("a", "b")
	f.over() // the second stage has nobody
	f.comes("e", 1)
	f.enters("e", 0, -1, false)
	f.enters("e", 2, 5, false) // nothing of round 4 is missing
	f.over("a", "b")
	f.enters("a", 6, 5, true)
	f.rest("e", "a")
	f.over()
	f.goes("e") // before anything of a round is back
	f.comes("d", 1)
	f.enters("d", 9, 5, false)
}

// TestARunGoesOn: members with checkpoints agree in which round they are, whatever the versions of their stages, and none begins
// before all have spoken.
func TestARunGoesOn(t *testing.T) {
	f := newFlockOf(t, map[topology.PeerID]int{"a": 0, "b": 0, "c": 1})
	f.enters("a", 2, -1, false)
	f.enters("b", 2, -1, false)
	f.enters("c", 7, 0, true)
	f.is("b", -1, false) // a says it
	f.is("a", 0, true)
	f.is("b", 0, true)
	f.rest("a", "b", "c")
	f.over("a", "b", "c")
	f.enters("c", 8, 1, true)
	f.enters("b", 4, 2, true) // it had not been in a round of its stage, and has the parameters of the one after
	f.enters("a", 4, 2, true)
}

// TestWhoKeepsAllWaiting is left out when nothing has moved for long, until it says something.
func TestWhoKeepsAllWaiting(t *testing.T) {
	f := newFlockOf(t, map[topology.PeerID]int{"a": 0, "b": 1, "c": 1})
	f.all(1, 0, "a", "b", "c")
	f.rest("a", "b")
	f.over()
	f.now += 50 * time.Second
	f.of["a"].Tick(f.now, 1) // something moves there
	f.now += 50 * time.Second
	f.over("b")
	f.now += 50 * time.Second
	f.over("a")
	f.enters("a", 2, 1, true)
	f.enters("b", 2, 1, true)
	f.rest("c")
	f.talk()
	f.rest("a", "b")
	f.over("c") // the two wait for it again
}

// TestManyReportsKeepNobodyWaiting: one that does not rest, and reports something else all the time, is left out as one that is silent.
func TestManyReportsKeepNobodyWaiting(t *testing.T) {
	const patience = time.Minute
	r := NewRounds("a", 0, 1, patience)
	r.Members(0, map[topology.PeerID]int{"b": 0})
	r.Begin(0, 1)
	r.Received(0, "b", Report{In: true, Version: 1})
	if _, _, entered := r.Enter(0); !entered {
		t.Fatal("it is in no round")
	}
	r.Rest(0)
	for now := time.Duration(0); now <= patience+2*time.Second; now += time.Second {
		r.Received(now, "b", Report{In: now%(2*time.Second) == 0, Version: uint64(now)})
		if _, over := r.Over(now); over != (now > patience) {
			t.Fatalf("after %s the round is over: %t", now, over)
		}
		if now > patience {
			return
		}
	}
}

// TestWhoStepsNoMoreFollows the rounds of others, and computes for them.
func TestWhoStepsNoMoreFollows(t *testing.T) {
	h, err := NewHolder(Config{Stages: 2, Rounds: true, Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	h.Enter(0, 3)
	if do := h.Forward(0, "a", 1, ID{Source: "a", Number: 1, Round: 4}); len(do) > 0 {
		t.Errorf("what is of a later round is not kept: %v", do)
	}
	if do := h.Follow(0); len(do) != 1 || do[0].Kind != ComputeForward {
		t.Errorf("it does not follow: %v", do)
	}
	h.Forward(0, "a", 2, ID{Source: "a", Number: 2, Round: 5})
	if do := h.Follow(0); len(do) > 0 {
		t.Errorf("two things are computed at once: %v", do)
	}
}
