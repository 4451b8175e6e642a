package averaging

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// bursting is an active of sixteen peers that makes bursts, with what drives it: it tells the
// machine of an event and returns what is proposed.
func bursting(t *testing.T, burst int) (m *ADPSGD, tell func(Event) Action) {
	t.Helper()
	members := make([]topology.Member, 16)
	for i := range members {
		members[i] = topology.Member{ID: topology.PeerID(fmt.Sprint("p", i)), Role: topology.Active}
		if i%2 == 1 {
			members[i].Role = topology.Passive
		}
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = NewADPSGD(Config{Self: "p0", Rand: rand.New(rand.NewPCG(1, 1)), Pace: Pace{Every: 1, Burst: burst}}); err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	tell = func(e Event) (proposed Action) {
		now += time.Millisecond
		for _, a := range m.Handle(now, e, nil) {
			if a.Kind == Propose {
				proposed = a
			}
		}
		return proposed
	}
	tell(Event{Kind: ViewChanged, Overlay: overlay})
	return m, tell
}

// complete carries an exchange through, and returns what is proposed next.
func complete(tell func(Event) Action, p Action) Action {
	tell(Event{Kind: Accepted, Peer: p.Peer, Exchange: p.Exchange})
	return tell(Event{Kind: Finished, Peer: p.Peer, Exchange: p.Exchange})
}

// TestThePartingPassIsNoBurst: each partner is asked once.
func TestThePartingPassIsNoBurst(t *testing.T) {
	m, tell := bursting(t, 2)
	asked := map[topology.PeerID]int{}
	for p := tell(Event{Kind: RunOver}); p.Peer != ""; p = complete(tell, p) {
		asked[p.Peer]++
	}
	for _, p := range m.inside.partners {
		if asked[p.id] != 1 {
			t.Errorf("%s is asked %d times", p.id, asked[p.id])
		}
	}
}

// TestWhoRefusesInABurst is passed over: all others are asked for that exchange, and the next burst
// begins with the nearest partner again.
func TestWhoRefusesInABurst(t *testing.T) {
	m, tell := bursting(t, 2)
	step := func() Action {
		tell(Event{Kind: StepDone})
		return tell(Event{Kind: StepDone})
	}
	p := step()
	if p.Peer != m.inside.partners[0].id {
		t.Fatalf("a burst begins with %s, want %s", p.Peer, m.inside.partners[0].id)
	}
	p = complete(tell, p)
	for _, want := range m.inside.partners[1:4] {
		if p.Peer != want.id {
			t.Errorf("%q is asked, want %s", p.Peer, want.id)
		}
		p = tell(Event{Kind: Refused, Peer: p.Peer, Exchange: p.Exchange, Reason: Busy})
	}
	if p = complete(tell, p); p.Peer != "" {
		t.Errorf("a third exchange, with %s, in a burst of two", p.Peer)
	}
	if p = step(); p.Peer != m.inside.partners[0].id {
		t.Errorf("the next burst begins with %q, want %s", p.Peer, m.inside.partners[0].id)
	}
}

// TestAPaceWithAnotherBurst takes effect at once.
func TestAPaceWithAnotherBurst(t *testing.T) {
	m, _ := bursting(t, 1)
	other, _ := bursting(t, 3)
	if err := m.SetPace(Pace{Every: 1, Burst: 3}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(m.inside.partners), fmt.Sprint(other.inside.partners); got != want || m.inside.cursor != 0 {
		t.Errorf("partners %s from %d on, want %s", got, m.inside.cursor, want)
	}
	if err := m.SetPace(Pace{Every: 1, Burst: maxBurst + 1}); err == nil {
		t.Error("a burst of too many is taken")
	}
}
