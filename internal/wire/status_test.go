package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// A question is decoded into the memory of the one before, whatever that was.
func TestStatusReusesItsSlices(t *testing.T) {
	long := Status{Incarnation: 1, Slices: []uint32{9, 8, 7, 6}}.Append(nil)
	short := Status{Incarnation: 2, Slices: []uint32{5, 1 << 31}}.Append(nil)
	var m Status
	for _, former := range [][]byte{long, long[:len(long)-1], {}, short} {
		_ = m.Decode(long)
		room := &m.Slices[0]
		_ = m.Decode(former)
		if err := m.Decode(short); err != nil {
			t.Fatal(err)
		}
		if m.Incarnation != 2 || !slices.Equal(m.Slices, []uint32{5, 1 << 31}) {
			t.Errorf("after % x the message is %+v", former, m)
		}
		if &m.Slices[0] != room {
			t.Errorf("after % x there is new memory", former)
		}
	}
}

// The count and the indices of a question must agree, and an answer is known or
// unknown, nothing else: what has two readings is refused.
func TestSettlingIsUnambiguous(t *testing.T) {
	question := Status{Incarnation: 1, Slices: []uint32{5, 6, 11}}.Append(nil)
	answer := Settled{Known: true, Applied: 0b101}.Append(nil)
	edit := func(payload []byte, at int, value byte) []byte {
		payload = bytes.Clone(payload)
		payload[at] = value
		return payload
	}
	var status Status
	for n := range 256 {
		if err := status.Decode(edit(question, 8, byte(n))); errors.Is(err, ErrMessage) == (n == 3) {
			t.Errorf("3 indices, said to be %d: %+v, %v", n, status, err)
		}
	}
	var settled Settled
	for n := range 256 {
		if err := settled.Decode(edit(answer, 0, byte(n))); errors.Is(err, ErrMessage) == (n == 1) {
			t.Errorf("known is %d: %+v, %v", n, settled, err)
		}
	}
	if err := settled.Decode(edit(answer, 8, 0x80)); err != nil || settled.Applied != 1<<63|0b101 {
		t.Errorf("the last of %d slices applied: %+v, %v", MaxInDoubt, settled, err)
	}
}
