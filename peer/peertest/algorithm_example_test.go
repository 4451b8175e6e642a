package peertest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/topology"
)

// gossip is an algorithm of one's own: after each step a peer exchanges with a member drawn
// at random, and takes part in what others propose.
type gossip struct {
	averaging.Config
	view    *topology.View
	last    averaging.ExchangeID
	running int // exchanges
}

func (g *gossip) Handle(_ time.Duration, e averaging.Event, do []averaging.Action) []averaging.Action {
	switch e.Kind {
	case averaging.ViewChanged:
		g.view = e.Overlay.View()
	case averaging.StepDone:
		do = append(do, averaging.Action{Kind: averaging.Proceed})
		if to := g.view.At(g.Rand.IntN(g.view.Len())).ID; to != g.Self && g.running == 0 {
			g.last++
			g.running++
			do = append(do, averaging.Action{Kind: averaging.Propose, Peer: to, Exchange: g.last, Overlap: g.running})
		}
	case averaging.Proposed:
		g.running++ // more than averaging.MaxOverlap at once may drive models apart
		do = append(do, averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Overlap: g.running})
	case averaging.Refused, averaging.Finished, averaging.Failed:
		g.running--
	case averaging.RunOver:
		do = append(do, averaging.Action{Kind: averaging.Settled})
	}
	return do
}

// Four peers find the mean of their numbers by an algorithm that is not the library's.
func ExampleSimulate_algorithm() {
	own := func(c averaging.Config) (averaging.Machine, error) { return &gossip{Config: c}, nil }
	outcome, err := peertest.Simulate(context.Background(), peertest.Simulation{
		Peers: 4, Task: points{2, 4, 3, 3}, Schedule: optim.Schedule{Rate: 0.01},
		Work: peer.Work{StepsPerPeer: 1000}, Exchange: peer.Exchange{Machine: own},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loss %.2f, models %.2f apart\n", outcome.Final.TestLoss, outcome.Final.Consensus)
	// Output: loss 0.50, models 0.00 apart
}
