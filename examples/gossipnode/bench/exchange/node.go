package exchange

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// node is one of the two processes: a transport, the peers on it, and what
// the references need.
type node struct {
	settings  exchangeSettings
	codec     quant.Codec
	log       *zap.Logger
	transport *p2pnet.Transport
	measured  *steppedPeer
	raw       *steppedPeer // of the raw codec, unless that is the one measured
	load      *load        // nil until the references are prepared
}

// newNode starts a transport and the peer to be measured.
func newNode(ctx context.Context, s exchangeSettings, join []string, log *zap.Logger) (_ *node, err error) {
	n := &node{settings: s, log: log}
	if n.codec, err = quant.ByName(s.codec); err != nil {
		return nil, err
	}
	if n.transport, err = p2pnet.New(p2pnet.Config{Listen: []string{measure.Loopback}, Log: log}); err != nil {
		return nil, err
	}
	if n.measured, err = startPeer(ctx, n.transport, s, s.codec, join, log); err != nil {
		return nil, errors.Join(err, n.transport.Close())
	}
	return n, nil
}

// prepare makes what only the references need. Until then the memory of the process
// is that of a peer.
func (n *node) prepare(ctx context.Context, join []string) (err error) {
	if n.settings.codec != rawCodec {
		if n.raw, err = startPeer(ctx, n.transport, n.settings, rawCodec, join, n.log); err != nil {
			return err
		}
	}
	n.load = newLoad(n.settings, n.codec)
	return nil
}

// rawCodec is the codec that others are held against.
const rawCodec = "raw"

// close leaves the runs and closes everything.
func (n *node) close() error {
	var faults []error
	for _, b := range []*steppedPeer{n.raw, n.measured} {
		if b != nil {
			faults = append(faults, b.peer.Close())
		}
	}
	return errors.Join(append(faults, n.transport.Close())...)
}

// usage is what a process has used since its start.
type usage struct {
	CPU     float64 `json:"cpu"`
	Mallocs uint64  `json:"mallocs"`
}

func usageNow() usage {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory) // exact, unlike package metrics
	return usage{CPU: host.ProcessorSeconds(), Mallocs: memory.Mallocs}
}

// pipe is a connection on which the references move bytes.
type pipe interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	// abort ends reads and writes that are under way.
	abort()
}

// streamPipe and tcpPipe are the two kinds of pipe.
type (
	streamPipe struct{ seam.Stream }
	tcpPipe    struct{ *net.TCPConn }
)

func (p streamPipe) abort() { p.Reset() }
func (p tcpPipe) abort()    { _ = p.Close() }

// openPipe opens a stream to the other process, as an exchange does.
func (n *node) openPipe(ctx context.Context, to seam.PeerID) (streamPipe, error) {
	stream, err := n.transport.Open(ctx, to, measure.ReferenceProtocol, measure.ReferenceRun)
	if err != nil {
		return streamPipe{}, fmt.Errorf("opening a stream for a reference: %w", err)
	}
	return streamPipe{stream}, nil
}
