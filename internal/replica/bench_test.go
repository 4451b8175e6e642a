package replica_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// BenchmarkSlice is one slice's full work, at each side and at both, beside a copy of
// the same bytes. Checksums are a part of it where a frame is sealed; those of what
// arrives are the reader's.
func BenchmarkSlice(b *testing.B) {
	for _, name := range codecs {
		a, p := bigPair(b, replica.DefaultSliceLen)
		m := newMover(b, a, p, name, 1)
		b.Run(name+"/both", func(b *testing.B) { perSlice(b, m.exchange) })
		b.Run(name+"/active", func(b *testing.B) { perSlice(b, m.activeOnly(b)) })
		b.Run(name+"/passive", func(b *testing.B) { perSlice(b, m.passiveOnly(b)) })
	}
	dst, src := make(tensor.Vector, replica.DefaultSliceLen), make(tensor.Vector, replica.DefaultSliceLen)
	b.Run("copy", func(b *testing.B) { perSlice(b, func() { copy(dst, src) }) })
	sealed := make([]byte, wire.HeaderSize+wire.InfoSize+tensor.ValueSize*replica.DefaultSliceLen)
	b.Run("checksum", func(b *testing.B) {
		perSlice(b, func() {
			if err := wire.Seal(sealed, wire.Header{Type: wire.TypeCode}); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func perSlice(b *testing.B, work func()) {
	b.SetBytes(tensor.ValueSize * replica.DefaultSliceLen)
	b.ReportAllocs()
	for b.Loop() {
		work()
	}
}

// activeOnly is A's work on a slice, with an answer that changes nothing.
func (m *mover) activeOnly(b *testing.B) func() {
	answer := diffOf(b, m.terms.Plan.Codec(0, 0).Name, 0, make(tensor.Vector, replica.DefaultSliceLen))
	var frame []byte
	return func() {
		m.terms.Exchange++
		m.a.initiator.Begin(m.terms)
		lane := m.a.initiator.Lane(0)
		var err error
		frame, _, err = lane.Code(frame)
		m.must(err)
		m.must(lane.Diff(wire.Header{Type: wire.TypeDiff, Exchange: m.terms.Exchange}, answer))
		m.a.initiator.End(true)
	}
}

// passiveOnly is P's, with a code of the model as it was when the benchmark began.
func (m *mover) passiveOnly(b *testing.B) func() {
	code := codeOf(b, m.terms.Plan.Codec(0, 0).Name, infinity, contents(m.a.Replica))
	return func() {
		m.terms.Exchange++
		m.p.responder.Begin(m.terms)
		lane := m.p.responder.Lane(0)
		_, err := lane.Code(wire.Header{Type: wire.TypeCode, Exchange: m.terms.Exchange}, code)
		m.must(err)
		m.must(lane.Ack(wire.Header{Type: wire.TypeAck, Exchange: m.terms.Exchange, Ack: 1}))
		m.p.responder.End(0)
	}
}

// BenchmarkExchange moves a model of a million values over one lane.
func BenchmarkExchange(b *testing.B) {
	for _, name := range codecs {
		b.Run(name, func(b *testing.B) {
			const values = 1 << 20
			a, p := bigPair(b, values)
			m := newMover(b, a, p, name, 1)
			m.exchange()
			b.SetBytes(tensor.ValueSize * values)
			b.ReportAllocs()
			for b.Loop() {
				m.exchange()
			}
		})
	}
}
