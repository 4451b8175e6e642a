package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
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

// An empty push has no samples: those of the worker's push before say nothing about the update that it is in.
func TestAnEmptyPushHasNoSamples(t *testing.T) {
	d, _ := drivenPair(t)
	d.view("a", "b", "c")
	d.told("c", message(messageStatus, 0, float64(pulling)))
	push := func(id topology.PeerID, exchange averaging.ExchangeID, samples float64) {
		part := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1, Round: 1}
		d.told(id, message(messageSamples, 1, samples))
		d.inbound(collective.Offered, id, exchange, part)
		d.inbound(averaging.Finished, id, exchange, part)
	}
	push("b", 1, 50)
	for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: collective.Updated}}) {
		if a.Kind == collective.Send && a.Peer == "b" {
			d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: a.Exchange}, Transfer: a.Transfer})
		}
	}
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1}) // an update is being made
	push("c", 2, 10)
	d.told("b", message(messageStatus, 2, float64(pulling)))
	updates := 0
	for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: collective.Updated}}) {
		if a.Kind != collective.Update {
			continue
		}
		if updates++; a.Weight != 10 {
			t.Errorf("an update of 10 samples and an empty push is of pushes of %g", a.Weight)
		}
	}
	if updates != 1 {
		t.Errorf("%d updates", updates)
	}
}
