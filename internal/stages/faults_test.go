package stages

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// TestMessagesAreLost: one of fifty is. What is on its way is sent again, nothing waits for ever, and all adds up.
func TestMessagesAreLost(t *testing.T) {
	w := newWorld(t, 3, 2, 12, 3, even)
	w.losing = 0.02
	for range 6 {
		before := w.done
		w.run(20 * time.Second)
		w.addUp()
		if w.done-before < 600 {
			t.Errorf("%d of some 1,800 micro-batches came back in 20 s", w.done-before)
		}
	}
	if c := w.counts(); c.Again == 0 {
		t.Errorf("%+v", c)
	}
}

// TestSlowPasses: where a micro-batch takes far longer than answers are waited for at first, that is learned, and little
// is computed twice.
func TestSlowPasses(t *testing.T) {
	w := newWorld(t, 3, 3, 12, 3, func(int, int) time.Duration { return time.Second })
	w.run(400 * time.Second)
	first := w.counts()
	w.run(400 * time.Second)
	w.addUp()
	second := w.counts()
	if done := second.Done - first.Done; done < 320 || second.Again-first.Again > 10 { // at most 400
		t.Errorf("%d came back in 400 s, and %d were sent again; %d in the 400 s before", done, second.Again-first.Again, first.Again)
	}
}

// TestValuesOfNoUse: what the last stage cannot use is given up by two members, and its source goes on without it.
func TestValuesOfNoUse(t *testing.T) {
	w := newWorld(t, 2, 1, 4, 2, even)
	w.useless = func(id ID) bool { return id.Number%25 == 0 }
	w.run(20 * time.Second)
	w.addUp()
	c := w.counts()
	if share := float64(c.Lost) / float64(c.Came); share < 0.03 || share > 0.05 || c.Done < 800 {
		t.Errorf("%+v: one of 25 is of no use, and some 50 a second are done", c)
	}
}

// TestASilentMemberIsTriedAgain: one that answers nothing for a while is left alone for longer and longer, and used again once it answers.
func TestASilentMemberIsTriedAgain(t *testing.T) {
	s := NewSource("me", 2, 0)
	out, now := map[uint64]bool{}, time.Duration(0)
	sent := func(do []Action) (n int) {
		for _, a := range do {
			if a.Kind == Send {
				out[a.Number] = true
				n++
			}
		}
		return n
	}
	s.Members(now, []topology.PeerID{"a"})
	for range 2 {
		_, do := s.Make(now)
		sent(do)
	}
	tries := 0
	for ; now < 20*time.Second; now += lookAgain {
		tries += sent(s.Tick(now))
	}
	if tries < 2 || tries > 10 || s.Counts().Lost > 0 {
		t.Errorf("sent %d times to who is silent: %+v", tries, s.Counts())
	}
	for number := range out {
		s.Answer(now, "a", number, Done, Load{Each: time.Millisecond})
	}
	if c := s.Counts(); c.Done != 2 || s.Room() != 2 {
		t.Errorf("late answers are not taken: %+v", c)
	}
	if _, do := s.Make(now); sent(do) != 1 {
		t.Error("it is not used again")
	}
	for _, do := s.Make(now); now < 2*time.Hour; now += time.Second { // nobody answers any more
		sent(do)
		do = s.Tick(now)
	}
	if c := s.Counts(); c.Lost != 2 || c.Came != c.Done+c.Lost {
		t.Errorf("what nobody answers: %+v", c)
	}
}

// TestWhoRefusesIsLeftAlone: a member that refuses all, or takes all for useless, captures nothing, whatever load it tells.
func TestWhoRefusesIsLeftAlone(t *testing.T) {
	for i, load := range []Load{{}, {-5, time.Millisecond}, {math.MinInt, -1}, {math.MaxInt, math.MaxInt64}, {0, 1}, {1, math.MaxInt64/2 + 1}} {
		says := []Answer{NoRoom, GivenUp}[i%2]
		s, now := NewSource("me", 1, 0), time.Duration(0)
		s.Members(now, []topology.PeerID{"a", "refuser"})
		done, refused := 0, 0
		_, do := s.Make(now)
		for now < 10*time.Second {
			var next []Action
			for _, a := range do {
				switch {
				case a.Kind == Send && a.To == "refuser":
					refused++
					now += 2 * time.Millisecond
					_, more := s.Answer(now, "refuser", a.Number, says, load)
					next = append(next, more...)
				case a.Kind == Send:
					done++
					now += 30 * time.Millisecond
					s.Answer(now, "a", a.Number, Done, Load{Each: 30 * time.Millisecond})
					_, more := s.Make(now)
					next = append(next, more...)
				}
			}
			if do = next; len(do) == 0 {
				now += lookAgain
				do = s.Tick(now)
			}
		}
		if c := s.Counts(); done < 200 || refused > 2*done || c.Lost > c.Done/20 {
			t.Errorf("one that tells %+v refuses %d times, and %d are done in 10 s", load, refused, done)
		}
	}
}

// TestAnswersOfStrangers: only who was sent a micro-batch can answer it, and what comes from one sender is answered to no other.
func TestAnswersOfStrangers(t *testing.T) {
	s := NewSource("me", 1, 7)
	s.Members(0, []topology.PeerID{"a"})
	_, do := s.Make(0)
	if _, do = s.Answer(1, "stranger", do[0].Number, Done, Load{}); len(do) > 0 || s.Counts().Done > 0 || s.Counts().Late != 1 {
		t.Errorf("%v, %+v", do, s.Counts())
	}
	h, err := NewHolder(Config{Stages: 2})
	if err != nil {
		t.Fatal(err)
	}
	h.Members(0, []topology.PeerID{"z"}, func(topology.PeerID) bool { return true })
	id := ID{Source: "source", Number: 1}
	h.Forward(0, "x", 1, id)
	if do := h.Forward(0, "thief", 1, id); len(do) > 0 {
		t.Errorf("while another computes: %v", do)
	}
	do = h.Computed(1, Key{"x", 1}, false)
	if at, more := h.Answer(2, "stranger", do[0].Number, Done, Load{}); at != (Key{}) || len(more) > 0 {
		t.Errorf("a stranger's errors are taken: %v, %v", at, more)
	}
	h.Computed(3, Key{"thief", 1}, false)
	if at, _ := h.Answer(4, "z", do[0].Number, Done, Load{}); at != (Key{"x", 1}) {
		t.Errorf("errors are for %v", at)
	}
	for _, a := range h.Computed(5, Key{"x", 1}, false) {
		if a.Kind == Reply && a.To != "x" {
			t.Errorf("answered to %s", a.To)
		}
	}
}

// kinds are what actions ask for.
func kinds(do []Action) (k []Kind) {
	for _, a := range do {
		k = append(k, a.Kind)
	}
	return k
}

// TestOutputsAreAskedFor: a micro-batch that asks for outputs goes forward only, and what comes back goes back as it is.
func TestOutputsAreAskedFor(t *testing.T) {
	everybody := func(topology.PeerID) bool { return true }
	last, err := NewHolder(Config{Stage: 1, Stages: 2})
	first, err2 := NewHolder(Config{Stage: 0, Stages: 2, First: 100})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	s := NewSource("me", 1, 0)
	s.Asks = true
	s.Members(0, []topology.PeerID{"first"})
	first.Members(0, []topology.PeerID{"last"}, everybody)
	last.Members(0, nil, everybody)
	id, do := s.Make(0)
	if !id.Asks || !slices.Equal(kinds(do), []Kind{Send}) {
		t.Fatalf("made %+v: %+v", id, do)
	}
	sent := do[0].Number
	if do = first.Forward(1, "me", sent, id); !slices.Equal(kinds(do), []Kind{ComputeForward}) {
		t.Fatalf("%+v", do)
	}
	if do = first.Computed(2, Key{"me", sent}, false); !slices.Equal(kinds(do), []Kind{Send}) {
		t.Fatalf("%+v", do)
	}
	on := do[0].Number
	if do = last.Forward(3, "first", on, id); !slices.Equal(kinds(do), []Kind{ComputeForward}) {
		t.Fatalf("the last stage: %+v", do)
	}
	if do = last.Computed(4, Key{"first", on}, false); !slices.Equal(kinds(do), []Kind{Reply, Release}) || do[0].Answer != Done {
		t.Fatalf("the last stage: %+v", do)
	}
	at, do := first.Answer(5, "last", on, Done, Load{})
	if at != (Key{"me", sent}) || !slices.Equal(kinds(do), []Kind{Reply, Release}) || do[0].Answer != Done {
		t.Fatalf("back: %+v", do)
	}
	if came, do := s.Answer(6, "first", sent, Done, Load{}); came != id || !slices.Equal(kinds(do), []Kind{Release}) {
		t.Fatalf("at the source: %+v, %+v", came, do)
	}
	for _, c := range []Counts{s.Counts(), first.Counts(), last.Counts()} {
		if c.Came != 1 || c.Done != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// TestABrokenSendingGoesOnAtOnce to another member, without waiting for its time to be up.
func TestABrokenSendingGoesOnAtOnce(t *testing.T) {
	s := NewSource("me", 1, 0)
	s.Members(0, []topology.PeerID{"a", "b"})
	_, do := s.Make(0)
	to, number := do[0].To, do[0].Number
	if do = s.Broken(1, number); !slices.Equal(kinds(do), []Kind{Send}) || do[0].To == to {
		t.Fatalf("%+v after one to %s", do, to)
	}
	if more := s.Broken(2, number); len(more) > 0 {
		t.Errorf("broken twice: %+v", more)
	}
	if c := s.Counts(); c.Again != 1 {
		t.Errorf("%+v", c)
	}
}

// TestWhatIsSentAgainManyTimesIsWaitedFor: members of the next stage come and go, and who has a micro-batch then has time to answer,
// however often it was sent before.
func TestWhatIsSentAgainManyTimesIsWaitedFor(t *testing.T) {
	h, err := NewHolder(Config{Stages: 2})
	if err != nil {
		t.Fatal(err)
	}
	all, now := func(topology.PeerID) bool { return true }, time.Duration(0)
	h.Members(now, []topology.PeerID{"b"}, all)
	h.Forward(now, "a", 1, ID{Source: "a"})
	h.Computed(now, Key{"a", 1}, false)
	for i := range 100 {
		now += time.Millisecond
		h.Members(now, []topology.PeerID{[]topology.PeerID{"c", "b"}[i%2]}, all)
		if at, any := h.Next(now); !any || at < now+leastWait || at > now+mostWait {
			t.Fatalf("sent %d times, it is waited for until %s, at %s: %t", i+2, at, now, any)
		}
	}
}
