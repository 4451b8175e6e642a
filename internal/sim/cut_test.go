package sim_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// stirrer trains with random steps and keeps account of them.
type stirrer struct {
	rng   *rand.Rand
	scale float64
	added []float64
}

func newStirrer(seed uint64, values int) *stirrer {
	return &stirrer{rng: rand.New(rand.NewPCG(seed, 0)), scale: 0.02, added: make([]float64, values)}
}

func (s *stirrer) Duration(peer, _, _ int) time.Duration {
	return time.Duration(4+peer%3)*time.Millisecond + time.Duration(s.rng.IntN(1000))*time.Microsecond
}

func (s *stirrer) Step(_, _ int, _, delta []float32) {
	for i := range delta {
		delta[i] = float32(s.rng.NormFloat64() * s.scale)
		s.added[i] += float64(delta[i])
	}
}

// cut is one planned for a stream, with the frames that its direction carried.
type cut struct {
	stream *sim.Stream
	writer int
	at     int64
	frames []wire.Type
	ends   []int64 // of the frames, in bytes
}

// record notes a frame and lets it pass.
func (c *cut) record(frame []byte) [][]byte {
	c.frames = append(c.frames, typeOf(frame))
	end := int64(len(frame))
	if n := len(c.ends); n > 0 {
		end += c.ends[n-1]
	}
	c.ends = append(c.ends, end)
	return [][]byte{frame}
}

// typeOf is the type of a frame that one of the peers has made.
func typeOf(frame []byte) wire.Type { return wire.Type(frame[3]) }

// met tells whether the cut took place, and in which frame.
func (c *cut) met() (wire.Type, bool) {
	if c.stream.Written(c.writer) < c.at {
		return 0, false
	}
	for i, end := range c.ends {
		if c.at < end {
			return c.frames[i], true
		}
	}
	return 0, true // right behind a frame
}

// cutter plans a cut of every stream.
type cutter struct {
	rng  *rand.Rand
	cuts []*cut
}

func (c *cutter) opened(s *sim.Stream) {
	plan := &cut{stream: s, writer: s.From(), at: c.rng.Int64N(slashed)}
	if c.rng.IntN(2) == 0 {
		plan.writer = s.To()
	}
	if c.rng.IntN(3) == 0 {
		plan.at = c.rng.Int64N(150) // where peers propose and settle
	}
	s.CutAfter(plan.writer, plan.at)
	s.Tamper(plan.writer, plan.record)
	c.cuts = append(c.cuts, plan)
}

// tally counts the cuts that took place, by the type of the frame cut.
func (c *cutter) tally() (n int, by map[wire.Type]int) {
	by = make(map[wire.Type]int)
	for _, plan := range c.cuts {
		if kind, met := plan.met(); met {
			n++
			by[kind]++
		}
	}
	return n, by
}

// TestThousandCutsLoseNothing cuts every stream somewhere, and often the link with
// it for a while, with all peers training.
func TestThousandCutsLoseNothing(t *testing.T) {
	for _, codec := range allCodecs {
		t.Run(codec, func(t *testing.T) { thousandCuts(t, codec) })
	}
}

func thousandCuts(t *testing.T, codec string) {
	const values = 60
	cuts := &cutter{rng: rand.New(rand.NewPCG(21, 0))}
	training := newStirrer(22, values)
	var f *flock
	f = newFlock(t, plan{
		seed: 23, peers: 4, values: values, sliceLen: 8, codec: codec, every: 2,
		config: sim.Config{
			Task: direct{stepper: training}, Link: sim.Link{Delay: 300 * time.Microsecond, Bandwidth: 2e6, Loss: 0.01},
			Terms: replica.Terms{Window: 4}, SettleAfter: 30 * time.Millisecond,
			Hooks: sim.Hooks{
				Opened: cuts.opened,
				Broke: func(peer, partner int, err error) {
					if errors.Is(err, sim.ErrReset) && cuts.rng.IntN(4) == 0 {
						f.world.Cut(peer, partner)
						f.world.After(20*time.Millisecond, func() { f.world.Heal(peer, partner) })
					}
				},
			},
		},
	})
	want := f.sum()
	for n := 0; n < 1000; n, _ = cuts.tally() {
		f.world.Run(f.world.Now() + time.Second)
	}
	f.comeToRest()
	for i := range want {
		want[i] += training.added[i]
	}
	n, by := cuts.tally()
	moved := drift(want, f.sum())
	t.Logf("%d of %d streams cut, in %v; the sum is off by %.2g; %+v", n, len(cuts.cuts), by, moved, f.total())
	if moved > maxDrift {
		t.Errorf("the sum is off by %g of itself, at most %g", moved, maxDrift)
	}
	if lost := f.lost(); lost > 0 {
		t.Errorf("%d slices were given up", lost)
	}
	kinds := []wire.Type{
		wire.TypePropose, wire.TypeAccept, wire.TypeRefuse, wire.TypeCode, wire.TypeDiff, wire.TypeAck, wire.TypeStatus, wire.TypeSettled,
	}
	if strings.HasPrefix(codec, "lattice") {
		kinds = append(kinds, wire.TypeRanges)
	}
	for _, kind := range kinds {
		if by[kind] == 0 {
			t.Errorf("no %v was cut", kind)
		}
	}
}
