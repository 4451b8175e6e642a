package hostiletest_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// tampering is one thing that may happen to a frame on its way.
type tampering struct {
	name string
	// alter returns what goes out in a frame's stead; it may keep and change the frame.
	alter func(s *tamperedStream, header wire.Header, frame []byte) [][]byte
	// slices: it only happens to CODE and DIFF.
	slices bool
	// passive and active are the faults of which the side that serves slices, or that asks for them, finds at
	// least one when the other's frames are tampered with.
	passive, active []error
	// harmless: it breaks no rule, so nobody is kept away for it.
	harmless bool
}

// expected is of what faults the peer of a role finds one at least.
func (k tampering) expected(role string) []error {
	if role == "passive" {
		return k.passive
	}
	return k.active
}

// both are faults that either side finds.
func both(name string, alter func(*tamperedStream, wire.Header, []byte) [][]byte, faults ...error) tampering {
	return tampering{name: name, alter: alter, passive: faults, active: faults}
}

// Slices may come in any order: that codes have changed places, or that one is missing, the side that sent
// them sees by the answers.
var tamperings = []tampering{
	{name: "stalled in the middle", alter: stall, passive: []error{errTimeout, memnet.ErrReset}, active: []error{errTimeout}, harmless: true},
	both("truncated", truncate, wire.ErrChecksum, wire.ErrTruncated, wire.ErrTooLong, wire.ErrMagic, wire.ErrVersion, wire.ErrFlags, wire.ErrType),
	{name: "dropped", alter: drop, active: []error{replica.ErrOrder}},
	{name: "reordered", alter: keepBack, active: []error{replica.ErrOrder}},
	both("repeated", repeat, replica.ErrOrder),
	both("bit flipped", flip, wire.ErrChecksum),
	both("of another version", update, wire.ErrVersion),
	both("oversized", oversize, wire.ErrTooLong),
	inSlices(both("longer than its slice", lengthen, coding.ErrSize)),
	inSlices(both("NaN in it", forge, replica.ErrImplausible, coding.ErrNotFinite)),
}

func inSlices(k tampering) tampering {
	k.slices = true
	return k
}

// Offsets in a frame's header (docs/WIRE.md).
const (
	atVersion = 2
	atLength  = 24
)

func flip(s *tamperedStream, _ wire.Header, frame []byte) [][]byte {
	bit := s.random.IntN(8 * len(frame))
	frame[bit/8] ^= 1 << (bit % 8)
	return [][]byte{frame}
}

// update makes a frame a newer release's: who sends it is not taken for one of that.
func update(_ *tamperedStream, _ wire.Header, frame []byte) [][]byte {
	frame[atVersion]++
	return [][]byte{frame}
}

func truncate(s *tamperedStream, _ wire.Header, frame []byte) [][]byte {
	return [][]byte{frame[:s.random.IntN(len(frame))]}
}

// oversize claims a payload longer than any may be.
func oversize(s *tamperedStream, _ wire.Header, frame []byte) [][]byte {
	binary.LittleEndian.PutUint32(frame[atLength:], wire.MaxPayload+1+s.random.Uint32N(1<<31))
	return [][]byte{frame}
}

func repeat(_ *tamperedStream, _ wire.Header, frame []byte) [][]byte { return [][]byte{frame, frame} }

func drop(*tamperedStream, wire.Header, []byte) [][]byte { return nil }

func keepBack(s *tamperedStream, _ wire.Header, frame []byte) [][]byte {
	s.kept = frame
	return nil
}

// stall lets a part of the frame through, and then nothing more.
func stall(s *tamperedStream, _ wire.Header, frame []byte) [][]byte {
	s.silent = true
	return [][]byte{frame[:1+s.random.IntN(len(frame)-1)]}
}

// lengthen adds a value to a slice, and seals the frame as its sender would.
func lengthen(s *tamperedStream, header wire.Header, frame []byte) [][]byte {
	return sealed(s, header, append(frame, 0, 0, 0, 0))
}

// forge makes the first value of a slice NaN, and seals the frame as its sender would.
func forge(s *tamperedStream, header wire.Header, frame []byte) [][]byte {
	const nan = 0x7fc07fc0 // as a float32, and in each half as a bfloat16
	binary.LittleEndian.PutUint32(frame[wire.HeaderSize+wire.InfoSize:], nan)
	return sealed(s, header, frame)
}

func sealed(s *tamperedStream, header wire.Header, frame []byte) [][]byte {
	if err := wire.Seal(frame, header); err != nil {
		s.by.t.Error(err)
	}
	return [][]byte{frame}
}

// errTimeout stands for a partner that says nothing: a net.Error, which is no value.
var errTimeout = errors.New("timeout")

// offences are the faults for which a partner is kept away, and faults all that an exchange may fail of.
var (
	offences = []error{
		wire.ErrMagic, wire.ErrVersion, wire.ErrFlags, wire.ErrType, wire.ErrTooLong, wire.ErrChecksum, wire.ErrMessage,
		replica.ErrOrder, replica.ErrWindow, replica.ErrImplausible, replica.ErrBound, coding.ErrSize, coding.ErrNotFinite,
	}
	faults = append([]error{wire.ErrTruncated, replica.ErrSettled, session.ErrAborted, session.ErrLaneMissing, errTimeout, io.ErrUnexpectedEOF, memnet.ErrReset}, offences...)
)

// kinds are those of a list that an error is.
func kinds(err error, list []error) []error {
	timeout, ok := errors.AsType[net.Error](err)
	return slices.DeleteFunc(slices.Clone(list), func(kind error) bool {
		return !errors.Is(err, kind) && !(kind == errTimeout && ok && timeout.Timeout())
	})
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*wire.Refusal](err)
	return ok
}
