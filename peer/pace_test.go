package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// startPair starts two peers on a network in memory and waits until they see each other. The
// first is the one that initiates.
func startPair(t *testing.T, network *memnet.Network, params func() *tensor.Params, exchange peer.Exchange) (pair [2]*peer.Peer) {
	t.Helper()
	for i := range pair {
		pair[i] = start(t, peer.Config{
			Run:      "digits",
			Params:   params(),
			Network:  inMemory(t, network, string(rune('0'+i)), "digits"),
			Join:     []string{"mem:0"}[:i],
			Training: peer.Training{Exchange: exchange},
		})
	}
	for _, p := range pair {
		if err := p.WaitMembers(t.Context(), len(pair)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // for the roles
	if pair[1].Stats().Role == "active" {
		pair[0], pair[1] = pair[1], pair[0]
	}
	return pair
}

// TestBudgetIsKept: with the codec left to the link and a budget, exchanges move what the budget
// allows within a tenth, by a coarser codec than the link has room for, and the trainer steps as if
// there were none.
func TestBudgetIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pace, perHour, span = 20 * time.Millisecond, 20e6, 10 * time.Minute
		network := memnet.New(memnet.Config{Link: memnet.Link{Bandwidth: 1e9 / 8, Delay: time.Millisecond / 2}})
		active := startPair(t, network, newModel, peer.Exchange{
			Codec: quant.Policy{Codec: quant.Auto}, Pace: averaging.Pace{BytesPerHour: perHour},
		})[0]
		still := make(tensor.Vector, newModel().Layout().Len())
		for began := time.Now(); time.Since(began) < span; time.Sleep(pace) {
			if err := active.Apply(t.Context(), still, peer.Result{}); err != nil {
				t.Fatal(err)
			}
		}
		s := active.Stats()
		x := s.Exchanges
		moved, allowed := float64(x.BytesSent+x.BytesReceived), perHour*span.Hours()
		t.Logf("%d exchanges moved %.2f of the budget, one every %d steps, codecs %v", x.Initiated, moved/allowed, x.Every, x.Codecs)
		if math.Abs(moved-allowed) > allowed/10 || x.Failed > 0 {
			t.Errorf("exchanges moved %.3g bytes, %.3g are allowed; %d failed", moved, allowed, x.Failed)
		}
		if want := uint64(span / pace); s.Steps < want-2 || x.LongestHold > 0 {
			t.Errorf("%d steps, want %d; held for %s", s.Steps, want, x.LongestHold)
		}
		if x.Codecs["lattice6+4"] != 1 || len(x.Links) != 1 || x.Links[0].Codec != "lattice6+4" {
			t.Errorf("codecs %v, links %+v", x.Codecs, x.Links)
		}
	})
}

// TestCloseBreaksExchangesOff: a peer that closes waits for an exchange no longer than for a frame, and then
// asks what has become of it.
func TestCloseBreaksExchangesOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		pair := startPair(t, network, newModel, peer.Exchange{SliceLen: 64, Pace: averaging.Pace{Every: 1}})
		network.SetLink(pair[0].Self(), pair[1].Self(), memnet.Link{Bandwidth: 600}) // at which an exchange takes a quarter of a minute
		for _, p := range pair {
			if err := step(t, p, idle); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		began := time.Now()
		if err := pair[0].Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < peer.Stall || took > 2*peer.Stall {
			t.Errorf("closing took %s", took)
		}
	})
}
