package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// drivenEnd is a server for which the run is over, as it is for its only worker, to which it
// sends the two parts of its parameters.
func drivenEnd(t *testing.T) (*driven, *ParamServer) {
	t.Helper()
	d, m := drivenServer(t, Config{Self: "a", Parts: 2, Server: "a"})
	d.view("a", "b")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
	d.handle(averaging.Event{Kind: averaging.Updated})
	d.handle(averaging.Event{Kind: averaging.RunOver})
	d.sleeps("b")
	if len(m.out) != 2 {
		t.Fatalf("%d parts are under way", len(m.out))
	}
	return d, m
}

// sleeps tells the server that the run is over for a worker.
func (d *driven) sleeps(id topology.PeerID) {
	d.told(id, word(wordStatus, 0, 0, packed(0, uint64(sleeping), statusBits)))
}

// A part of the parameters of the end that does not arrive comes again with the worker's next
// word, and only that: with the other, which has arrived, the worker has all.
func TestOnlyWhatIsMissingComesAgain(t *testing.T) {
	d, m := drivenEnd(t)
	first, second := m.out[0].id, m.out[1].id
	d.handle(averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: first})
	d.handle(averaging.Event{Kind: averaging.Failed, Peer: "b", Exchange: second})
	d.sleeps("b")
	if len(m.out) != 1 || m.out[0].transfer.Part != 1 {
		t.Fatalf("after part 1 has failed, these are under way: %+v", m.out)
	}
	d.handle(averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: m.out[0].id})
	if !m.settled {
		t.Error("the worker has both parts, and the server waits")
	}
}

// A part whose end did not reach the server is taken once more, and counts once.
func TestAPartOfTheEndIsTakenAgain(t *testing.T) {
	d, m := drivenServer(t, Config{Self: "b", Parts: 2, Server: "a"})
	d.view("a", "b")
	d.handle(averaging.Event{Kind: averaging.RunOver})
	d.told("a", standing{leader: "a", round: 9}.word(77))
	parameters := averaging.Transfer{From: averaging.Parameters, Into: averaging.Parameters, Parts: 2, Round: 9}
	for id := averaging.ExchangeID(1); id <= 2; id++ {
		if answer := d.inbound(averaging.Offered, "a", id, parameters); answer.Kind != averaging.Accept {
			t.Fatalf("part 0, offered for the time number %d: %s", id, answer)
		}
		d.inbound(averaging.Finished, "a", id, parameters)
	}
	if m.round == 9 {
		t.Fatal("part 0 twice is taken for a model")
	}
	parameters.Part = 1
	d.inbound(averaging.Offered, "a", 3, parameters)
	d.inbound(averaging.Finished, "a", 3, parameters)
	if m.round != 9 {
		t.Error("both parts are no model")
	}
}

// An update after some have been given the parameters makes them others: all get them anew.
func TestWhoSleepsGetsTheLastParameters(t *testing.T) {
	d, m := drivenEnd(t)
	d.handle(averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: m.out[0].id})
	m.round++ // as a worker does that comes late
	d.handle(averaging.Event{Kind: averaging.Told, Peer: "b", Word: word(wordHeard, 0, 0, 0)})
	if len(m.out) != 2 || m.out[0].transfer.Round != m.round {
		t.Errorf("after an update, these are under way: %+v", m.out)
	}
}
