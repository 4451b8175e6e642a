package peer_test

import (
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// BenchmarkWords is a round of four peers over TCP: of some who wait for a word of each other, at the rate at
// which words are heard, and of a rival, whose words lead a sum of few numbers.
func BenchmarkWords(b *testing.B) {
	for name, machine := range map[string]func(averaging.Config) (averaging.Machine, error){
		"alone": func(c averaging.Config) (averaging.Machine, error) { return newSoloist(c), nil },
		"allreduce": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self})
		},
	} {
		b.Run(name, func(b *testing.B) {
			f := peertest.Start(b, peertest.Config{Peers: 4, Loopback: true, Params: newModel, Configure: func(_ int, c *peer.Config) {
				c.Training.Exchange.Machine = machine
			}})
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for _, p := range f.Peers {
				group.Go(func() {
					for range b.N {
						if err := p.Step(b.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return peer.Result{}, nil }); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
		})
	}
}
