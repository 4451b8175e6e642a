package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
)

// A leader whose own gradient cannot be sent tries with others a few times, and then lets
// one of them lead, which can leave it out.
func TestLeaderThatCannotSendLetsAnotherLead(t *testing.T) {
	d, m := drivenLeader(t, true)
	for try := 1; m.leads(); try++ {
		if try > maxCharges {
			t.Fatalf("it still leads after %d attempts", try-1)
		}
		d.told("a", word(wordStatus, 0, 0, packed(m.ring.attempt, uint64(ready|phaseInitial), statusBits)))
		if len(m.out) == 0 {
			t.Fatal("it sends nothing")
		}
		d.handle(averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: m.out[0].id, Reason: averaging.Unfit})
	}
	if m.leader != "a" {
		t.Errorf("%q leads, want a", m.leader)
	}
}

// A member names itself to the leader.
func TestMemberThatCannotSendSaysSo(t *testing.T) {
	m, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("b", "a")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1, Initial: true})
	d.told("b", standing{leader: "b"}.word(77))
	at := place{rank: 1, size: 2, lanes: 1, next: mark("b"), previous: mark("b")}
	d.told("b", at.word(256))
	named := false
	for _, a := range d.handle(averaging.Event{Kind: averaging.Failed, Peer: "b", Exchange: m.out[0].id, Reason: averaging.Unfit}) {
		named = named || a.Kind == averaging.Tell && a.Word.Kind == wordBroken && a.Word.View == mark("a")
	}
	if !named {
		t.Error("it does not name itself")
	}
}

// A worker does not try again to push what cannot be sent: it asks for the parameters.
func TestWorkerThatCannotSendGoesOn(t *testing.T) {
	d, m := drivenServer(t, Config{Self: "a", Server: "b"})
	d.view("b", "a")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
	d.told("b", standing{leader: "b"}.word(77))
	d.told("b", word(wordHeard, 0, 77, 0))
	if len(m.out) != 1 {
		t.Fatal("it does not push")
	}
	d.handle(averaging.Event{Kind: averaging.Failed, Peer: "b", Exchange: m.out[0].id, Reason: averaging.Unfit})
	if m.stage != pulling || len(m.left) > 0 {
		t.Errorf("it is in stage %d, with parts %v left to push", m.stage, m.left)
	}
}
