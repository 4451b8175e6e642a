package framed

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// wires is a stream whose both directions are memory: what is to be read, and every write.
type wires struct {
	transport.Stream
	incoming bytes.Reader
	writes   [][]byte
}

func (w *wires) Read(b []byte) (int, error) { return w.incoming.Read(b) }

func (w *wires) Write(b []byte) (int, error) {
	w.writes = append(w.writes, bytes.Clone(b))
	return len(b), nil
}

func (w *wires) SetReadDeadline(time.Time) error  { return nil }
func (w *wires) SetWriteDeadline(time.Time) error { return nil }
func (w *wires) CloseWrite() error                { w.writes = append(w.writes, nil); return nil }

// coded is a frame of a slice with a payload of so many bytes, the first of which is given.
func coded(t *testing.T, first byte, length int) []byte {
	t.Helper()
	frame := append(wire.Reserve(nil), make([]byte, length)...)
	frame[wire.HeaderSize] = first
	if err := wire.Seal(frame, wire.Header{Type: wire.TypeCode, Exchange: 1, Slice: uint32(first)}); err != nil {
		t.Fatal(err)
	}
	return frame
}

// begun is a stream ready for frames of any size, on which these have come.
func begun(frames ...[]byte) (*Stream, *wires) {
	w, s := &wires{}, &Stream{}
	w.incoming.Reset(bytes.Join(frames, nil))
	s.Begin(w, time.Second)
	s.Bulk()
	return s, w
}

// take reads a frame and tells its first byte.
func take(t *testing.T, s *Stream) byte {
	t.Helper()
	_, payload, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	return payload[0]
}

// TestSmallFramesTravelTogether shows that small frames are read and written at once, in
// their order, once frames have come fast, and that a large one overtakes none of them.
func TestSmallFramesTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := begun(coded(t, 1, 1000), coded(t, 2, 1000), coded(t, 3, large), coded(t, 4, 10))
		for first := byte(1); first <= 4; first++ {
			if got := take(t, s); got != first {
				t.Fatalf("frame %d has come in the place of %d", got, first)
			}
			if first == 1 && !s.Ready() {
				t.Error("the second frame came with the first, and is not ready")
			}
		}
		if s.Ready() {
			t.Error("nothing has come, and is ready")
		}
		for first := byte(5); first < 9; first++ {
			if err := s.Later(coded(t, first, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.writes) > 0 {
			t.Fatalf("%d writes before the flush", len(w.writes))
		}
		if err := s.Later(coded(t, 9, large)); err != nil {
			t.Fatal(err)
		}
		if err := s.Later(coded(t, 10, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if len(w.writes) != 4 || len(w.writes[3]) != 0 {
			t.Fatalf("%d writes: want four small frames, a large one, a small one and the end", len(w.writes))
		}
		read, _ := begun(w.writes...)
		for first := byte(5); first <= 10; first++ {
			if got := take(t, read); got != first {
				t.Fatalf("frame %d has come in the place of %d", got, first)
			}
		}
		if total := uint64(len(bytes.Join(w.writes, nil))); s.Sent != total {
			t.Errorf("%d bytes are counted of %d", s.Sent, total)
		}
	})
}

// TestNothingWaitsOnASlowLink shows that frames go one by one where they would keep whoever
// waits for them from seeing a sign, and where nobody knows how fast the link is.
func TestNothingWaitsOnASlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := begun(coded(t, 1, 1000))
		later := func(want int) {
			t.Helper()
			if err := s.Later(coded(t, 2, 1000)); err != nil {
				t.Fatal(err)
			}
			if len(w.writes) != want {
				t.Errorf("%d writes, want %d", len(w.writes), want)
			}
		}
		later(1) // nothing has come yet
		time.Sleep(time.Second)
		take(t, s)
		later(2) // a thousand bytes in a second
		later(3)
	})
}

// TestLaterBeforeBulk shows that requests and answers are sent as they are made.
func TestLaterBeforeBulk(t *testing.T) {
	w, s := &wires{}, &Stream{}
	s.Begin(w, time.Second)
	if err := s.Later(coded(t, 1, 10)); err != nil || len(w.writes) != 1 {
		t.Errorf("%d writes, error %v", len(w.writes), err)
	}
	if s.Ready() {
		t.Error("nothing is read ahead, and a frame is ready")
	}
}
