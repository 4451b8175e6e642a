package p2pnet

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// chunk is what the benchmarks write and read at once: a slice of a model.
const chunk = 256 << 10

// BenchmarkBothWays moves bytes both ways at once through one stream, on the
// default muxer of libp2p, on other initial windows, and on this package. MB/s is
// per direction; both ends run in this process.
func BenchmarkBothWays(b *testing.B) {
	for _, window := range []uint32{256 << 10, 1 << 20, 4 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("libp2p/window=%dKiB", window>>10), func(b *testing.B) {
			near, far := plainStreams(b, window)
			swapChunks(b, near, far)
		})
	}
	b.Run("p2pnet", func(b *testing.B) {
		near, far := streams(b)
		swapChunks(b, near, far)
	})
}

// swapChunks writes and reads b.N chunks at each of two ends.
func swapChunks(b *testing.B, ends ...io.ReadWriter) {
	b.SetBytes(chunk)
	b.ReportAllocs()
	errs := make(chan error)
	for _, end := range ends {
		go func() {
			out := make([]byte, chunk)
			for range b.N {
				if _, err := end.Write(out); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
		go func() {
			in := make([]byte, chunk)
			for range b.N {
				if _, err := io.ReadFull(end, in); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 2 * len(ends) {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
}

// streams returns both ends of one stream of this package.
func streams(b *testing.B) (near, far seam.Stream) {
	from, to := pair(b)
	accepted := make(chan seam.Stream, 1)
	handle(b, to, speak, run, func(s seam.Stream) {
		io.ReadFull(s, make([]byte, 1))
		accepted <- s
	})
	near = open(b, from, to, speak, run)
	if _, err := near.Write([]byte{0}); err != nil {
		b.Fatal(err)
	}
	return near, receive(b, "a stream", accepted)
}

// plainStreams returns both ends of one stream of libp2p as it comes, but for
// the initial window.
func plainStreams(b *testing.B, window uint32) (near, far network.Stream) {
	mux := *yamux.DefaultTransport
	mux.InitialStreamWindowSize = window
	hosts := [2]host.Host{}
	for i := range hosts {
		h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.Transport(tcp.NewTCPTransport),
			libp2p.Security(libp2ptls.ID, libp2ptls.New), libp2p.Muxer(yamux.ID, &mux),
			libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	accepted := make(chan network.Stream, 1)
	hosts[1].SetStreamHandler("/bench", func(s network.Stream) {
		io.ReadFull(s, make([]byte, 1))
		accepted <- s
	})
	ctx := context.Background()
	if err := hosts[0].Connect(ctx, peer.AddrInfo{ID: hosts[1].ID(), Addrs: hosts[1].Addrs()}); err != nil {
		b.Fatal(err)
	}
	near, err := hosts[0].NewStream(ctx, hosts[1].ID(), "/bench")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := near.Write([]byte{0}); err != nil {
		b.Fatal(err)
	}
	return near, receive(b, "a stream", accepted)
}

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

// BenchmarkWrapper is what the stream of this package adds to a read and a write
// of libp2p's. It must not allocate.
func BenchmarkWrapper(b *testing.B) {
	s := newStream(nowhere{}, "peer", speak, run, DefaultIOTimeout)
	p := make([]byte, chunk)
	b.ReportAllocs()
	for b.Loop() {
		s.Read(p)
		s.Write(p)
	}
}

// nowhere is a stream that takes and gives everything at once.
type nowhere struct{ network.Stream }

func (nowhere) Read(p []byte) (int, error)       { return len(p), nil }
func (nowhere) Write(p []byte) (int, error)      { return len(p), nil }
func (nowhere) SetReadDeadline(time.Time) error  { return nil }
func (nowhere) SetWriteDeadline(time.Time) error { return nil }
