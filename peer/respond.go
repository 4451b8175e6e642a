package peer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// session is an exchange that this peer serves, with its lanes. Sessions are reused.
type session struct {
	*tracked
	responder *replica.Responder
	patience  *time.Timer   // set while lanes are waited for
	changed   chan struct{} // holds a token if a lane has come or gone

	mu      sync.Mutex
	over    bool
	used    [replica.MaxLanes]bool // lanes that have been opened
	serving int                    // lanes that are being served
}

func newSession(r *replica.Responder) *session {
	s := &session{responder: r, patience: time.NewTimer(time.Hour), changed: make(chan struct{}, 1)}
	s.patience.Stop()
	return s
}

// begin takes an exchange up, with its first lane. No lane of the one before is left.
func (s *session) begin(x *tracked, terms replica.Terms) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracked, s.over = x, false
	s.used, s.serving = [replica.MaxLanes]bool{true}, 1
	s.responder.Begin(terms)
}

// errLaneMissing: every lane that was opened has ended before all slices came.
var errLaneMissing = errors.New("the partner has closed its lanes before all slices came")

// sessions are the exchanges that this peer serves, where further lanes find them.
// The zero value is ready.
type sessions struct {
	mu   sync.Mutex
	open map[exchangeKey]*session
}

func (s *sessions) add(key exchangeKey, x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[exchangeKey]*session)
	}
	s.open[key] = x
}

func (s *sessions) remove(key exchangeKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, key)
}

// enter takes up a lane of the exchange of a key. It returns nil if there is none of
// that number to take.
func (s *sessions) enter(key exchangeKey, lane int) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.open[key]; x != nil && x.enter(lane) {
		return x
	}
	return nil
}

// respond accepts and serves the slices until all are applied at both sides.
func (p *Peer) respond(x *tracked, t *talk, terms replica.Terms) {
	s, key := p.sides.session(p), keyOf(x.event)
	p.begins(x, t, terms.Codecs)
	s.begin(x, terms)
	p.sessions.add(key, s)
	t.numbers = numbers(t.numbers, terms.Codecs)
	accept := wire.Accept{
		Codecs: t.numbers, Window: uint16(s.responder.Window()), Overlap: uint8(terms.Overlap),
		Lanes: uint8(s.responder.Lanes()), Steps: p.counters.steps.Load(), Incarnation: p.incarnation.Load(),
	}
	if err := say(t, terms.Exchange, accept); err != nil {
		x.breakOff(err)
	}
	p.limit(x, t)
	t.bulk()
	if err := tellRanges(s.responder, t); err != nil {
		x.breakOff(err)
	}
	accepted := time.Now()
	t.soon, t.sign = p.tempos.opening(t.stream.Remote(), p.config.Exchange.Stall), accepted
	s.serve(0, t)
	x.opened = t.sign.Sub(accepted)
	s.settle(t.stall)
	p.sessions.remove(key)
	x.bytes.Add(t.sent + t.received)
	x.waited(t)
	done, distance := s.responder.Done(), s.responder.Distance()
	p.counters.again.Add(uint64(s.responder.Again()))
	inDoubt := s.responder.End(p.now())
	p.watchPull(terms.Partner)
	p.sides.keepSession(s)
	if done {
		p.completed(x, distance, t.stream)
		return
	}
	t.stream.Reset()
	p.doubt(x, inDoubt)
	p.failed(x, x.cause())
}

// tellRanges sends what the partner has to know of this side's model before it can
// code slices, if anything.
func tellRanges(r *replica.Responder, t *talk) error {
	for {
		frame, ok, err := r.Ranges(t.frame)
		t.frame = frame
		if err == nil && ok {
			err = t.write(frame)
		}
		if err != nil {
			return fmt.Errorf("telling ranges: %w", err)
		}
		if !ok {
			return nil
		}
	}
}

// serveLane serves a further lane of an exchange under way.
func (p *Peer) serveLane(t *talk, header wire.Header, lane wire.Lane) {
	key := exchangeKey{peer: topology.PeerID(t.stream.Remote()), id: averaging.ExchangeID(header.Exchange), inbound: true}
	s := p.sessions.enter(key, int(lane.Lane))
	if s == nil {
		t.refuse(header.Exchange, wire.ReasonBusy, "no such exchange is under way, or it has that lane")
		return
	}
	t.bulk()
	t.codec = s.codec
	p.limit(s.tracked, t)
	if !s.add(t) {
		t.stream.Reset()
	}
	s.serve(int(lane.Lane), t)
}

// enter takes a lane up. It reports false if there is none of that number to take.
func (s *session) enter(lane int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || lane >= s.responder.Lanes() || s.used[lane] {
		return false
	}
	s.used[lane] = true
	s.serving++
	s.signal()
	return true
}

func (s *session) leave(t *talk, lane int) {
	if lane > 0 {
		s.bytes.Add(t.sent + t.received)
		s.waited(t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving--
	s.signal()
}

func (s *session) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // a token waits already
	}
}

// idle tells whether no lane is being served. Once the exchange is done or broken
// off, none can be taken up after that.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving > 0 {
		return false
	}
	if !slices.Contains(s.used[:s.responder.Lanes()], false) && !s.responder.Done() {
		s.breakOff(errLaneMissing) // no further one can come
	}
	s.over = s.over || s.responder.Done() || s.cause() != nil
	return true
}

// settle waits until every lane has ended. One that was agreed may still be on its
// way when the first has ended: it is waited for within the stall bound.
func (s *session) settle(stall time.Duration) {
	s.patience.Reset(stall)
	defer s.patience.Stop()
	for {
		if s.idle() && s.finished() {
			return
		}
		select {
		case <-s.changed:
		case <-s.patience.C:
			if s.idle() {
				s.breakOff(errLaneMissing)
			}
		}
		s.patience.Reset(stall)
	}
}

// finished tells whether nothing more is to come.
func (s *session) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// serve answers one lane's slices until the partner closes it.
func (s *session) serve(lane int, t *talk) {
	err := s.answer(s.responder.Lane(lane), t)
	switch reason, theirs := replica.Blame(err); {
	case err == nil && lane == 0: // closed once the exchange is over and reported
	case err == nil:
		t.stream.Close()
	case !theirs && lane > 0 && s.responder.Lane(lane).Idle():
		t.stream.Reset() // nothing was lost with it, and others can do its work
	case theirs && s.cause() == nil:
		s.breakOffBut(t.stream, err)
		t.refuse(uint64(s.event.Exchange), reason, err.Error())
	default:
		s.breakOff(err)
	}
	s.leave(t, lane)
}

// breakOffBut ends every lane of the exchange but one, on which the partner is to
// be told why.
func (s *session) breakOffBut(keep seam.Stream, cause error) {
	s.tracked.mu.Lock()
	s.lanes = slices.DeleteFunc(s.lanes, func(lane openLane) bool { return lane.stream == keep })
	s.tracked.mu.Unlock()
	s.breakOff(cause)
}

// answer reads a lane's frames and answers them.
func (s *session) answer(lane *replica.ResponderLane, t *talk) error {
	for {
		header, payload, err := t.next()
		switch {
		case err == io.EOF && lane.Idle():
			return nil
		case err != nil:
			return fmt.Errorf("waiting for a slice: %w", eofIsUnexpected(err))
		}
		var reply []byte
		began := time.Now()
		switch header.Type {
		case wire.TypeCode:
			reply, err = lane.Code(header, payload)
		case wire.TypeAck:
			err = lane.Ack(header)
		default:
			err = fmt.Errorf("waiting for a slice: got %v: %w", header.Type, wire.ErrType)
		}
		s.worked(began)
		if err == nil && reply != nil {
			err = t.write(reply)
		}
		if err != nil {
			return err
		}
	}
}
