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

// node is one of the two processes: a transport, its peers, and the data for the references.
type node struct {
	settings  exchangeSettings
	codec     quant.Codec
	log       *zap.Logger
	transport *p2pnet.Transport
	measured  *steppedPeer
	raw       *steppedPeer // with codec raw; nil if that is the measured one
	load      *load        // nil until the references are prepared
}

// newNode starts a transport and the measured peer.
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

// prepare allocates what only the references need. Until then the process has the memory of a peer.
func (n *node) prepare(ctx context.Context, join []string) (err error) {
	if n.settings.codec != rawCodec {
		if n.raw, err = startPeer(ctx, n.transport, n.settings, rawCodec, join, n.log); err != nil {
			return err
		}
	}
	n.load = newLoad(n.settings, n.codec)
	return nil
}

// newLog makes the log of a process, which has warnings and errors only.
func newLog(std cli.Streams) *zap.Logger { return cli.NewLog(zapcore.WarnLevel, std.Err) }

const (
	// rawCodec is the codec that others are compared with.
	rawCodec = "raw"
	// referenceProtocol is the protocol of the references' streams.
	referenceProtocol = transport.Protocol("/gossipnode/bench/1")
	referenceRun      = "bench"
	// peerTimeout bounds each wait for the other process.
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

// usage has the resources that a process has used since its start.
type usage struct {
	CPU     float64 `json:"cpu"`
	Mallocs uint64  `json:"mallocs"`
}

func usageNow() usage {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory) // exact, unlike package metrics
	return usage{CPU: host.ProcessorSeconds(), Mallocs: memory.Mallocs}
}

// pipe is a connection for the references: a stream, or a tcpPipe.
type pipe interface {
	io.ReadWriter
	// Reset ends running reads and writes.
	Reset()
}

type tcpPipe struct{ *net.TCPConn }

func (p tcpPipe) Reset() { _ = p.Close() }
