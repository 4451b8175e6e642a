package exchange

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
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
	if n.transport, err = p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}, Log: log}); err != nil {
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

// newLog is what a process of the measurement has to say: only what is amiss.
func newLog(std cli.Streams) *zap.Logger { return cli.NewLog(zapcore.WarnLevel, std.Err) }

const (
	// rawCodec is the codec that others are held against.
	rawCodec = "raw"
	// What is spoken on the streams of the references.
	referenceProtocol = transport.Protocol("/gossipnode/bench/1")
	referenceRun      = "bench"
	// peerTimeout bounds the wait for anything that the other process has to do.
	peerTimeout = time.Minute
)

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

// pipe is a connection on which the references move bytes: a stream, or a tcpPipe.
type pipe interface {
	io.ReadWriter
	// Reset ends reads and writes that are under way.
	Reset()
}

type tcpPipe struct{ *net.TCPConn }

func (p tcpPipe) Reset() { _ = p.Close() }
