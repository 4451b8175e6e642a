package control_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// An operator needs a transport, with a key whose id the members were given, and one member that it can
// reach: that passes on to the others what it says. Here they meet in memory; a transport over TCP is made
// by package p2pnet.
func ExampleOperator() {
	ctx := context.Background()
	network := memnet.New(memnet.Config{})
	outside, err := network.Transport("operator")
	if err != nil {
		log.Fatal(err)
	}
	inside, err := network.Transport("member")
	if err != nil {
		log.Fatal(err)
	}
	membership, err := network.Membership(inside, "digits")
	if err != nil {
		log.Fatal(err)
	}
	node, err := peer.Join(ctx, peer.Network{
		Run: "digits", Transport: inside, Membership: membership,
		Control: control.Config{Operator: outside.Self(), Name: "cellar"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	operator := control.Operator{Transport: outside, Run: "digits"}
	commands, err := operator.Send(ctx, node.Self(), control.Command{Kind: control.Pause, Why: "the power is needed elsewhere"})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range commands {
		fmt.Printf("%s counts: %s\n", c.Kind, c.Why)
	}
	observer := control.Observer{Transport: outside, Run: "digits"} // may have any key
	members, err := observer.Members(ctx, node.Self())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("members:", len(members))
	// Output:
	// pause counts: the power is needed elsewhere
	// members: 1
}
