package baseline

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// twoServed is b, a worker of two parts in lock-step, whose servers are c and a, with a gradient that both have taken.
func twoServed(t *testing.T) (*driven, *ParamServers) {
	t.Helper()
	m, err := NewParamServers(Config{Self: "b", Deadline: time.Second}, make([]topology.PeerID, 2), BSP{})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 4, Initial: true})
	for part, server := range []topology.PeerID{"c", "a"} {
		d.told(server, collective.Message{Kind: messageLead, Round: uint64(part)<<partBit | 1, View: server.Fingerprint()})
		for _, f := range append([]collective.Flight(nil), m.parts[part].Out...) {
			id := f.ID*2 + averaging.ExchangeID(part)
			d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Accepted, Peer: f.Peer, Exchange: id}})
			d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Finished, Peer: f.Peer, Exchange: id}})
		}
	}
	return d, m
}

// answered has a part's server answer with parameters of a version, and tells whether they are taken.
func (d *driven) answered(m *ParamServers, part int, version uint64) bool {
	p := m.parts[part]
	id := averaging.ExchangeID(100+p.clock)*2 + averaging.ExchangeID(part)
	offer := collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Part: part, Parts: 2, Round: version<<versionBit | (p.clock + 1)}
	if d.inbound(collective.Offered, p.coordinator, id, offer).Kind != averaging.Accept {
		return false
	}
	d.inbound(averaging.Finished, p.coordinator, id, collective.Transfer{})
	return true
}

// TestAServerThatLiesAboutItsVersion costs the others a contribution without a gradient each time, and no more.
func TestAServerThatLiesAboutItsVersion(t *testing.T) {
	d, m := twoServed(t)
	if !d.answered(m, 0, maxVersion-1) || !d.answered(m, 1, 2) {
		t.Fatal("an answer is refused")
	}
	if !m.waiting {
		t.Fatal("part 1 is behind, and was not asked to go on without a gradient")
	}
	if !d.answered(m, 1, 3) || m.waiting {
		t.Errorf("the trainer still waits, with versions %d and %d", m.parts[0].version, m.parts[1].version)
	}
}

// TestVersionsHaveABound, so that one that grows from them stays within its bits.
func TestVersionsHaveABound(t *testing.T) {
	d, m := twoServed(t)
	if d.answered(m, 0, maxVersion) || m.parts[0].next >= maxVersion {
		t.Error("a version that an honest one may not grow from is taken")
	}
	if !d.answered(m, 0, 2) || m.parts[0].version != 2 {
		t.Error("after it, an honest answer is not taken")
	}
}

// TestAWordAboutAnOldVersion that comes late does not change what the transfer has said.
func TestAWordAboutAnOldVersion(t *testing.T) {
	d, m := twoServed(t)
	id := averaging.ExchangeID(200)
	d.inbound(collective.Offered, "c", id, collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Parts: 2, Round: 3<<versionBit | 1})
	d.told("c", message(messageVersion, 2, 0))
	d.inbound(averaging.Finished, "c", id, collective.Transfer{})
	if got := m.parts[0].version; got != 3 {
		t.Errorf("the parameters have version %d, want 3", got)
	}
}

// TestAStepIsNoGradient: a runtime that reports one does not keep the machine for ever.
func TestAStepIsNoGradient(t *testing.T) {
	d, m := twoServed(t)
	m.parts[0].version, m.parts[1].version = 1, 2
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.StepDone}})
}
