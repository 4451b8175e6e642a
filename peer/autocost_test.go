package peer_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAutoIsNoWorseThanACodecByName: on a link of 10 Mbit/s, on which an exchange takes some
// 200 steps, models of which the link chooses the codec stay as near to each other, within
// a few percent, as with the best of those that it chooses among.
func TestAutoIsNoWorseThanACodecByName(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("what counts are figures, which the race detector does not change")
	}
	best, by := 0.0, ""
	for _, codec := range []string{"lattice8+4", "lattice6+4", "lattice4+1"} {
		if apart := apartAt10Mbit(t, codec); by == "" || apart < best {
			best, by = apart, codec
		}
	}
	if apart := apartAt10Mbit(t, quant.Auto); apart > 1.05*best {
		t.Errorf("auto: models are %.3g apart, and with %s %.3g", apart, by, best)
	}
}

// apartAt10Mbit is how far apart two models are on the average that two peers move at
// random.
func apartAt10Mbit(t *testing.T, codec string) (apart float64) {
	const (
		pace   = time.Millisecond / 2
		steps  = 6000
		warmup = 1500 // until the first exchange, of halves, has long ended
		every  = 50
	)
	random := rand.New(rand.NewPCG(10, 10))
	noise := make(tensor.Vector, 3*kindValues)
	for i := range noise {
		noise[i] = float32(random.NormFloat64()) * 1e-3
	}
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: mbit(10, 20*time.Millisecond)})
		pair := startPair(t, network, kindModel, peer.Exchange{
			Codec: quant.Policy{Codec: codec},
		})
		models := [...]tensor.Vector{make(tensor.Vector, kindValues), make(tensor.Vector, kindValues)}
		looks := 0
		for i := range steps {
			time.Sleep(pace)
			for _, p := range pair {
				from := random.IntN(len(noise) - kindValues)
				if err := p.Apply(t.Context(), noise[from:from+kindValues], peer.Result{}); err != nil {
					t.Fatal(err)
				}
			}
			if i < warmup || i%every > 0 {
				continue
			}
			for k, p := range pair {
				p.Snapshot(models[k], 0)
			}
			apart += math.Sqrt(tensor.SquaredDistance(models[0], models[1]))
			looks++
		}
		apart /= float64(looks)
		x := initiator(t, pair).Stats().Exchanges
		t.Logf("%s: %d exchanges of %s, %.3g apart, codecs %v", codec, x.Completed(), x.Took, apart, x.Codecs)
	})
	return apart
}
