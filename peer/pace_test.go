package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// startPair starts two peers on a network in memory and waits until they see each
// other.
func startPair(t *testing.T, network *memnet.Network, params func() *tensor.Params, exchange peer.Exchange) (pair [2]*peer.Peer) {
	t.Helper()
	for i := range pair {
		pair[i] = start(t, peer.Config{
			Run:      "digits",
			Params:   params(),
			Network:  inMemory(t, network, string(rune('0'+i)), "digits"),
			Join:     []string{"mem:0"}[:i],
			Training: peer.Training{Exchange: exchange, Optimizer: &optim.SGD{}},
		})
	}
	for _, p := range pair {
		if err := p.WaitMembers(t.Context(), len(pair)); err != nil {
			t.Fatal(err)
		}
	}
	return pair
}

// initiator is the one of a pair that initiates.
func initiator(t *testing.T, pair [2]*peer.Peer) *peer.Peer {
	t.Helper()
	for _, p := range pair {
		if p.Stats().Role == "active" {
			return p
		}
	}
	t.Fatal("no peer is active")
	return nil
}

// TestBudgetIsKept: with the codec left to the link and a budget, exchanges move what
// the budget allows within a tenth, by a coarser codec if it is small, and the trainer
// steps as if there were none.
func TestBudgetIsKept(t *testing.T) {
	t.Parallel()
	const pace = 20 * time.Millisecond
	for _, c := range []struct {
		name    string
		perHour float64
		rows    int // of a hundred values
		span    time.Duration
		codec   string
	}{
		{"2GB/h", 2e9, 1000, 90 * time.Second, "lattice8+4"},
		{"20MB/h", 20e6, 100, 10 * time.Minute, "lattice6+4"},
		{"2MB/h", 2e6, 100, 40 * time.Minute, "lattice6+4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if underRace && c.perHour != 20e6 {
				t.Skip("what counts are figures, which the race detector does not change")
			}
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{Link: mbit(1000, time.Millisecond)})
				pair := startPair(t, network, func() *tensor.Params { return rowsModel(c.rows) }, peer.Exchange{
					Codec: quant.Policy{Codec: quant.Auto}, Pace: averaging.Pace{BytesPerHour: c.perHour},
				})
				active := initiator(t, pair)
				still := make(tensor.Vector, 100*c.rows)
				for began := time.Now(); time.Since(began) < c.span; time.Sleep(pace) {
					if err := active.Apply(t.Context(), still, peer.Result{}); err != nil {
						t.Fatal(err)
					}
				}
				s := active.Stats()
				x := s.Exchanges
				moved, allowed := float64(x.BytesSent+x.BytesReceived), c.perHour*c.span.Hours()
				t.Logf("%d exchanges moved %.2f of the budget, one every %d steps", x.Initiated, moved/allowed, x.Every)
				if math.Abs(moved-allowed) > allowed/10 {
					t.Errorf("exchanges moved %.3g bytes, %.3g are allowed", moved, allowed)
				}
				if want := uint64(c.span / pace); s.Steps < want-2 || x.Failed > 0 {
					t.Errorf("%d steps, want %d; %d exchanges failed", s.Steps, want, x.Failed)
				}
				if x.Codecs[c.codec] != 1 {
					t.Errorf("codecs %v, want %s", x.Codecs, c.codec)
				}
			})
		})
	}
}

// TestAutoHidesCommunication: where the link decides how often to talk, an exchange
// takes about as long as the steps from one to the next, at most 256, and the
// trainer takes as many steps as one that is alone.
func TestAutoHidesCommunication(t *testing.T) {
	t.Parallel()
	const (
		pace = 10 * time.Millisecond
		most = 256
	)
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		pair := startPair(t, network, newModel, peer.Exchange{})
		for _, c := range []struct {
			name  string
			link  memnet.Link
			every int // about
		}{
			{"a fast link", mbit(1000, 0), 1},
			{"a slow one", mbit(1, 20*time.Millisecond), 22},
			{"a very slow one", mbit(1, 800*time.Millisecond), most},
			{"a fast one again", mbit(1000, 0), 1},
		} {
			network.SetLink(pair[0].Self(), pair[1].Self(), c.link)
			steps := func(n int) {
				for range n {
					time.Sleep(pace)
					for _, p := range pair {
						if err := step(t, p, idle); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			steps(10 * most) // H follows the link
			before, began := initiator(t, pair).Stats(), time.Now()
			const n = 500
			steps(n)
			after := initiator(t, pair).Stats()
			x := after.Exchanges
			done := int(x.Initiated - before.Exchanges.Initiated)
			t.Logf("%s: an exchange takes %s, one every %d steps, %d in %d steps", c.name, x.Took, x.Every, done, n)
			if took := time.Since(began); took != n*pace || x.LongestHold > 0 {
				t.Errorf("%s: %d steps took %s, the trainer was kept for %s", c.name, n, took, x.LongestHold)
			}
			if x.Every < c.every*3/4 || x.Every > c.every*5/4 {
				t.Errorf("%s: an exchange every %d steps, want about %d", c.name, x.Every, c.every)
			}
			if hides := time.Duration(x.Every) * pace; c.every < most && hides < x.Took*9/10 {
				t.Errorf("%s: an exchange takes %s, and %d steps take %s", c.name, x.Took, x.Every, hides)
			}
			// One that begins while another is under way waits for it.
			if least := int(time.Duration(n) * pace / max(time.Duration(x.Every)*pace, x.Took) * 3 / 4); done < least {
				t.Errorf("%s: %d exchanges in %d steps, want at least %d", c.name, done, n, least)
			}
		}
	})
}
