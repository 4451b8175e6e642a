package averaging_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// A machine is told what happens and says what to do: after each step it lets the
// trainer go on, and after the second it wants to exchange with the other member.
func ExampleADPSGD() {
	view, err := topology.NewView([]topology.Member{{ID: "a"}, {ID: "b"}})
	if err != nil {
		log.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		log.Fatal(err)
	}
	machine, err := averaging.NewADPSGD(averaging.Config{
		Self: "a", Pace: averaging.Pace{Every: 2}, Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err != nil {
		log.Fatal(err)
	}
	machine.Handle(0, averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay}, nil)
	for step := range 2 {
		now := time.Duration(step) * time.Second
		for _, action := range machine.Handle(now, averaging.Event{Kind: averaging.StepDone}, nil) {
			switch action.Kind {
			case averaging.Proceed:
				fmt.Println(now, "go on")
			case averaging.Propose:
				fmt.Println(now, "propose an exchange to", action.Peer)
			case averaging.SetTimer:
				fmt.Println(now, "call again in", action.After)
			}
		}
	}
	// Output:
	// 0s go on
	// 1s go on
	// 1s propose an exchange to b
	// 1s call again in 30s
}
