package replica_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// bigPair are two models that differ, in full slices and a short one.
func bigPair(t tester, values int) (a, p *side) {
	t.Helper()
	a = oneSlice(t, values, 1, replica.Options{SliceLen: replica.DefaultSliceLen})
	p = oneSlice(t, values, 1.01, replica.Options{SliceLen: replica.DefaultSliceLen})
	return a, p
}

// mover carries exchanges out in memory with nothing that allocates. It keeps a window
// of frames, as the sides do.
type mover struct {
	t      tester
	a, p   *side
	terms  replica.Terms
	frames [replica.MaxWindow][]byte
	ack    []byte
}

func newMover(t tester, a, p *side, codecName string, lanes int) *mover {
	t.Helper()
	plan := coding.Uniform(codec(t, codecName))
	return &mover{t: t, a: a, p: p, terms: replica.Terms{Plan: plan, Codecs: plan.Codecs(), Window: 4, Lanes: lanes}}
}

// headerIn is a frame's header.
func headerIn(frame []byte) wire.Header {
	return wire.Header{
		Exchange: binary.LittleEndian.Uint64(frame[8:]),
		Slice:    binary.LittleEndian.Uint32(frame[16:]),
		Ack:      binary.LittleEndian.Uint32(frame[20:]),
	}
}

// exchange is one, from Begin to End.
func (m *mover) exchange() {
	m.terms.Exchange++
	m.a.initiator.Begin(m.terms)
	m.p.responder.Begin(m.terms)
	m.ranges()
	for !m.p.responder.Done() {
		for i := range m.a.initiator.Lanes() {
			m.lane(m.a.initiator.Lane(i), m.p.responder.Lane(i))
		}
	}
	m.a.initiator.End(true)
	m.p.responder.End(0)
}

// ranges lets P tell its ranges.
func (m *mover) ranges() {
	for {
		frame, ok, err := m.p.responder.Ranges(m.ack)
		m.must(err)
		m.ack = frame
		if !ok {
			return
		}
		m.must(m.a.initiator.Ranges(headerIn(frame), frame[wire.HeaderSize:]))
	}
}

// lane fills a lane's window once, and acknowledges it.
func (m *mover) lane(a *replica.InitiatorLane, p *replica.ResponderLane) {
	answers, n := [replica.MaxWindow][]byte{}, 0
	for ; ; n++ {
		frame, ok, err := a.Code(m.frames[n%replica.MaxWindow])
		m.must(err)
		m.frames[n%replica.MaxWindow] = frame
		if !ok {
			break
		}
		answers[n], err = p.Code(headerIn(frame), frame[wire.HeaderSize:])
		m.must(err)
	}
	for _, frame := range answers[:n] {
		m.must(a.Diff(headerIn(frame), frame[wire.HeaderSize:]))
	}
	frame, err := a.Ack(m.ack)
	m.must(err)
	m.ack = frame
	m.must(p.Ack(headerIn(frame)))
}

func (m *mover) must(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

// TestExchangeAllocatesNothing: neither a slice nor a whole exchange does, at either
// side, once a first one has made room.
func TestExchangeAllocatesNothing(t *testing.T) {
	for _, name := range slices.Concat(codecs, latticed) {
		for _, lanes := range []int{1, 3} {
			a, p := bigPair(t, 5*replica.DefaultSliceLen+100)
			m := newMover(t, a, p, name, lanes)
			m.exchange()
			if n := testing.AllocsPerRun(20, m.exchange); n != 0 {
				t.Errorf("%s over %d lanes: an exchange allocates %g times", name, lanes, n)
			}
		}
	}
}

// TestTrainerAllocatesNothing: reading and stepping do not either.
func TestTrainerAllocatesNothing(t *testing.T) {
	a, _ := bigPair(t, 2*replica.DefaultSliceLen+100)
	x, delta := make(tensor.Vector, a.Len()), make(tensor.Vector, a.Len())
	if n := testing.AllocsPerRun(20, func() { a.Snapshot(x); a.Add(delta) }); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}
