package baseline

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// The numbers of inbound exchanges are the partner's choice: none is lost between the two
// machines of a Merge.
func TestMergeGivesEndsToWhoAccepted(t *testing.T) {
	d, m := drivenMerge(t, "p")
	d.view("p", "a", "b")
	for i := range averaging.ExchangeID(3) {
		d.inbound(averaging.Proposed, "a", mergeIDs+1+i, averaging.Transfer{})
		d.inbound(averaging.Failed, "a", mergeIDs+1+i, averaging.Transfer{})
	}
	d.now += time.Hour
	if answer := d.inbound(averaging.Proposed, "b", 1, averaging.Transfer{}); answer.Kind != averaging.Accept {
		t.Errorf("the proposal of another, an hour later: %s", answer)
	}
	d.inbound(averaging.Finished, "b", 1, averaging.Transfer{})
	if m.serving != 0 {
		t.Errorf("%d exchanges are held to be under way", m.serving)
	}
	d.handle(averaging.Event{Kind: averaging.RunOver})
	if m.stage != inMerge {
		t.Errorf("the merge has not begun: stage %d, want %d", m.stage, inMerge)
	}
}

// The mirror: a part of the ring's, by a number such as the inner machine's have.
func TestMergeGivesTheRingItsEnds(t *testing.T) {
	d, m := drivenMerge(t, "p")
	d.view("p", "a", "b")
	d.handle(averaging.Event{Kind: averaging.RunOver})
	m.ring.accept(averaging.Event{Peer: "a", Exchange: 7, Inbound: true})
	d.inbound(averaging.Failed, "a", 7, averaging.Transfer{})
	if len(m.ring.in) != 0 {
		t.Error("the ring holds a transfer that is over")
	}
}
