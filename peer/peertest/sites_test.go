package peertest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// apart is a simulation at two sites of 4, with a narrow and long link between.
func apart() peertest.Simulation {
	s := simulation(8)
	s.Exchange.Pace = averaging.Pace{}
	s.World.Links.Sites = []int{0, 1, 0, 1, 0, 1, 0, 1}
	s.World.Links.Across = memnet.Link{Delay: 60 * time.Millisecond, Bandwidth: 5e4}
	s.World.Links.Slow = map[int]float64{3: 2}
	return s
}

// TestSitesInASimulation: peers who tell where they are send little across, and who is slow is as far away as the others.
func TestSitesInASimulation(t *testing.T) {
	told := simulate(t, apart())
	s := apart()
	s.World.Links.Blind = true
	blind := simulate(t, s)
	s.World.Links.Sites = nil
	if o := simulate(t, s); o.Traffic.Across != 0 || o.Final.Across != 0 {
		t.Errorf("%d bytes across without sites", o.Traffic.Across)
	}
	t.Logf("across: %d bytes blind, %d told", blind.Traffic.Across, told.Traffic.Across)
	if told.Traffic.Across == 0 || 3*told.Traffic.Across > blind.Traffic.Across || told.Traffic.Exchanges < 2*blind.Traffic.Exchanges {
		t.Errorf("told: %+v; blind: %+v", told.Traffic, blind.Traffic)
	}
	if most := 5e4 * 2 * blind.Final.Seconds; float64(blind.Curve[len(blind.Curve)-1].Across) > most {
		t.Errorf("%d bytes went across in %.2f s, where two sites send %.0f", blind.Traffic.Across, blind.Final.Seconds, most)
	}
}

// TestSlowPeersAreAsFarAway: that a peer's link carries less makes it no shorter, between sites too.
func TestSlowPeersAreAsFarAway(t *testing.T) {
	exchanges := func(slow map[int]float64) uint64 {
		s := simulation(2)
		s.World.Links = peertest.Links{Port: 1e9, Sites: []int{0, 1}, Blind: true, Across: memnet.Link{Delay: 200 * time.Millisecond}, Slow: slow}
		return simulate(t, s).Traffic.Exchanges
	}
	if near, far := exchanges(nil), exchanges(map[int]float64{1: 1.001}); near == 0 || far > near+1 {
		t.Errorf("%d exchanges over a link of 200 ms, and %d if one peer is slow", near, far)
	}
}

// TestBadSites are refused with all their faults.
func TestBadSites(t *testing.T) {
	s := apart()
	s.World.Links.Sites = s.World.Links.Sites[1:]
	s.World.Links.Across.Loss = 1
	s.Watch.Record = new(bytes.Buffer)
	_, err := peertest.Simulate(t.Context(), s)
	for _, want := range []string{"Links.Sites has 7 peers of 8", "Links.Across", "a recording has no sites"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	s.World.Replay = &peertest.Recording{Peers: 8}
	if _, err = peertest.Simulate(t.Context(), s); err == nil || !strings.Contains(err.Error(), "Replay are both given") {
		t.Errorf("a replay with sites: %v", err)
	}
}
