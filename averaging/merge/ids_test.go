package merge

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// driven is a machine whose every event a test gives by hand.
type driven struct {
	*Machine
	t   *testing.T
	now time.Duration
}

func newDriven(t *testing.T, self topology.PeerID, members ...topology.Member) *driven {
	t.Helper()
	inner, err := averaging.NewADPSGD(averaging.Config{Self: self, Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Self: self}, inner)
	if err != nil {
		t.Fatal(err)
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{Machine: m, t: t, now: time.Second}
	d.hear(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
	return d
}

func (d *driven) hear(e averaging.Event) []collective.Action {
	d.t.Helper()
	d.now += time.Millisecond
	return d.Decide(d.now, collective.Event{Event: e}, nil)
}

func members(self topology.PeerID, actives ...topology.PeerID) []topology.Member {
	list := []topology.Member{{ID: self, Role: topology.Passive}}
	for _, id := range actives {
		list = append(list, topology.Member{ID: id, Role: topology.Active})
	}
	return list
}

// The numbers of inbound exchanges are the partner's choice: none is lost between the two
// machines.
func TestEndsGoToWhoAccepted(t *testing.T) {
	d := newDriven(t, "p", members("p", "a", "b")...)
	for i := range averaging.ExchangeID(3) {
		d.hear(averaging.Event{Kind: averaging.Proposed, Peer: "a", Exchange: firstID + 1 + i, Inbound: true})
		d.hear(averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: firstID + 1 + i, Inbound: true})
	}
	d.now += time.Hour
	accepted := false
	for _, a := range d.hear(averaging.Event{Kind: averaging.Proposed, Peer: "b", Exchange: 1, Inbound: true}) {
		accepted = accepted || a.Kind == averaging.Accept
	}
	if !accepted {
		t.Error("the proposal of another, an hour later, is not accepted")
	}
	d.hear(averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: 1, Inbound: true})
	if d.serving != 0 {
		t.Errorf("%d exchanges are held to be under way", d.serving)
	}
	d.hear(averaging.Event{Kind: averaging.RunOver})
	if d.stage != merging {
		t.Errorf("the merge has not begun: stage %d, want %d", d.stage, merging)
	}
	// The mirror: a piece of the sum, by a number such as the inner machine's have.
	d.Accept(collective.Event{Event: averaging.Event{Peer: "a", Exchange: 7, Inbound: true}}, 1)
	d.hear(averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: 7, Inbound: true})
	if len(d.In) != 0 {
		t.Error("it holds a transfer that is over")
	}
}

// Words of strangers change nothing: neither who coordinates, nor what is adopted.
func TestStrangersAreNotBelieved(t *testing.T) {
	d := newDriven(t, "p", members("p", "a", "b")...)
	d.hear(averaging.Event{Kind: averaging.RunOver})
	leader, stage := d.Coordinator(), d.stage
	words := []collective.Message{{Kind: messageAsk}, {Kind: collective.MessageAck}, {Kind: collective.MessageRetry}}
	for kind := wire.SumStatus; kind <= wire.SumFault; kind++ {
		words = append(words, collective.Message{Sum: &wire.Sum{Kind: kind, Name: "merge 1", Attempt: 1 << 16, Size: 1, Next: "stranger"}})
	}
	for _, w := range words {
		d.now += time.Millisecond
		for _, a := range d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: "stranger"}, Message: w}, nil) {
			t.Errorf("%s of a stranger: %s", w, a)
		}
	}
	if d.Coordinator() != leader || d.stage != stage {
		t.Errorf("%q coordinates in stage %d, want %q in %d", d.Coordinator(), d.stage, leader, stage)
	}
}

// A peer that cannot send what is summed leaves the sum to the others, and asks for what they have.
func TestWhoCannotSendAsksForTheResult(t *testing.T) {
	d := newDriven(t, "b", topology.Member{ID: "b"}, topology.Member{ID: "a"})
	d.hear(averaging.Event{Kind: averaging.RunOver})
	d.now += time.Millisecond
	status := wire.Sum{Kind: wire.SumStatus, Name: "merge 1", Op: uint8(sums.Moved), Least: 1, Timeout: 30000, Term: 1, Question: 1}
	d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: "a"}, Message: collective.Message{Sum: &status}}, nil)
	if len(d.Out) == 0 {
		t.Fatal("it sends nothing")
	}
	asks := false
	for _, a := range d.hear(averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: d.Out[0].ID, Reason: averaging.Unfit}) {
		asks = asks || a.Kind == collective.Tell && a.Message.Kind == messageAsk && a.Message.Sum == nil
	}
	if !asks || d.stage != asking {
		t.Errorf("it asks: %t, in stage %d", asks, d.stage)
	}
}

// A sum that fails for all is followed by another.
func TestAFailedMergeIsMadeAnew(t *testing.T) {
	d := newDriven(t, "a", topology.Member{ID: "b"}, topology.Member{ID: "a", Role: topology.Passive})
	d.hear(averaging.Event{Kind: averaging.RunOver})
	leader := d.Coordinator()
	if leader == "a" {
		t.Fatal("a coordinates")
	}
	d.now += time.Millisecond
	again := false
	fault := collective.Message{Sum: &wire.Sum{Kind: wire.SumFault, Name: "merge 1", Op: 2, Detail: "attempts have come to nothing"}}
	for _, a := range d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: leader}, Message: fault}, nil) {
		again = again || a.Kind == collective.Tell && a.Message.Sum != nil && a.Message.Sum.Kind == wire.SumStatus && a.Message.Sum.Name == "merge 2"
	}
	if !again {
		t.Error("it does not begin another")
	}
}
