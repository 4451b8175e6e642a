package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// drivenPair is a server that has made its first update, of its own gradient, and has b for a
// worker.
func drivenPair(t *testing.T) (*driven, *ParamServer) {
	t.Helper()
	d, m := drivenServer(t, Config{Self: "a", Server: "a"})
	d.view("a", "b")
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.Updated}})
	return d, m
}

// A push whose ACCEPT is lost after it was taken in, all of it or some, is pushed again, and
// does not count again: it is answered.
func TestNoPushCountsTwice(t *testing.T) {
	for _, end := range []averaging.EventKind{averaging.Finished, averaging.Failed} {
		d, m := drivenPair(t)
		push := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1, Round: 1}
		if answer := d.inbound(collective.Offered, "b", 1, push); answer.Kind != averaging.Accept {
			t.Errorf("a push is answered by %s", answer)
		}
		if answer := d.inbound(collective.Offered, "b", 2, push); answer.Kind != averaging.Refuse {
			t.Errorf("while it is taken in, it is offered again: %s", answer)
		}
		d.inbound(end, "b", 1, push)
		if answer := d.inbound(collective.Offered, "b", 3, push); answer.Kind != averaging.Refuse {
			t.Errorf("when it is in, it is offered again: %s", answer)
		}
		d.told("b", message(messageStatus, 1, float64(pulling)))
		if w := m.board.of("b"); w.clock != 1 || w.pushes != 1 {
			t.Errorf("b has made %d pushes, and %d are answered: want 1", w.pushes, w.clock)
		}
		answered := 0
		for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: collective.Updated}}) {
			if a.Kind == collective.Send && a.Peer == "b" && a.Transfer.Round == 1 {
				answered++
			}
		}
		if answered != 1 {
			t.Errorf("the push is answered %d times", answered)
		}
	}
}

// A worker that is done is not waited for, though an older word of it comes after that.
func TestLateWordsTakeNobodyIn(t *testing.T) {
	d, m := drivenPair(t)
	d.told("b", message(messageStatus, 3, float64(resting)))
	d.told("b", message(messageStatus, 3, float64(pulling)))
	d.told("b", message(messageStatus, 3, float64(resting)))
	if m.board.of("b") != nil || len(m.retired) != 1 {
		t.Errorf("b works: %t; %d are done", m.board.of("b") != nil, len(m.retired))
	}
}
