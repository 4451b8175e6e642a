package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// slowLink is 100 Mbit/s in each direction and a round trip of 40 ms.
func slowLink() memnet.Link { return memnet.Link{Delay: 20 * time.Millisecond, Bandwidth: 100e6 / 8} }

// manyValues is what a model needs for an exchange over the slow link to last much
// longer than its round trips, as it does with real models.
const manyValues = 16 << 20

// exchangeSlowly returns how long two peers that train take for an exchange over the
// slow link, once they know how far apart they are.
func exchangeSlowly(t *testing.T, codec string) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: slowLink(), Window: 4 << 20})
		exchanged := make(chan time.Duration, 64)
		var peers [2]*peer.Peer
		for i, name := range []string{"0", "1"} {
			layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{manyValues}})
			if err != nil {
				t.Fatal(err)
			}
			config := peer.Config{
				Run:     "digits",
				Params:  tensor.NewParams(layout),
				Network: inMemory(t, network, name, "digits"),
				Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: codec}, Lanes: 1}, Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 1}, Hooks: peer.Hooks{Exchanged: func(x peer.Exchanged) {
					if x.Err != nil {
						return
					}
					if !x.Inbound {
						exchanged <- x.Took
					}
				}}},
			}
			if i > 0 {
				config.Join = []string{"mem:0"}
			}
			peers[i] = start(t, config)
		}
		for _, p := range peers {
			if err := p.WaitMembers(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}
		draws := [2]peertest.Gradient{apart(0), apart(1)}
		for known := 0; known < 3; {
			for i, p := range peers {
				if err := step(t, p, draws[i]); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case took = <-exchanged:
				known++
			case <-time.After(time.Second):
			}
		}
		if s := peers[0].Stats().Exchanges; s.Failed > 0 {
			t.Errorf("%d exchanges failed", s.Failed)
		}
	})
	return took
}

// apart is a gradient that draws the models of two peers apart, about as much in each
// step.
func apart(i int) peertest.Gradient {
	var pattern [1 << 12]float32
	for k := range pattern {
		pattern[k] = float32((k*7+i*5)%13-6) * 1e-3
	}
	return func(_ int, _, grad tensor.Vector) (peer.Result, error) {
		for k := 0; k < len(grad); k += len(pattern) {
			copy(grad[k:], pattern[:])
		}
		return peer.Result{}, nil
	}
}

// TestLatticesOnASlowLink: where bandwidth is the limit, an exchange takes as much less
// time as it has fewer bits, since the window grows as slices shrink.
func TestLatticesOnASlowLink(t *testing.T) {
	t.Parallel()
	if testing.Short() || underRace {
		t.Skip("left out by -short and under the race detector: exchanges large models, which takes a minute there")
	}
	raw := exchangeSlowly(t, "raw")
	for codec, least := range map[string]float64{"lattice6+4": 4.5, "int8": 3.6} {
		took := exchangeSlowly(t, codec)
		faster := raw.Seconds() / took.Seconds()
		t.Logf("raw %s, %s %s: %.2f times as fast", raw, codec, took, faster)
		if faster < least {
			t.Errorf("%s is %.2f times as fast as raw, want %.1f", codec, faster, least)
		}
	}
}
