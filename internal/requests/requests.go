// Package requests opens and serves streams with a request and its answer: all conversations other than
// exchanges. It counts their frames.
package requests

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxIdle bounds the streams of frames that are kept for their next use.
const maxIdle = 16

// Requests makes and answers the requests of a member. Safe for concurrent use.
type Requests struct {
	Run       string
	Transport transport.Transport
	Stall     time.Duration // bounds the wait for a frame
	Counters  *counters.Counters
	Log       *zap.Logger
	idle      idle.Pool[*framed.Stream]
}

// New makes the requests of a run over a transport.
func New(run string, tr transport.Transport, stall time.Duration, counts *counters.Counters, log *zap.Logger) *Requests {
	return &Requests{
		Run: run, Transport: tr, Stall: stall, Counters: counts, Log: log,
		idle: idle.NewPool(maxIdle, func() *framed.Stream { return &framed.Stream{} }),
	}
}

// Answering makes a handler of answer; an error of answer means that no request could be read.
func (r *Requests) Answering(answer func(*framed.Stream) error) transport.Handler {
	return func(stream transport.Stream) {
		s := r.idle.Take()
		s.Begin(stream, r.Stall)
		defer r.done(s)
		err := answer(s)
		if err == nil {
			return
		}
		reason, theirs := wire.ReasonFor(err)
		if !theirs {
			s.Reset() // there is nobody to inform, or the peer is closing
			return
		}
		r.Malformed(s.Remote(), reason, err)
		s.Refuse(0, reason, err.Error())
	}
}

// Converse opens a stream to a peer and calls talk on it. It closes the stream after talk,
// or resets it if talk fails or ctx ends.
func (r *Requests) Converse(ctx context.Context, to transport.PeerID, protocol transport.Protocol, talk func(*framed.Stream) error) error {
	stream, err := r.Transport.Open(ctx, to, protocol, r.Run)
	if err != nil {
		return err
	}
	s := r.idle.Take()
	defer r.done(s)
	return s.Converse(ctx, stream, r.Stall, talk)
}

// Malformed logs and counts an invalid request.
func (r *Requests) Malformed(from transport.PeerID, reason wire.Reason, err error) {
	r.Counters.Declined(reason)
	r.Log.Warn("refused a stream that speaks otherwise", zap.String("peer", string(from)), zap.Error(err), zap.String("remedy", reason.Remedy()))
}

// done counts the bytes of a stream and takes it back for reuse; it is already closed or
// reset.
func (r *Requests) done(s *framed.Stream) {
	r.Counters.Moved(0, s.Sent, s.Received)
	s.Stream = nil
	r.idle.Put(s)
}
