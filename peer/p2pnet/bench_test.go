package p2pnet

import (
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// chunk is what the benchmarks write and read at once: a slice of a model or two.
const chunk = 256 << 10

// BenchmarkOpen is a stream opened, one byte there and back, and closed.
func BenchmarkOpen(b *testing.B) {
	from, to := pair(b)
	handle(b, to, speak, run, echo)
	b.ReportAllocs()
	for b.Loop() {
		s := open(b, from, to, speak, run)
		if got := ask(b, s, "x"); got != "x" {
			b.Fatal(got)
		}
		s.Close()
	}
}

// BenchmarkStream is a model of 25 million parameters, moved once through one stream.
func BenchmarkStream(b *testing.B) {
	const size = 100_000_000
	from, to := pair(b)
	room := make([]byte, chunk)
	handle(b, to, speak, run, func(s transport.Stream) {
		for left := size; left > 0; left -= chunk {
			if _, err := s.Write(room[:min(left, chunk)]); err != nil {
				b.Error(err)
			}
		}
		s.Close()
	})
	b.SetBytes(size)
	for b.Loop() {
		s := open(b, from, to, speak, run)
		if moved, err := io.Copy(io.Discard, s); err != nil || moved != size {
			b.Fatalf("moved %d bytes of %d: %v", moved, size, err)
		}
		s.Close()
	}
}

// BenchmarkWrapper is what the stream of this package adds to a read and a write
// of libp2p's, each with a deadline of its own. It must not allocate.
func BenchmarkWrapper(b *testing.B) {
	s := newStream(nowhere{}, "peer", speak, run, ioTimeout)
	p := make([]byte, chunk)
	b.ReportAllocs()
	for b.Loop() {
		s.SetReadDeadline(time.Now().Add(ioTimeout))
		s.Read(p)
		s.SetWriteDeadline(time.Now().Add(ioTimeout))
		s.Write(p)
	}
}

// nowhere is a stream that takes and gives everything at once.
type nowhere struct{ network.Stream }

func (nowhere) Read(p []byte) (int, error)       { return len(p), nil }
func (nowhere) Write(p []byte) (int, error)      { return len(p), nil }
func (nowhere) SetReadDeadline(time.Time) error  { return nil }
func (nowhere) SetWriteDeadline(time.Time) error { return nil }
