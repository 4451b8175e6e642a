package baseline_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// A push from outside makes an update of its own, of a worker's share, unless workers are in lock-step: then it waits for
// them, and they do not wait for it. At who does not serve, or does not know who does, it makes none.
func TestPushesFromOutside(t *testing.T) {
	for _, c := range []struct {
		gate      string
		only      bool // it serves and does not train
		waits     bool
		share     float64
		elsewhere topology.PeerID
	}{
		{gate: "asp", share: 1}, {gate: "ssp", share: 1}, {gate: "asp", only: true, share: 1}, {gate: "bsp", only: true}, {gate: "bsp", waits: true},
		{gate: "asp", waits: true, elsewhere: "0"},
	} {
		config := baseline.Config{Self: "a", ServeOnly: c.only, Deadline: time.Second}
		m, err := baseline.NewParamServers(config, []topology.PeerID{c.elsewhere, c.elsewhere}, gates(t)[c.gate]())
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		does := func(e collective.Event) (updates []collective.Action) {
			now += time.Millisecond
			for _, a := range m.Decide(now, e, nil) {
				if a.Kind == collective.Update {
					updates = append(updates, a)
				}
			}
			return updates
		}
		members := []topology.Member{{ID: "a", ServesOnly: c.only}}
		if c.elsewhere != "" {
			members = append(members, topology.Member{ID: c.elsewhere})
		}
		does(collective.Event{Event: averaging.Event{Kind: averaging.ViewChanged, Overlay: overlayOf(t, members...)}})
		pushed := collective.Event{Event: averaging.Event{Kind: collective.Pushed}, Samples: 6, Transfer: collective.Transfer{Part: 1, Parts: 2}}
		if by, _ := m.Served(1); c.only && by == "" {
			if does(pushed) != nil {
				t.Errorf("%+v: one that does not serve makes an update", c)
			}
			does(collective.Event{Event: averaging.Event{Kind: collective.Wanted}})
		} else if !c.only {
			done := collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 2}
			if n := len(does(done)); n != 2 && c.elsewhere == "" {
				t.Fatalf("%+v: %d updates of the parts", c, n)
			}
			for part := range 2 {
				does(collective.Event{Event: averaging.Event{Kind: collective.Updated}, Transfer: collective.Transfer{Part: part, Parts: 2}})
			}
		}
		got := does(pushed)
		switch by, version := m.Served(1); {
		case m.Traits().Server.Parts() != 2 || (by == "a") != (c.elsewhere == "") || by == "a" && version == 0:
			t.Errorf("%+v: %q serves version %d of %d parts", c, by, version, m.Parts())
		case c.waits && len(got) > 0, !c.waits && len(got) != 1:
			t.Errorf("%+v: %d updates", c, len(got))
		case !c.waits && (got[0].Transfer.Part != 1 || got[0].Share != c.share || got[0].Weight != 6*c.share):
			t.Errorf("%+v: %s", c, got[0])
		}
	}
}

func overlayOf(t *testing.T, members ...topology.Member) *topology.Overlay {
	t.Helper()
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}
