package paramclient

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const run = "served"

// The ranges of the model: two servers share wide, which takes more than one frame.
const (
	wide, narrow = 70_000, 7
	rate         = 0.5
)

func newLayout(t testing.TB) *tensor.Layout {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "wide", Shape: []int{wide}},
		tensor.Spec{Name: "frozen", Shape: []int{3}, Sharing: tensor.Frozen},
		tensor.Spec{Name: "narrow", Shape: []int{narrow}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// world is a run with members that train or serve, and others.
type world struct {
	t   *testing.T
	net *memnet.Network // nil: over loopback
	all []*peer.Node
}

func newWorld(t *testing.T) *world {
	return &world{t: t, net: memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})}
}

// member makes a node, which is closed at the end.
func (w *world) member(name string) *peer.Node {
	w.t.Helper()
	network := peer.Network{Run: run, Listen: []string{"127.0.0.1:0"}}
	if w.net != nil {
		network.Listen = nil
		tr, err := w.net.Transport(name)
		if err != nil {
			w.t.Fatal(err)
		}
		if network.Membership, err = w.net.Membership(tr, run); err != nil {
			w.t.Fatal(err)
		}
		network.Transport = tr
		w.t.Cleanup(func() { tr.Close() })
	}
	if len(w.all) > 0 {
		network.Join = w.all[0].JoinAddresses()[:1]
	}
	n, err := peer.Join(w.t.Context(), network)
	if err != nil {
		w.t.Fatal(err)
	}
	w.all = append(w.all, n)
	w.t.Cleanup(func() {
		if err := n.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return n
}

// trainer makes a member that trains by parameter servers, of which there are so many, or only serves.
func (w *world) trainer(name string, servers int, gate baseline.Gate, serveOnly bool) *peer.Trainer {
	w.t.Helper()
	return w.trains(w.member(name), func(c averaging.Config) (averaging.Machine, error) {
		config := baseline.Config{Self: c.Self, Deadline: 4 * time.Second, ServeOnly: serveOnly}
		return baseline.NewParamServers(config, make([]topology.PeerID, servers), gate)
	})
}

func (w *world) trains(n *peer.Node, machine func(averaging.Config) (averaging.Machine, error)) *peer.Trainer {
	w.t.Helper()
	trainer, err := n.Train(w.t.Context(), peer.Training{
		Params: tensor.NewParams(newLayout(w.t)), Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: rate},
		Exchange: peer.Exchange{Machine: machine},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return trainer
}

func (w *world) client(n *peer.Node) *Client {
	w.t.Helper()
	c, err := New(n, newLayout(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// soon is a context for what must come to an end.
func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	w.t.Cleanup(cancel)
	return ctx
}

// pulled are the values of a range, and their version.
func (w *world) pulled(c *Client, name string, values int) (tensor.Vector, Version) {
	w.t.Helper()
	x := make(tensor.Vector, values)
	version, err := c.Pull(w.soon(), name, x)
	if err != nil {
		w.t.Fatal(err)
	}
	return x, version
}

// counting is a gradient whose values can be told apart.
func counting(values int) tensor.Vector {
	g := make(tensor.Vector, values)
	for i := range g {
		g[i] = float32(i%1000) / 100
	}
	return g
}
