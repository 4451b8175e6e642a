package stages

import (
	"slices"
	"testing"

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
	if do := h.Forward(6, "a", 3, of(0)); len(do) != 1 || do[0].Kind != Reply || do[0].Answer != GivenUp {
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
