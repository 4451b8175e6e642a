package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

func drivenServer(t *testing.T, config Config) (*driven, *ParamServer) {
	t.Helper()
	m, err := NewParamServer(config, ASP{})
	if err != nil {
		t.Fatal(err)
	}
	return &driven{t: t, machine: m}, m
}

// A part of a push whose ACCEPT is lost after all of it was taken in is pushed again, and
// does not count again; with the other part the push is whole, and is answered.
func TestNoPartOfAPushCountsTwice(t *testing.T) {
	d, m := drivenServer(t, Config{Self: "a", Parts: 2, Server: "a"})
	d.view("a", "b")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
	d.handle(averaging.Event{Kind: averaging.Updated})
	push := averaging.Transfer{From: averaging.Gradient, Into: averaging.Sum, Add: true, Parts: 2, Round: 1}
	d.inbound(averaging.Offered, "b", 1, push)
	d.inbound(averaging.Finished, "b", 1, push)
	if answer := d.inbound(averaging.Offered, "b", 2, push); answer.Kind != averaging.Refuse {
		t.Errorf("part 0 is offered again: %s", answer)
	}
	push.Part = 1
	if answer := d.inbound(averaging.Offered, "b", 3, push); answer.Kind != averaging.Accept {
		t.Errorf("part 1 is offered: %s", answer)
	}
	before := m.clockOf("b")
	d.inbound(averaging.Finished, "b", 3, push)
	if m.clockOf("b") != before+1 {
		t.Errorf("with both parts in, b has made %d pushes, want 1", m.clockOf("b"))
	}
}

func (m *ParamServer) clockOf(id topology.PeerID) uint64 { return m.workers[m.hired(id)].clock }

// What an old server has sent of its parameters makes no model with what a new one sends.
func TestNoModelOfTwoServers(t *testing.T) {
	d, m := drivenServer(t, Config{Self: "a", Parts: 2})
	d.view("a", "b", "c")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
	m.stage = pulling
	parameters := averaging.Transfer{From: averaging.Parameters, Into: averaging.Parameters, Parts: 2, Round: 1}
	d.told("b", standing{leader: "b"}.word(77))
	d.inbound(averaging.Offered, "b", 1, parameters)
	d.inbound(averaging.Finished, "b", 1, parameters)
	d.told("b", standing{leader: "c"}.word(78))
	parameters.Part = 1
	d.inbound(averaging.Offered, "c", 1, parameters)
	d.inbound(averaging.Finished, "c", 1, parameters)
	if !m.waiting {
		t.Fatal("a half of each is taken for a model")
	}
	parameters.Part = 0
	d.inbound(averaging.Offered, "c", 2, parameters)
	d.inbound(averaging.Finished, "c", 2, parameters)
	if m.waiting {
		t.Error("the new server's model is not taken")
	}
}
