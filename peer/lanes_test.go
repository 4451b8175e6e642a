package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/tensor"
)

// wideModel has three million parameters, in 92 slices.
func wideModel() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{2000, 1500}})
	if err != nil {
		panic(err) // the specs are constants
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i%7) - 3
	}
	return params
}

// betweenSteps is what two peers wait between looks at whether they have exchanged: a
// step of so large a model takes long, and an exchange longer still.
const betweenSteps = 100 * time.Millisecond

// exchangeOnce has two peers step until one exchange is complete, and returns how
// long that took.
func exchangeOnce(t *testing.T, lanes int, networks [2]peer.Network, join func() []string) time.Duration {
	t.Helper()
	took := make(chan time.Duration, 64)
	var peers [2]*peer.Peer
	for i := range peers {
		config := peer.Config{
			Run:     "digits",
			Params:  wideModel(),
			Network: networks[i],
			Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Lanes: lanes}, Hooks: peer.Hooks{Exchanged: func(x peer.Exchanged) {
				if x.Err != nil {
					return
				}
				if !x.Inbound {
					took <- x.Took
				}
			}}},
		}
		if i > 0 {
			config.Join = join()
		}
		peers[i] = start(t, config)
	}
	for _, p := range peers {
		if err := p.WaitMembers(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	for {
		for _, p := range peers {
			if err := step(t, p, idle); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case d := <-took:
			if a, b := peers[0].Stats().Exchanges, peers[1].Stats().Exchanges; a.Failed+b.Failed > 0 {
				t.Errorf("%d exchanges failed", a.Failed+b.Failed)
			}
			return d
		case <-time.After(betweenSteps):
		}
	}
}

// TestLanesAddUp: where each path is limited to 100 Mbit/s, two lanes are at least
// 1.8 times as fast as one.
func TestLanesAddUp(t *testing.T) {
	t.Parallel()
	path := memnet.Link{Delay: 5 * time.Millisecond, Bandwidth: 100e6 / 8}
	var took [3]time.Duration
	for lanes := 1; lanes <= 2; lanes++ {
		synctest.Test(t, func(t *testing.T) {
			network := memnet.New(memnet.Config{Link: path})
			networks := [2]peer.Network{inMemory(t, network, "0", "digits"), inMemory(t, network, "1", "digits")}
			took[lanes] = exchangeOnce(t, lanes, networks, func() []string { return []string{"mem:0"} })
		})
	}
	ratio := float64(took[1]) / float64(took[2])
	t.Logf("one lane %s, two lanes %s: %.2f times as fast", took[1], took[2], ratio)
	if ratio < 1.8 {
		t.Errorf("two lanes are %.2f times as fast as one", ratio)
	}
}

// TestLanesOverLoopback: several connections carry one exchange.
func TestLanesOverLoopback(t *testing.T) {
	t.Parallel()
	var networks [2]peer.Network
	for i := range networks {
		tr, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		networks[i].Transport = tr
	}
	host := networks[0].Transport.(*p2pnet.Transport)
	took := exchangeOnce(t, 3, networks, func() []string { return host.JoinAddresses() })
	t.Logf("the exchange took %s", took)
	if n := host.Connections(); n < 3 {
		t.Errorf("%d connections, want one for each of 3 lanes", n)
	}
}
