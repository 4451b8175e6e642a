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

// BenchmarkWords is a round of a rival of four peers over TCP, whose words lead a sum of few numbers.
func BenchmarkWords(b *testing.B) {
	f := peertest.Start(b, peertest.Config{Peers: 4, Loopback: true, Params: newModel, Configure: func(_ int, c *peer.Config) {
		c.Training.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self})
		}
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
}
