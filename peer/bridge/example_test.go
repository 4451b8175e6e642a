package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/tensor"
)

// The trainer has two values in memory that both sides share, moves them as its own optimizer would, and
// commits. A real one is another process, in any language, and control is a socket or a pipe to it.
func ExampleServe() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	memory, err := os.CreateTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(memory.Name())
	defer memory.Close()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- bridge.Serve(ctx, there, memory, bridge.Config{Start: func(ctx context.Context, h bridge.Hello) (*peer.Peer, error) {
			return peer.Start(ctx, peer.Config{Run: h.Run, Params: h.Params, Join: h.Join, Network: peer.Network{Listen: []string{"127.0.0.1:0"}}})
		}})
	}()

	put := func(values ...float32) { // into the memory
		if _, err := memory.WriteAt(tensor.AppendBytes(nil, values), 0); err != nil {
			log.Fatal(err)
		}
	}
	answers := bufio.NewScanner(here)
	type answer struct {
		Start string
		Steps int
		Added bool
	}
	say := func(line string) (a answer) {
		fmt.Fprintln(here, line)
		if !answers.Scan() || json.Unmarshal(answers.Bytes(), &a) != nil {
			log.Fatalf("no answer to %s", line)
		}
		return a
	}
	put(1, 2)
	fmt.Println("start:", say(`{"op":"hello","v":1,"run":"digits","layout":[{"name":"weight","shape":[2]}]}`).Start)
	put(1.5, 1.75)
	commit := say(`{"op":"commit","steps":3,"samples":96,"loss":0.5}`)
	fmt.Println("added:", commit.Added, "steps:", commit.Steps)
	say(`{"op":"leave"}`)
	fmt.Println("served:", <-served)
	// Output:
	// start: founder
	// added: true steps: 3
	// served: <nil>
}
