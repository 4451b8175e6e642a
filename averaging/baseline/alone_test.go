package baseline_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
)

func TestAloneTalksToNobodyAndWaitsForNobody(t *testing.T) {
	var machine averaging.Machine = baseline.Alone{}
	for _, c := range []struct {
		event averaging.Event
		want  []averaging.Action
	}{
		{averaging.Event{Kind: averaging.StepDone}, []averaging.Action{{Kind: averaging.Proceed}}},
		{averaging.Event{Kind: averaging.Proposed, Peer: "a", Exchange: 7, Inbound: true},
			[]averaging.Action{{Kind: averaging.Refuse, Peer: "a", Exchange: 7, Inbound: true, Reason: averaging.WrongRole}}},
		{averaging.Event{Kind: averaging.ViewChanged}, nil},
		{averaging.Event{Kind: averaging.RunOver}, []averaging.Action{{Kind: averaging.Settled}}},
	} {
		got := machine.Handle(0, c.event, nil)
		if len(got) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
			t.Errorf("%v: %v, want %v", c.event, got, c.want)
		}
	}
}
