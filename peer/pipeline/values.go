package pipeline

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// coded is a vector as it travels: the codes of wire.ActivationsLen values each, one after the other. Its bytes do not change.
type coded struct {
	codec quant.Codec
	n     int
	data  []byte
}

// encode codes a vector.
func encode(codec quant.Codec, v tensor.Vector) coded {
	c := coded{codec: codec, n: len(v)}
	c.data = make([]byte, c.size(len(v)))
	for from := 0; from < len(v); from += wire.ActivationsLen {
		part := v[from:min(from+wire.ActivationsLen, len(v))]
		at := c.size(from)
		codec.Encode(c.data[at:at+codec.MaxSize(len(part))], part, nil)
	}
	return c
}

// size is how many bytes so many values have, whole frames but for the last.
func (c coded) size(values int) int {
	whole, rest := values/wire.ActivationsLen, values%wire.ActivationsLen
	return whole*c.codec.MaxSize(wire.ActivationsLen) + c.codec.MaxSize(rest)
}

// decode is the vector. An error means that the bytes are no code of finite values.
func (c coded) decode() (tensor.Vector, error) {
	v := make(tensor.Vector, c.n)
	for from := 0; from < c.n; from += wire.ActivationsLen {
		part := v[from:min(from+wire.ActivationsLen, c.n)]
		at := c.size(from)
		if err := c.codec.Decode(part, c.data[at:at+c.codec.MaxSize(len(part))], nil); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// send sends the codes in frames.
func (c coded) send(s *framed.Stream) error {
	for from := 0; from < c.n; from += wire.ActivationsLen {
		at, n := c.size(from), c.codec.MaxSize(min(wire.ActivationsLen, c.n-from))
		s.Frame = append(wire.Reserve(s.Frame), c.data[at:at+n]...)
		if err := s.Seal(wire.Header{Type: wire.TypeActivations}); err != nil {
			return err
		}
	}
	return nil
}

// receive reads the codes of so many values.
func receive(s *framed.Stream, codec quant.Codec, n int) (coded, error) {
	c := coded{codec: codec, n: n}
	c.data = make([]byte, 0, c.size(n))
	s.Limit(4 * wire.ActivationsLen)
	for from := 0; from < n; from += wire.ActivationsLen {
		header, payload, err := s.Await(wire.TypeActivations)
		want := codec.MaxSize(min(wire.ActivationsLen, n-from))
		switch {
		case err != nil:
			return c, err
		case header.Type == wire.TypeRefuse:
			return c, wire.Refused(payload)
		case header.Type != wire.TypeActivations:
			return c, fmt.Errorf("waiting for values: got %v: %w", header.Type, wire.ErrType)
		case len(payload) != want:
			return c, fmt.Errorf("%d bytes where %d are due: %w", len(payload), want, wire.ErrMessage)
		}
		c.data = append(c.data, payload...)
	}
	return c, nil
}
