package peer_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// memberOf joins a run in memory. A Network without Transport and Membership is one over TCP.
func memberOf(ctx context.Context, network *memnet.Network, name string, join []string) (*peer.Node, error) {
	tr, err := network.Transport(name)
	if err != nil {
		return nil, err
	}
	membership, err := network.Membership(tr, "heights")
	if err != nil {
		return nil, err
	}
	return peer.Join(ctx, peer.Network{Run: "heights", Join: join, Transport: tr, Membership: membership})
}

// Each of three members has measured some people, and all learn the mean height: none tells another of a
// single person.
func ExampleNode_Sum() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	network := memnet.New(memnet.Config{})
	metres := [][]float64{{1.5, 1.75}, {2}, {1.75, 1.5, 2}}
	means := make([]string, len(metres))
	var join []string // of the first member: it has nobody to join
	var members sync.WaitGroup
	for i, own := range metres {
		node, err := memberOf(ctx, network, fmt.Sprint("member-", i), join)
		if err != nil {
			log.Fatal(err)
		}
		defer node.Close()
		join = node.JoinAddresses()
		members.Go(func() {
			if err := node.WaitMembers(ctx, len(metres)); err != nil {
				log.Fatal(err)
			}
			sum := 0.0
			for _, x := range own {
				sum += x
			}
			all, peers, err := node.Sum(ctx, "heights", []float64{sum, float64(len(own))})
			if err != nil {
				log.Fatal(err)
			}
			means[i] = fmt.Sprintf("%.2f m, %.0f people of %d members", all[0]/all[1], all[1], peers)
		})
	}
	members.Wait()
	for _, mean := range means {
		fmt.Println(mean)
	}
	// Output:
	// 1.75 m, 6 people of 3 members
	// 1.75 m, 6 people of 3 members
	// 1.75 m, 6 people of 3 members
}
