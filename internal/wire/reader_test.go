package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"
)

func TestCutAtEveryByte(t *testing.T) {
	frame := pack(t, Hello{Run: "digits", Layout: layoutHash(), Steps: 5})
	for cut := range len(frame) {
		r := NewReader(bytes.NewReader(frame[:cut]), 0)
		_, _, err := r.Next()
		if cut == 0 {
			if err != io.EOF {
				t.Errorf("no frame at all: error is %v, want io.EOF itself", err)
			}
			continue
		}
		if !errors.Is(err, ErrTruncated) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: error is %v", cut, err)
		}
		if _, _, again := r.Next(); again != err {
			t.Errorf("cut after %d bytes: the second error is %v", cut, again)
		}
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	for _, v := range vectors() {
		frame, _ := v.build(t)
		for bit := range 8 * len(frame) {
			flipped := bytes.Clone(frame)
			flipped[bit/8] ^= 1 << (bit % 8)
			if h, _, err := NewReader(bytes.NewReader(flipped), 0).Next(); err == nil {
				t.Errorf("%s: with bit %d flipped it is read as %+v", v.name, bit, h)
			}
		}
	}
}

// A repeated frame is two frames: to know a replay is the exchange's matter.
func TestRepeatedFrames(t *testing.T) {
	frame := seal(t, Header{Type: TypeAck, Exchange: 7, Ack: 6}, nil)
	r := NewReader(bytes.NewReader(bytes.Repeat(frame, 3)), 0)
	for n := range 3 {
		if h, payload, err := r.Next(); err != nil || h.Ack != 6 || len(payload) != 0 {
			t.Fatalf("frame %d: %+v, %d bytes, %v", n, h, len(payload), err)
		}
	}
	for range 2 {
		if _, _, err := r.Next(); err != io.EOF {
			t.Fatalf("at the end the error is %v", err)
		}
	}
}

// counter counts what is read from it.
type counter struct {
	source io.Reader
	count  int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.count += n
	return n, err
}

// A length beyond a limit costs its receiver neither memory nor reading.
func TestOversizeIsRefusedUnread(t *testing.T) {
	cases := []struct {
		typ    Type
		length uint32
		limit  int
	}{
		{TypeAck, 1, 0},
		{TypeHello, maxHello + 1, 0},
		{TypeCode, MaxPayload + 1, 0},
		{TypeCode, MaxHandshake + 1, MaxHandshake},
		{TypeCode, 1 << 31, 0},
		{TypeCode, 0xffffffff, 0},
		{TypeStateSlice, 4*MaxSliceLen + 1, 0},
		{TypeCode, MaxPayload + 1, 100 << 20},
		{TypeCode, MaxPayload + 1, -1},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%v of %d, limit %d", c.typ, c.length, c.limit), func(t *testing.T) {
			frame := append(Reserve(nil), make([]byte, 1000)...)
			copy(frame, seal(t, Header{Type: c.typ}, nil))
			binary.LittleEndian.PutUint32(frame[atLength:], c.length)
			source := &counter{source: bytes.NewReader(frame)}
			r := NewReader(source, c.limit)
			if _, _, err := r.Next(); !errors.Is(err, ErrTooLong) {
				t.Errorf("error is %v, want ErrTooLong", err)
			}
			if source.count != HeaderSize || cap(r.buf) != 0 {
				t.Errorf("%d bytes were read and %d allocated", source.count, cap(r.buf))
			}
		})
	}
}

// The reader takes nothing beyond a frame, so a second reader can go on.
func TestReadersFollowEachOther(t *testing.T) {
	stream := append(pack(t, Accept{Codecs: []uint8{1}, Window: 2}), seal(t, Header{Type: TypeStateSlice}, make([]byte, 5000))...)
	source := bytes.NewReader(stream)
	if h, _, err := NewReader(source, MaxHandshake).Next(); err != nil || h.Type != TypeAccept {
		t.Fatalf("first reader: %+v, %v", h, err)
	}
	if h, payload, err := NewReader(source, MaxPayload).Next(); err != nil || h.Type != TypeStateSlice || len(payload) != 5000 {
		t.Fatalf("second reader: %+v, %d bytes, %v", h, len(payload), err)
	}
}

// A frame that is read once more is the same one, and what follows it is not lost.
func TestAgain(t *testing.T) {
	var stream bytes.Buffer
	for n := range 3 {
		stream.Write(seal(t, Header{Type: TypeStateSlice, Slice: uint32(n)}, make([]byte, 100*n)))
	}
	r := NewReader(&stream, 0)
	for n, again := range []bool{true, false, true} {
		for _, once := range []bool{!again, true} {
			h, payload, err := r.Next()
			if err != nil || h.Slice != uint32(n) || len(payload) != 100*n {
				t.Fatalf("frame %d: %+v, %d bytes, %v", n, h, len(payload), err)
			}
			if once {
				break
			}
			r.Unread()
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A reader that is reset knows nothing of its former source, neither half a frame
// nor an error, and needs no new buffer.
func TestReset(t *testing.T) {
	frame := seal(t, Header{Type: TypeStateSlice, Slice: 3}, make([]byte, 500))
	garbage := bytes.Repeat([]byte{0xff}, HeaderSize)
	r := NewReader(bytes.NewReader(frame), 0)
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	for _, former := range []io.Reader{
		bytes.NewReader(nil), bytes.NewReader(garbage), bytes.NewReader(frame[:40]),
		&interrupted{data: frame, pieces: []int{40, 1}},
	} {
		r.Reset(former)
		if _, _, err := r.Next(); err == nil {
			t.Fatal("the former source is read without an error")
		}
		r.Reset(bytes.NewReader(frame))
		if h, payload, err := r.Next(); err != nil || h.Slice != 3 || len(payload) != 500 {
			t.Errorf("after a reset: %+v, %d bytes, %v", h, len(payload), err)
		}
	}
	if cap(r.buf) != 500 {
		t.Errorf("the buffer has %d bytes, want the 500 of the first source", cap(r.buf))
	}
}

// The buffer grows to what is needed, at least twofold, and never beyond the limit.
func TestBufferGrowth(t *testing.T) {
	const limit = 1000
	var stream []byte
	sizes := []int{10, 11, 20, 21, 300, 601, 1000, 5}
	for _, size := range sizes {
		stream = append(stream, seal(t, Header{Type: TypeStateSlice}, make([]byte, size))...)
	}
	r := NewReader(bytes.NewReader(stream), limit)
	for i, want := range []int{10, 20, 20, 40, 300, 601, 1000, 1000} {
		_, payload, err := r.Next()
		if err != nil || len(payload) != sizes[i] {
			t.Fatalf("frame %d: %d bytes, %v", i, len(payload), err)
		}
		if cap(r.buf) != want {
			t.Errorf("after a payload of %d bytes the buffer has %d, want %d", sizes[i], cap(r.buf), want)
		}
	}
}

var errDeadline = errors.New("deadline exceeded")

// interrupted gives its bytes in pieces of the given sizes, with an error such as
// a deadline's after each.
type interrupted struct {
	data   []byte
	pieces []int
	late   bool
}

func (s *interrupted) Read(p []byte) (int, error) {
	if s.late = !s.late; s.late && len(s.pieces) > 0 {
		n := copy(p[:min(len(p), s.pieces[0])], s.data)
		s.data, s.pieces = s.data[n:], s.pieces[1:]
		return n, nil
	}
	if len(s.pieces) > 0 {
		return 0, errDeadline
	}
	n := copy(p, s.data)
	if s.data = s.data[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Whatever frames a stream has, and wherever deadlines strike, what comes out is
// what went in.
func TestStreamRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sent struct {
			header  Header
			payload []byte
		}
		var want []sent
		var stream []byte
		for range rapid.IntRange(0, 6).Draw(t, "frames") {
			h := Header{
				Type:     rapid.SampledFrom(knownTypes()).Draw(t, "type"),
				Exchange: rapid.Uint64().Draw(t, "exchange"),
				Slice:    rapid.Uint32().Draw(t, "slice"),
				Ack:      rapid.Uint32().Draw(t, "ack"),
			}
			most, _ := h.Type.limit()
			payload := rapid.SliceOfN(rapid.Byte(), 0, min(most, 400)).Draw(t, "payload")
			frame := append(Reserve(nil), payload...)
			if err := Seal(frame, h); err != nil {
				t.Fatal(err)
			}
			want = append(want, sent{h, payload})
			stream = append(stream, frame...)
		}
		source := &interrupted{data: stream, pieces: rapid.SliceOf(rapid.IntRange(0, 100)).Draw(t, "pieces")}
		r := NewReader(source, 0)
		next := func() (Header, []byte, error) {
			for {
				h, payload, err := r.Next()
				if !errors.Is(err, errDeadline) {
					return h, payload, err
				}
			}
		}
		for i, w := range want {
			h, payload, err := next()
			if err != nil || h != w.header || !bytes.Equal(payload, w.payload) {
				t.Fatalf("frame %d: %+v, % x, %v; want %+v, % x", i, h, payload, err, w.header, w.payload)
			}
		}
		if _, _, err := next(); err != io.EOF {
			t.Fatalf("at the end the error is %v", err)
		}
	})
}
