package paramclient_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/paramclient"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// Two members serve a model and do not train. A third has a training loop of its own, and computes a gradient for one range.
func Example() {
	ctx := context.Background()
	network := memnet.New(memnet.Config{})
	join := func(name string, to ...string) *peer.Node {
		tr, err := network.Transport(name)
		if err != nil {
			log.Fatal(err)
		}
		membership, err := network.Membership(tr, "adverts")
		if err != nil {
			log.Fatal(err)
		}
		node, err := peer.Join(ctx, peer.Network{Run: "adverts", Join: to, Transport: tr, Membership: membership})
		if err != nil {
			log.Fatal(err)
		}
		return node
	}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "hidden", Shape: []int{100, 8}}, tensor.Spec{Name: "out", Shape: []int{4}})
	if err != nil {
		log.Fatal(err)
	}
	node := join("service")
	defer node.Close()
	for _, name := range []string{"server-1", "server-2"} {
		server := join(name, node.JoinAddresses()...)
		defer server.Close()
		_, err := server.Train(ctx, peer.Training{
			Params: tensor.NewParams(layout), Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 0.5},
			Exchange: peer.Exchange{Machine: func(c averaging.Config) (averaging.Machine, error) {
				return baseline.NewParamServers(baseline.Config{Self: c.Self, ServeOnly: true}, make([]topology.PeerID, 2), baseline.ASP{})
			}},
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	client, err := paramclient.New(node, layout)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	out := make(tensor.Vector, 4)
	version, err := client.Pull(ctx, "out", out)
	if err != nil {
		log.Fatal(err)
	}
	gradient := tensor.Vector{0, 0, -2, 1} // at out, over 32 samples of the service's own
	if err := client.Push(ctx, "out", paramclient.Gradient{Values: gradient, Samples: 32, Version: version}); err != nil {
		log.Fatal(err)
	}
	for next := version; next.Updates() == version.Updates(); {
		if next, err = client.Pull(ctx, "out", out); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(out)
	// Output: [0 0 1 -0.5]
}
