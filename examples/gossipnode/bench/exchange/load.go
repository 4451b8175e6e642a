package exchange

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// load has the data of the references: as many bytes as in an exchange, in chunks as there, and the vector that the
// naive way averages.
type load struct {
	forth, back  flow // to the passive side, and to the active side
	values       tensor.Vector
	whole, taken []byte // the bytes of the values to send, and memory for the received ones
	chunk        []byte // memory for a slice
}

// flow is the number of bytes in one direction, and of those in a chunk.
type flow struct{ bytes, chunk int }

func newLoad(s exchangeSettings, codec quant.Codec) *load {
	slice := min(s.slice, s.parameters)
	l := &load{
		forth:  flow{s.coded(codec.MaxSize), codec.MaxSize(slice)},
		back:   flow{s.coded(codec.DiffSize), codec.DiffSize(slice)},
		values: make(tensor.Vector, s.parameters),
	}
	room := max(l.forth.bytes, l.back.bytes, tensor.ValueSize*s.parameters)
	l.whole, l.taken = make([]byte, room), make([]byte, room)
	l.chunk = make([]byte, max(l.forth.chunk, l.back.chunk))
	measure.Fill(l.values, s.seed, 1)
	l.encode()
	clear(l.taken) // so that the first round does not pay for page faults
	return l
}

// encode writes the values to whole, as a simple program would.
func (l *load) encode() []byte {
	code := l.whole[:tensor.ValueSize*len(l.values)]
	for i, x := range l.values {
		binary.LittleEndian.PutUint32(code[tensor.ValueSize*i:], math.Float32bits(x))
	}
	return code
}

// decoded is received value i.
func (l *load) decoded(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(l.taken[tensor.ValueSize*i:]))
}

// lead carries out an order at the active side, and returns when both sides are done.
func (l *load) lead(p pipe, o order) error {
	_, err := p.Write(binary.LittleEndian.AppendUint32([]byte{byte(o.kind)}, o.times))
	for range o.times {
		if err == nil {
			err = l.move(p, o.kind, true)
		}
	}
	if err == nil {
		err = readDone(p)
	}
	if err != nil {
		return fmt.Errorf("moving the bytes of a reference: %w", err)
	}
	return nil
}

// follow carries out an order at the passive side.
func (l *load) follow(p pipe, o order) error {
	for range o.times {
		if err := l.move(p, o.kind, false); err != nil {
			return err
		}
	}
	_, err := p.Write([]byte{orderDone})
	return err
}

// move does one side's part of an order once.
func (l *load) move(p pipe, kind orderKind, leads bool) error {
	out, in := l.back, l.forth
	if leads {
		out, in = in, out
	}
	write, read := func() error { return l.write(p, out) }, func() error { return l.discard(p, in) }
	switch kind {
	case orderSwap:
		return both(p, write, read)
	case orderNaive:
		write, read = func() error { return l.writeVector(p) }, func() error { return l.readVector(p, leads) }
	}
	parts := []func() error{write, read}
	if !leads {
		slices.Reverse(parts)
	}
	for _, do := range parts {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// writeVector writes the whole vector at once.
func (l *load) writeVector(p pipe) error {
	_, err := p.Write(l.encode())
	return err
}

// readVector reads a whole vector: either the mean, or values to average with.
func (l *load) readVector(p pipe, mean bool) error {
	if _, err := io.ReadFull(p, l.taken[:tensor.ValueSize*len(l.values)]); err != nil {
		return err
	}
	for i := range l.values {
		theirs := l.decoded(i)
		if !mean {
			theirs = (theirs + l.values[i]) / 2
		}
		l.values[i] = theirs
	}
	return nil
}

// write writes the bytes of the vector, a chunk at a time.
func (l *load) write(p pipe, f flow) error {
	for at := 0; at < f.bytes; at += f.chunk {
		if _, err := p.Write(l.whole[at:min(at+f.chunk, f.bytes)]); err != nil {
			return err
		}
	}
	return nil
}

// discard reads and drops bytes, a chunk at a time.
func (l *load) discard(p pipe, f flow) error {
	for at := 0; at < f.bytes; at += f.chunk {
		if _, err := io.ReadFull(p, l.chunk[:min(f.chunk, f.bytes-at)]); err != nil {
			return err
		}
	}
	return nil
}

// both writes and reads at the same time.
func both(p pipe, write, read func() error) error {
	written := make(chan error, 1)
	go func() {
		err := write()
		if err != nil {
			p.Reset() // unblocks the reader
		}
		written <- err
	}()
	err := read()
	if err != nil {
		p.Reset() // unblocks the writer
	}
	return errors.Join(err, <-written)
}
