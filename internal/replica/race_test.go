package replica_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// packet is a frame on its way.
type packet struct {
	header  wire.Header
	payload []byte
}

// cable carries so many frames of an exchange, on all its lanes together, and then
// breaks.
type cable struct {
	left   atomic.Int64
	broken chan struct{}
}

func newCable(frames int64) *cable {
	c := &cable{broken: make(chan struct{})}
	c.left.Store(frames)
	return c
}

// pipe is one direction of a stream: what has been sent before the cable breaks may
// still come, or may not.
type pipe struct {
	packets chan packet
	*cable
}

func (p pipe) send(frame []byte) bool {
	header, payload, err := wire.NewReader(&onceReader{frame}, 0).Next()
	if err != nil {
		panic(err) // a frame of the package's own making
	}
	if p.left.Add(-1) == 0 {
		close(p.broken)
	}
	select {
	case p.packets <- packet{header, payload}:
		return true
	case <-p.broken:
		return false
	}
}

func (p pipe) receive() (packet, bool) {
	select {
	case got, ok := <-p.packets:
		return got, ok
	case <-p.broken:
		return packet{}, false
	}
}

// onceReader reads its bytes.
type onceReader struct{ rest []byte }

func (r *onceReader) Read(b []byte) (int, error) {
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// parallel drives every lane of an exchange as package peer does: at A one goroutine
// codes and another applies, at P one answers. It returns once all have ended.
func parallel(t *testing.T, x *exchange, over *cable) {
	var all sync.WaitGroup
	for _, l := range x.lanes {
		toP := pipe{make(chan packet, replica.MaxWindow), over}
		toA := pipe{make(chan packet, replica.MaxWindow), over}
		opened := make(chan struct{}, 1)
		all.Go(func() { code(t, l.a, toP, opened) })
		all.Go(func() { apply(t, l.a, toA, opened) })
		all.Go(func() { respond(t, l.p, toP, toA) })
	}
	all.Wait()
}

func code(t *testing.T, lane *replica.InitiatorLane, toP pipe, opened <-chan struct{}) {
	defer close(toP.packets)
	for {
		frame, ok, err := lane.Code(nil)
		if err == nil && !ok && lane.Over() {
			if frame, err = lane.Ack(nil); err == nil {
				toP.send(frame)
				return
			}
		}
		switch {
		case err != nil:
			t.Error(err)
			return
		case ok && !toP.send(frame):
			return
		case !ok:
			select {
			case <-opened:
			case <-toP.broken:
				return
			}
		}
	}
}

func apply(t *testing.T, lane *replica.InitiatorLane, toA pipe, opened chan<- struct{}) {
	for {
		got, ok := toA.receive()
		if !ok {
			return
		}
		if err := lane.Diff(got.header, got.payload); err != nil {
			if !errors.Is(err, replica.ErrSettled) {
				t.Error(err)
			}
			return
		}
		select {
		case opened <- struct{}{}:
		default:
		}
	}
}

func respond(t *testing.T, lane *replica.ResponderLane, toP, toA pipe) {
	defer close(toA.packets)
	for {
		got, ok := toP.receive()
		if !ok {
			return
		}
		var reply []byte
		err := error(nil)
		if got.header.Type == wire.TypeAck {
			err = lane.Ack(got.header)
		} else {
			reply, err = lane.Code(got.header, got.payload)
		}
		if err != nil {
			t.Error(err)
			return
		}
		if reply != nil && !toA.send(reply) {
			return
		}
	}
}

// framesPerExchange are CODE and DIFF of each of the slices in TestLanesInParallel.
const framesPerExchange = 2 * 63

// TestLanesInParallel runs exchanges of several lanes, of which some break, while both
// sides train, are copied, and ask each other; for the race detector, and to see that
// the sum of the two models is what training made of it. A and P change roles.
func TestLanesInParallel(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{1000}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(8, 1))
	var sides [2]*side
	for i := range sides {
		params := tensor.NewParams(layout)
		for j := range params.Vector() {
			params.Vector()[j] = rng.Float32()
		}
		sides[i] = newSide(t, params, replica.Options{SliceLen: 16})
	}
	want := sum(contents(sides[0].Replica), contents(sides[1].Replica))
	stop := make(chan struct{})
	var others sync.WaitGroup
	steps := [2]int{}
	for i, s := range sides {
		others.Go(func() { steps[i] = train(s, stop) })
		others.Go(func() { copyAll(t, s, stop) })
	}
	for n := range uint64(36) {
		x := begin(t, sides[n%2], sides[1-n%2], replica.Terms{
			Plan: coding.Uniform(codec(t, codecs[n/2%2])), Exchange: n, Window: 1 + int(n%5), Lanes: 1 + int(n%4), Overlap: 1 + int(n%3),
		})
		parallel(t, x, newCable(rng.Int64N(3*framesPerExchange/2)+1))
		x.a.initiator.End(x.p.responder.Done())
		x.p.responder.End(0)
		settle(x.p, x.a)
	}
	close(stop)
	others.Wait()
	checkTrained(t, sides, want, steps)
}

// oneStep is what every step adds: nothing that rounds.
const oneStep = 1.0 / 1024

func train(s *side, stop <-chan struct{}) (steps int) {
	delta := make(tensor.Vector, s.Len())
	for i := range delta {
		delta[i] = oneStep
	}
	x := make(tensor.Vector, s.Len())
	for {
		select {
		case <-stop:
			return steps
		default:
			s.Snapshot(x)
			s.Add(delta)
			steps++
		}
	}
}

func copyAll(t *testing.T, s *side, stop <-chan struct{}) {
	x := make(tensor.Vector, s.Len())
	for {
		select {
		case <-stop:
			return
		default:
			if s.Consistent(x); !tensor.Finite(x) {
				t.Error("a copy that is not finite")
			}
		}
	}
}

func checkTrained(t *testing.T, sides [2]*side, want []float64, steps [2]int) {
	t.Helper()
	if steps[0] == 0 || steps[1] == 0 {
		t.Errorf("%v steps: the trainers have not trained", steps)
	}
	for i := range want {
		want[i] += oneStep * float64(steps[0]+steps[1])
	}
	size := 0.0
	for _, v := range want {
		size += v * v
	}
	got := sum(contents(sides[0].Replica), contents(sides[1].Replica))
	if off := apart(got, want) / math.Sqrt(size); off > 1e-5 {
		t.Errorf("after %v steps the sum is off by %g of itself", steps, off)
	}
	for _, s := range sides {
		if lost := s.ledger.Lost(); lost != (replica.Lost{}) {
			t.Errorf("lost %+v", lost)
		}
	}
}
