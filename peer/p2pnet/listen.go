package p2pnet

import (
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// listener serves the streams that others open.
type listener struct {
	*node
	upkeep *upkeep

	mu      sync.Mutex
	routes  map[service]*route
	streams map[slot]int // number of open streams by peer and protocol
}

// service is the key under which a handler is registered.
type service struct {
	protocol transport.Protocol
	run      string
}

// route is one registration of a handler.
type route struct {
	handler transport.Handler
	running sync.WaitGroup
}

// slot is the key by which inbound streams are counted, up to Limits.Streams.
type slot struct {
	peer     peer.ID
	protocol transport.Protocol
}

func newListener(n *node, u *upkeep) *listener {
	return &listener{node: n, upkeep: u, routes: make(map[service]*route), streams: make(map[slot]int)}
}

// Handle routes inbound streams as transport.Listener says.
func (l *listener) Handle(speak transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if err := checkNames(speak, run); err != nil {
		return nil, fmt.Errorf("p2pnet: handling: %w", err)
	}
	if !l.gate.enter() {
		return nil, fmt.Errorf("p2pnet: handling %s of run %q: %w", speak, run, transport.ErrClosed)
	}
	defer l.gate.leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	at, r := service{speak, run}, &route{handler: handler}
	if l.routes[at] != nil {
		return nil, fmt.Errorf("p2pnet: %s of run %q has a handler already", speak, run)
	}
	if !l.speaks(speak) {
		l.host.SetStreamHandler(protocol.ID(speak), l.accept)
	}
	l.routes[at] = r
	return func() {
		l.remove(at, r)
		r.running.Wait()
	}, nil
}

// speaks tells whether a protocol has a handler for any run. The caller holds the lock
// until libp2p knows the change, so that libp2p learns of changes in their order.
func (l *listener) speaks(speak transport.Protocol) bool {
	for at := range l.routes {
		if at.protocol == speak {
			return true
		}
	}
	return false
}

func (l *listener) remove(at service, r *route) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.routes[at] != r {
		return
	}
	delete(l.routes, at)
	if !l.speaks(at.protocol) && l.gate.enter() {
		defer l.gate.leave()
		l.host.RemoveStreamHandler(protocol.ID(at.protocol))
	}
}

// accept serves one inbound stream of which libp2p has agreed on the protocol.
func (l *listener) accept(raw network.Stream) {
	if !l.gate.enter() {
		_ = raw.Reset()
		return
	}
	defer l.gate.leave()
	from := slot{peer: raw.Conn().RemotePeer(), protocol: transport.Protocol(raw.Protocol())}
	if !l.take(from) {
		l.refused.add("too many streams")
		l.remark("refused a stream: this peer has too many open; it leaks streams, or runs another version", from, "")
		_ = raw.ResetWithError(codeTooManyStreams)
		return
	}
	defer l.give(from)
	l.upkeep.carry(raw.Conn(), from.protocol)
	s := newStream(raw, transport.PeerID(from.peer.String()), from.protocol, "", l.config.ioTimeout)
	run, err := l.readRun(s)
	if err != nil {
		l.refused.add("bad preamble")
		l.log.Debug("cut a stream that did not name its run", zap.Stringer("peer", from.peer), zap.Error(err))
		_ = raw.ResetWithError(codeBadPreamble)
		return
	}
	s.run = run
	r := l.enter(service{from.protocol, run})
	if r == nil {
		l.refused.add("unknown run")
		l.remark("refused a stream: this process takes no part in that run; start one of the two with the other's run name, "+
			"or take this process off that peer's join addresses", from, run)
		_ = raw.ResetWithError(codeUnknownRun)
		return
	}
	defer r.running.Done()
	r.handler(s)
}

// readRun reads the preamble, all of it within the handshake's time: a peer that
// sends a byte now and then does not hold a slot for longer.
func (l *listener) readRun(s *stream) (string, error) {
	if err := s.SetReadDeadline(time.Now().Add(l.config.handshakeTimeout)); err != nil {
		return "", err
	}
	run, err := readPreamble(s)
	if err != nil {
		return "", err
	}
	return run, s.SetReadDeadline(time.Time{})
}

func (l *listener) remark(message string, from slot, run string) {
	l.log.Warn(message, zap.Stringer("peer", from.peer), zap.String("protocol", string(from.protocol)), zap.String("run", run))
}

// enter returns a route with its running handlers counted up, or nil.
func (l *listener) enter(at service) *route {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.routes[at]
	if r != nil {
		r.running.Add(1)
	}
	return r
}

func (l *listener) take(at slot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[at] >= l.config.Limits.Streams {
		return false
	}
	l.streams[at]++
	return true
}

func (l *listener) give(at slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[at]--; l.streams[at] == 0 {
		delete(l.streams, at)
	}
}
