package conversations

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// mbit is a link of so many Mbit/s with a round trip.
func mbit(rate float64, roundTrip time.Duration) memnet.Link {
	return memnet.Link{Bandwidth: rate * 1e6 / 8, Delay: roundTrip / 2}
}

// failed is how many exchanges have failed at either side.
func (r *room) failed() int {
	return int(r.a.Counters.Counts().Failed["time"] + r.b.Counters.Counts().Dropped["time"])
}

// TestALinkDecidesOnTheCodec: by what exchanges show of it, which the log tells once for each
// decision, and anew once the link has become another.
func TestALinkDecidesOnTheCodec(t *testing.T) {
	kinds := []struct {
		name  string
		link  memnet.Link
		codec string
	}{
		{"fast", mbit(1000, 200*time.Microsecond), "lattice8+4"},
		{"slow", mbit(100, 40*time.Millisecond), "lattice6+4"},
		{"very slow", mbit(0.2, 200*time.Millisecond), "lattice4+1"}, // 6+4 takes 3.6 s, and 4+1 2.6 s
	}
	for i, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logged := observer.New(zapcore.InfoLevel)
				set := setting{values: 100_000, sliceLen: 8192, window: -1, codec: quant.Auto, step: 4 * time.Millisecond, deadline: 5 * time.Second, log: zap.New(core)}
				r := newRoom(t, set)
				before := r.side("before", set.withDefaults(), 0)
				before.knows(r.b)
				r.b.knows(r.a, before)
				before.propose(r.b, 1) // two that have exchanged with nobody speak in halves, whatever the codec
				pass(time.Second)
				logged.TakeAll()
				becomes := func(link memnet.Link) { r.network.SetLink(r.a.at.Self(), r.b.at.Self(), link) }
				becomes(kind.link)
				for range 4 {
					r.meet()
				}
				l := r.a.Host.Links.Measured()[0]
				t.Logf("%.3g Mbit/s and a round trip of %s measured", l.Rate*8/1e6, l.Round)
				if l.Codec() != kind.codec || l.Exchanges != 4 || r.failed() > 0 {
					t.Errorf("%s, after %d exchanges of which %d failed", l.Codec(), l.Exchanges, r.failed())
				}
				if trip := 2 * kind.link.Delay; l.Rate < kind.link.Bandwidth/2 || l.Rate > kind.link.Bandwidth*1.1 || l.Round < trip || l.Round > 2*trip {
					t.Errorf("%.3g bytes a second and %s measured", l.Rate, l.Round)
				}
				told := logged.FilterMessage("the link to a partner decides on its codec").All()
				if len(told) != 1 || told[0].ContextMap()["codec"] != kind.codec || len(told[0].Context) != 8 {
					t.Errorf("the log tells %v", told)
				}
				other := kinds[len(kinds)-1-i]
				becomes(other.link)
				for range 20 {
					r.meet()
				}
				told = logged.FilterMessage("the link to a partner decides on its codec").All()
				if l := r.a.Host.Links.Measured()[0]; l.Codec() != other.codec || len(told) > 3 { // by way of the middle one
					t.Errorf("it has become %s: %s, %d decisions", other.name, l.Codec(), len(told))
				}
			})
		})
	}
}

// TestALinkLearnsFromExchangesThatTakeTooLong: where not even the first can end in time, how far
// it came tells that the link is slow; with the coarsest codec they end.
func TestALinkLearnsFromExchangesThatTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 6+4 takes 2.7 s here, and 4+1 2.2 s.
		r := newRoom(t, setting{values: 100_000, sliceLen: 8192, window: -1, codec: quant.Auto, link: mbit(0.3, 200*time.Millisecond), deadline: 2400 * time.Millisecond})
		for range 30 {
			r.meet()
			pass(time.Second)
			r.b.RepairAll(stall)
		}
		if l := r.a.Host.Links.Measured(); len(l) != 1 || l[0].Codec() != "lattice4+1" || r.failed() == 0 {
			t.Errorf("%d failed; the link is %+v", r.failed(), l)
		}
		if got := r.a.loop.last(); got.Kind != averaging.Finished {
			t.Errorf("a hears %v in the end", got)
		}
	})
}

// TestAutoIsNoWorseThanACodecByName: on a link on which an exchange takes some 200 steps, models
// of which the link chooses the codec stay as near to each other, within a few percent, as with
// the best of those that it chooses among.
func TestAutoIsNoWorseThanACodecByName(t *testing.T) {
	if underRace {
		t.Skip("what counts are figures, which the race detector does not change")
	}
	var named []float64
	for _, codec := range []string{"lattice8+4", "lattice6+4", "lattice4+1"} {
		named = append(named, apartOverASlowLink(t, codec))
	}
	if apart := apartOverASlowLink(t, quant.Auto); apart > 1.05*slices.Min(named) {
		t.Errorf("auto: models are %.3g apart, and by name %.3g", apart, named)
	}
}

// apartOverASlowLink is how far apart two models are on the average that are moved at random.
func apartOverASlowLink(t *testing.T, codec string) (apart float64) {
	const (
		size   = 10_000
		pace   = time.Millisecond / 2
		steps  = 6000
		warmUp = 1500 // until the first exchange, of halves, has long ended
		every  = 50
	)
	random := rand.New(rand.NewPCG(10, 10))
	noise := make(tensor.Vector, 3*size)
	for i := range noise {
		noise[i] = float32(random.NormFloat64()) * 1e-3
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{values: size, sliceLen: 1024, window: -1, codec: codec, step: pace, link: mbit(1, 20*time.Millisecond)})
		for i := range steps {
			pass(pace)
			for _, s := range []*side{r.a, r.b} {
				from := random.IntN(len(noise) - size)
				s.Host.Replica.Add(noise[from : from+size])
			}
			if !r.a.Busy() {
				r.met++
				r.a.propose(r.b, r.met)
			}
			if i >= warmUp && i%every == 0 {
				apart += math.Sqrt(tensor.SquaredDistance(r.a.model(), r.b.model())) * every / (steps - warmUp)
			}
		}
		r.a.Wait()
		t.Logf("%s: %d exchanges, %.3g apart", codec, r.met, apart)
	})
	return apart
}

// TestLanesAddUp: where each path is limited to 100 Mbit/s, two lanes are at least 1.8 times as fast as one.
func TestLanesAddUp(t *testing.T) {
	var took [3]time.Duration
	for lanes := 1; lanes <= 2; lanes++ {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{values: 3_000_000, sliceLen: 32 << 10, window: -1, lanes: lanes, link: mbit(100, 10*time.Millisecond)})
			took[lanes] = r.meet()
		})
	}
	ratio := float64(took[1]) / float64(took[2])
	t.Logf("one lane %s, two lanes %s: %.2f times as fast", took[1], took[2], ratio)
	if ratio < 1.8 {
		t.Errorf("two lanes are %.2f times as fast as one", ratio)
	}
}

// TestLatticesOnASlowLink: where bandwidth is the limit, an exchange takes as much less time as
// it has fewer bits, since the window grows as slices shrink.
func TestLatticesOnASlowLink(t *testing.T) {
	var raw time.Duration
	for _, c := range []struct {
		codec string
		least float64
	}{{"raw", 1}, {"lattice6+4", 4.5}, {"int8", 3.6}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{values: 1 << 20, sliceLen: 8192, window: -1, codec: c.codec, link: mbit(6.4, 40*time.Millisecond)})
			delta := make(tensor.Vector, 1<<20)
			var took time.Duration
			for range 3 { // then they know how far apart they are
				took = r.meet()
				for i := range delta {
					delta[i] = float32(i*7%13-6) * 1e-3
				}
				r.a.Host.Replica.Add(delta)
			}
			if raw == 0 {
				raw = took
			}
			faster := raw.Seconds() / took.Seconds()
			t.Logf("raw %s, %s %s: %.2f times as fast", raw, c.codec, took, faster)
			if faster < c.least || r.failed() > 0 {
				t.Errorf("%s is %.2f times as fast as raw, want %.1f; %d failed", c.codec, faster, c.least, r.failed())
			}
		})
	}
}
