package wire

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
)

var million = flag.Bool("million", false, "feed a million spoilt frames to the decoders, not a few thousand")

// spoiler makes frames that are nearly right, and some that are not right at all.
type spoiler struct {
	*rand.Rand
	good [][]byte
}

func newSpoiler(t *testing.T) *spoiler {
	s := &spoiler{Rand: rand.New(rand.NewPCG(6, 8))}
	for _, v := range vectors() {
		frame, _ := v.build(t)
		s.good = append(s.good, frame)
	}
	return s
}

func (s *spoiler) any() []byte { return bytes.Clone(s.good[s.IntN(len(s.good))]) }

func (s *spoiler) noise(most int) []byte {
	b := make([]byte, s.IntN(most+1))
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return b
}

// next is the next frame. Two of three have a true checksum, so that what is behind
// it is reached.
func (s *spoiler) next() []byte {
	frame := s.any()
	switch s.IntN(8) {
	case 0: // bits
		for range 1 + s.IntN(4) {
			frame[s.IntN(len(frame))] ^= 1 << s.IntN(8)
		}
	case 1: // cut
		return frame[:s.IntN(len(frame)+1)]
	case 2: // more than is said
		frame = append(frame, s.noise(64)...)
	case 3: // the payload of another type
		other := s.any()
		other[atType] = frame[atType]
		frame = other
	case 4: // a payload of noise
		frame = append(frame[:HeaderSize], s.noise(1024)...)
	case 5: // nothing but noise
		return s.noise(2 * HeaderSize)
	case 6: // any type and length
		frame[atType] = byte(s.Uint32())
		copy(frame[atLength:], s.noise(4))
		if s.IntN(2) == 0 {
			return frame
		}
	default: // bytes within the payload
		for range 1 + s.IntN(3) {
			if len(frame) > HeaderSize {
				frame[HeaderSize+s.IntN(len(frame)-HeaderSize)] = byte(s.Uint32())
			}
		}
	}
	if s.IntN(3) > 0 {
		reseal(frame)
	}
	return frame
}

// reseal makes length and checksum right for what the frame holds.
func reseal(frame []byte) {
	if len(frame) < HeaderSize {
		return
	}
	n := len(frame) - HeaderSize
	frame[atLength], frame[atLength+1], frame[atLength+2], frame[atLength+3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	sum := checksum(frame[:HeaderSize], frame[HeaderSize:])
	frame[atChecksum], frame[atChecksum+1], frame[atChecksum+2], frame[atChecksum+3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
}

// Whatever comes over the wire, no decoder crashes, none keeps memory, and none makes
// room for more than the limits allow.
func TestSpoiltFrames(t *testing.T) {
	frames := 20_000
	if *million {
		frames = 1_000_000
	}
	s := newSpoiler(t)
	source := bytes.NewReader(nil)
	long, short := NewReader(source, 0), NewReader(source, MaxHandshake)
	accepted, refused := 0, map[error]int{}
	feed := func(r *Reader, frame []byte) {
		source.Reset(frame)
		r.Reset(source)
		for {
			h, payload, err := r.Next()
			if err != nil {
				refused[errorClass(t, err)]++
				return
			}
			again, err := recode(h.Type, payload)
			if err != nil {
				refused[errorClass(t, err)]++
			} else if accepted++; !bytes.Equal(again, payload) {
				t.Fatalf("%v: % x is read as % x", h.Type, payload, again)
			}
		}
	}
	var before, after runtime.MemStats
	room := 0 // of the readers, which may grow up to their limits
	for i := range frames {
		if i == frames/10 { // the buffers are as large as they get
			runtime.GC()
			runtime.ReadMemStats(&before)
			room = cap(long.buf) + cap(short.buf)
		}
		frame := s.next()
		feed(long, frame)
		feed(short, frame)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	room = cap(long.buf) + cap(short.buf) - room
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc) - int64(room); grown > 64<<10 {
		t.Errorf("%d frames have left %d bytes behind", frames, grown)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(frames-frames/10); each > 16<<10 {
		t.Errorf("a frame has cost %d bytes of memory", each)
	}
	if cap(short.buf) > MaxHandshake+HeaderSize || cap(long.buf) > MaxPayload+HeaderSize {
		t.Errorf("the readers hold %d and %d bytes", cap(short.buf), cap(long.buf))
	}
	for _, reached := range []error{ErrMagic, ErrVersion, ErrFlags, ErrType, ErrTooLong, ErrChecksum, ErrTruncated, ErrMessage, io.EOF} {
		if refused[reached] == 0 {
			t.Errorf("no frame was refused with %q", reached)
		}
	}
	if accepted < frames/20 {
		t.Errorf("only %d frames were accepted: the others do not get far", accepted)
	}
	t.Logf("%d frames to two readers: %d accepted, heap %+d bytes, of which the readers' room is %+d", frames, accepted, int64(after.HeapAlloc)-int64(before.HeapAlloc), room)
}

// errorClass is the documented error that an error is.
func errorClass(t *testing.T, err error) error {
	for _, known := range []error{ErrMagic, ErrVersion, ErrFlags, ErrType, ErrTooLong, ErrChecksum, ErrTruncated, ErrMessage, io.EOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	t.Fatalf("undocumented error %v", err)
	return nil
}
