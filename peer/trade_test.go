package peer_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// trader is a trainer with an optimizer of its own, which works on x.
type trader struct {
	x, base tensor.Vector
	added   []float64 // what it has committed
}

func newTrader(t *testing.T, p *peer.Peer) *trader {
	x := parameters(t, p)
	return &trader{x: x, base: slices.Clone(x), added: make([]float64, len(x))}
}

// work takes local steps towards a point, and notes how far they come together.
func (d *trader) work(point float32, steps int) {
	for range steps {
		for i := range d.x {
			d.x[i] -= 0.02 * (d.x[i] - point)
		}
	}
}

// commit commits them.
func (d *trader) commit(t *testing.T, p *peer.Peer, steps int) error {
	way := make([]float64, len(d.x))
	for i, v := range d.x {
		way[i] = float64(v) - float64(d.base[i])
	}
	err := p.Trade(t.Context(), d.x, d.base, peer.Made{Steps: steps, Samples: steps, Loss: 1})
	if err != nil {
		return err
	}
	for i, v := range way {
		d.added[i] += v
	}
	if !slices.Equal(d.x, d.base) {
		t.Error("x and base differ")
	}
	return nil
}

// TestWhatIsTradedIsInTheSumOnce: with exchanges under way all the time, several steps a
// commit. Each peer counts its own, and the machine hears of each.
func TestWhatIsTradedIsInTheSumOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const peers, commits = 4, 100
		flock := peertest.Start(t, peertest.Config{
			Peers: peers, Params: newModel, Link: memnet.Link{Delay: 3 * time.Millisecond},
			Configure: func(_ int, c *peer.Config) { c.Training.Exchange.Pace.Every, c.Training.Exchange.SliceLen = 3, 64 },
		})
		traders, sum := make([]*trader, peers), make([]float64, 2050)
		var working sync.WaitGroup
		for i, p := range flock.Peers {
			traders[i] = newTrader(t, p)
			for k, v := range traders[i].x {
				sum[k] += float64(v)
			}
			working.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 7))
				for range commits {
					steps := 1 + random.IntN(8)
					time.Sleep(time.Duration(steps) * time.Millisecond)
					traders[i].work(float32(common+i), steps)
					if err := traders[i].commit(t, p, steps); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		working.Wait()
		time.Sleep(time.Second) // exchanges under way end
		after, exchanges := make([]float64, 2050), uint64(0)
		for i, x := range flock.Models() {
			for k, v := range x {
				sum[k] += traders[i].added[k]
				after[k] += float64(v)
			}
			exchanges += flock.Peers[i].Stats().Exchanges.Completed()
		}
		for k := range sum {
			if off := math.Abs(sum[k] - after[k]); off > 1e-3 { // float32's, in sums of 80
				t.Fatalf("value %d: the models' sum is %g, and %g was committed: %g apart after %d exchanges", k, after[k], sum[k], off, exchanges)
			}
		}
		if exchanges < 10*peers {
			t.Errorf("only %d exchanges: the test shows nothing", exchanges)
		}
	})
}

// TestTradeRefuses what it cannot take, with nothing changed; the trainer mends it and goes on.
func TestTradeRefuses(t *testing.T) {
	p := startAlone(t, func(c *peer.Config) { c.Training.Work.StepsPerPeer = 9 })
	d := newTrader(t, p)
	before := slices.Clone(d.x)
	d.x[7] = float32(math.NaN())
	if err := p.Trade(t.Context(), d.x, d.base, peer.Made{Steps: 1}); !errors.Is(err, optim.ErrNotFinite) || !slices.Equal(d.base, before) || !math.IsNaN(float64(d.x[7])) {
		t.Errorf("NaN: %v", err)
	}
	copy(d.x, before)
	for name, c := range map[string]struct {
		x, base tensor.Vector
		made    peer.Made
	}{
		"x too short":     {d.x[1:], d.base, peer.Made{Steps: 1}},
		"base too short":  {d.x, d.base[1:], peer.Made{Steps: 1}},
		"no base":         {d.x, nil, peer.Made{Steps: 1}},
		"steps below 0":   {d.x, d.base, peer.Made{Steps: -1}},
		"too many steps":  {d.x, d.base, peer.Made{Steps: peer.MaxTraded + 1}},
		"samples below 0": {d.x, d.base, peer.Made{Steps: 1, Samples: -1}},
	} {
		if err := p.Trade(t.Context(), c.x, c.base, c.made); err == nil || !slices.Equal(d.x, before) || !slices.Equal(parameters(t, p), before) {
			t.Errorf("%s: %v, or something changed", name, err)
		}
	}
	d.x[0] += 0.5
	if err := d.commit(t, p, 9); err != nil || p.Stats().Steps != 9 {
		t.Errorf("%v after %d steps", err, p.Stats().Steps)
	}
	d.x[0] += 0.5
	if err := d.commit(t, p, 1); !errors.Is(err, peer.ErrRunOver) || d.x[0] != before[0]+1 || d.base[0] != before[0]+0.5 {
		t.Errorf("after the run: %v, x %g, base %g", err, d.x[0], d.base[0])
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.commit(t, p, 1); !errors.Is(err, peer.ErrClosed) && !errors.Is(err, peer.ErrRunOver) || d.x[0] != before[0]+1 {
		t.Errorf("after Close: %v, x %g", err, d.x[0])
	}
}
