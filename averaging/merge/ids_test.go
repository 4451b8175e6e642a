package merge

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
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
	// The mirror: a part of the ring's, by a number such as the inner machine's have.
	d.Accept(collective.Event{Event: averaging.Event{Peer: "a", Exchange: 7, Inbound: true}}, 1)
	d.hear(averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: 7, Inbound: true})
	if len(d.In) != 0 {
		t.Error("the ring holds a transfer that is over")
	}
}

// Words of strangers change nothing: neither who coordinates, nor what is adopted.
func TestStrangersAreNotBelieved(t *testing.T) {
	d := newDriven(t, "p", members("p", "a", "b")...)
	d.hear(averaging.Event{Kind: averaging.RunOver})
	leader, stage := d.leader, d.stage
	for kind := collective.WordStatus; kind <= collective.WordAgain; kind++ {
		d.now += time.Millisecond
		for _, a := range d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Told, Peer: "stranger"}, Word: collective.Word{Kind: kind}}, nil) {
			t.Errorf("word %d of a stranger: %s", kind, a)
		}
	}
	if d.leader != leader || d.stage != stage {
		t.Errorf("%q coordinates in stage %d, want %q in %d", d.leader, d.stage, leader, stage)
	}
}

// A coordinator that cannot send its own model leaves that to the next in the order.
func TestCoordinatorThatCannotSendLetsAnother(t *testing.T) {
	d := newDriven(t, "b", topology.Member{ID: "b"}, topology.Member{ID: "a"})
	d.hear(averaging.Event{Kind: averaging.RunOver})
	if d.leader != "b" {
		t.Fatalf("%q coordinates", d.leader)
	}
	for try := 1; d.leader == "b"; try++ {
		if try > 3 {
			t.Fatalf("it still coordinates after %d attempts", try-1)
		}
		d.now += time.Millisecond
		status := collective.Word{Kind: collective.WordStatus, Round: d.Attempt(), Value: float64(collective.Idle)}
		d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Told, Peer: "a"}, Word: status}, nil)
		if len(d.Out) == 0 {
			t.Fatal("it sends nothing")
		}
		d.hear(averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: d.Out[0].ID, Reason: averaging.Unfit})
	}
}

// The attempts of a coordinator, of its second life too, are beyond those that others have been
// in: they would take no place in an earlier one.
func TestAttemptsGrow(t *testing.T) {
	d := newDriven(t, "b", topology.Member{ID: "b"}, topology.Member{ID: "a"})
	d.hear(averaging.Event{Kind: averaging.RunOver})
	d.now += time.Millisecond
	const last = 7<<8 | 3
	status := collective.Word{Kind: collective.WordStatus, Round: last, Value: float64(collective.Idle)}
	d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Told, Peer: "a"}, Word: status}, nil)
	if !d.Running || d.Attempt() <= last {
		t.Errorf("attempt %d after %d, running %t", d.Attempt(), last, d.Running)
	}
}

// TestAttemptsOfOneDoNotBindAnother: a coordinator that numbers its attempt as high as can be,
// and dies, does not keep members out of its successor's.
func TestAttemptsOfOneDoNotBindAnother(t *testing.T) {
	d := newDriven(t, "c", topology.Member{ID: "p"}, topology.Member{ID: "b"}, topology.Member{ID: "c"}) // the last
	d.hear(averaging.Event{Kind: averaging.RunOver})
	first, place := d.leader, func(from topology.PeerID, round uint64) {
		d.t.Helper()
		d.now += time.Millisecond
		ring := []topology.PeerID{from, "c"}
		word := collective.PlaceIn(ring, 1).Word(round)
		d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Told, Peer: from}, Word: word}, nil)
	}
	place(first, math.MaxUint64)
	if d.Attempt() != math.MaxUint64 {
		t.Fatalf("attempt %d of %q", d.Attempt(), first)
	}
	d.hear(averaging.Event{Kind: averaging.PeerLost, Peer: first})
	second := d.leader
	if second == first || second == "c" {
		t.Fatalf("%q coordinates after %q", second, first)
	}
	const round = 7 << 8
	place(second, round)
	if d.Attempt() != round {
		t.Errorf("attempt %d, want %d: the place of the next coordinator is refused", d.Attempt(), round)
	}
	place(second, round-1<<8)
	if d.Attempt() != round {
		t.Errorf("attempt %d: a place that comes late is taken", d.Attempt())
	}
}
