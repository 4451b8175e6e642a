package p2pnet

import (
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// listener serves the streams that others open.
type listener struct {
	*node
	upkeep *upkeep
	routes routes
	slots  slots
}

// Handle routes inbound streams as seam.Listener says.
func (l *listener) Handle(speak seam.Protocol, run string, handler seam.Handler) (func(), error) {
	if err := checkNames(speak, run); err != nil {
		return nil, fmt.Errorf("p2pnet: handling: %w", err)
	}
	if !l.gate.enter() {
		return nil, fmt.Errorf("p2pnet: handling %s of run %q: %w", speak, run, seam.ErrClosed)
	}
	defer l.gate.leave()
	r := &route{handler: handler}
	if !l.routes.add(speak, run, r, func() { l.host.SetStreamHandler(protocol.ID(speak), l.accept) }) {
		return nil, fmt.Errorf("p2pnet: %s of run %q has a handler already", speak, run)
	}
	var once sync.Once
	return func() {
		once.Do(func() { l.routes.remove(speak, run, func() { l.unlist(speak) }) })
		r.running.Wait()
	}, nil
}

func (l *listener) unlist(speak seam.Protocol) {
	if l.gate.enter() {
		defer l.gate.leave()
		l.host.RemoveStreamHandler(protocol.ID(speak))
	}
}

// accept serves one inbound stream of which libp2p has agreed on the protocol.
func (l *listener) accept(raw network.Stream) {
	if !l.gate.enter() {
		_ = raw.Reset()
		return
	}
	defer l.gate.leave()
	from := slot{peer: raw.Conn().RemotePeer(), protocol: seam.Protocol(raw.Protocol())}
	if !l.slots.take(from) {
		l.counters.tooManyStreams.Add(1)
		l.remark("refused a stream: this peer has too many open; it leaks streams, or runs another version", from, "")
		_ = raw.ResetWithError(codeTooManyStreams)
		return
	}
	defer l.slots.give(from)
	l.upkeep.carry(raw.Conn(), from.protocol)
	s := newStream(raw, seam.PeerID(from.peer.String()), from.protocol, "", l.config.IOTimeout)
	run, err := l.hearRun(s)
	if err != nil {
		l.counters.badPreambles.Add(1)
		l.log.Debug("cut a stream that did not name its run", zap.Stringer("peer", from.peer), zap.Error(err))
		_ = raw.ResetWithError(codeBadPreamble)
		return
	}
	s.run = run
	r := l.routes.enter(from.protocol, run)
	if r == nil {
		l.counters.unknownRuns.Add(1)
		l.remark("refused a stream: this process takes no part in that run; start one of the two with the other's run name, "+
			"or take this process off that peer's join addresses", from, run)
		_ = raw.ResetWithError(codeUnknownRun)
		return
	}
	defer r.running.Done()
	r.handler(s)
}

// hearRun reads the preamble, all of it within the handshake's time: a peer that
// sends a byte now and then does not hold a slot for longer.
func (l *listener) hearRun(s *stream) (string, error) {
	if err := s.SetReadDeadline(time.Now().Add(l.config.HandshakeTimeout)); err != nil {
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

// route is one registration of a handler.
type route struct {
	handler seam.Handler
	running sync.WaitGroup
}

// routes finds the handler of a protocol and run.
type routes struct {
	mu    sync.Mutex
	table map[seam.Protocol]map[string]*route
}

// add puts a route in, unless there is one, and calls list if it is the first of
// its protocol. The call is made under the lock so that listing and unlisting
// happen in the order of the table's changes.
func (r *routes) add(speak seam.Protocol, run string, to *route, list func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table == nil {
		r.table = make(map[seam.Protocol]map[string]*route)
	}
	runs := r.table[speak]
	if runs[run] != nil {
		return false
	}
	if runs == nil {
		runs = make(map[string]*route)
		r.table[speak] = runs
		list()
	}
	runs[run] = to
	return true
}

// remove takes a route out and calls unlist if it was the last of its protocol.
func (r *routes) remove(speak seam.Protocol, run string, unlist func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.table[speak], run)
	if len(r.table[speak]) == 0 {
		delete(r.table, speak)
		unlist()
	}
}

// enter returns a route with its running handlers counted up, or nil.
func (r *routes) enter(speak seam.Protocol, run string) *route {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.table[speak][run]
	if to != nil {
		to.running.Add(1)
	}
	return to
}

// slot is what inbound streams are counted by.
type slot struct {
	peer     peer.ID
	protocol seam.Protocol
}

// slots counts inbound streams, up to limit per slot.
type slots struct {
	limit int

	mu    sync.Mutex
	taken map[slot]int
}

func (s *slots) take(at slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = make(map[slot]int)
	}
	if s.taken[at] >= s.limit {
		return false
	}
	s.taken[at]++
	return true
}

func (s *slots) give(at slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[at]--; s.taken[at] == 0 {
		delete(s.taken, at)
	}
}
