package conversations

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// faulty is a transport of which some streams are what a test makes of them.
type faulty struct {
	transport.Transport
	opened func(context.Context) error // of a stream of exchanges
	lane   func(context.Context, transport.Stream) (transport.Stream, error)
	served func(transport.Stream) transport.Stream
}

// faults wraps transports so; what is nil stays as it is.
func faults(f faulty) func(transport.Transport) transport.Transport {
	return func(t transport.Transport) transport.Transport {
		f.Transport = t
		return f
	}
}

func (f faulty) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	if f.opened != nil {
		return nil, f.opened(ctx)
	}
	return f.Transport.Open(ctx, to, protocol, run)
}

func (f faulty) OpenLane(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string, lane int) (transport.Stream, error) {
	stream, err := f.Transport.OpenLane(ctx, to, protocol, run, lane)
	if err != nil || f.lane == nil {
		return stream, err
	}
	return f.lane(ctx, stream)
}

func (f faulty) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if f.served == nil {
		return f.Transport.Handle(protocol, run, handler)
	}
	return f.Transport.Handle(protocol, run, func(stream transport.Stream) { handler(f.served(stream)) })
}

// swallowing is a stream that takes what is written and delivers nothing.
type swallowing struct{ transport.Stream }

func (swallowing) Write(b []byte) (int, error) { return len(b), nil }

// TestBadLanesDoNotStopExchanges: the first stream does what the others cannot, and a partner to
// whom lanes do not work is soon spoken to over one.
func TestBadLanesDoNotStopExchanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		fails  int // exchanges, of five
		within time.Duration
		lane   func(context.Context, transport.Stream) (transport.Stream, error)
	}{
		{"never opens", 0, time.Second, func(ctx context.Context, lane transport.Stream) (transport.Stream, error) {
			lane.Reset()
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{"dead when it opens", 0, time.Second, func(_ context.Context, lane transport.Stream) (transport.Stream, error) {
			lane.Reset()
			return lane, nil
		}},
		{"swallows what is sent", 1, stall + time.Second, func(_ context.Context, lane transport.Stream) (transport.Stream, error) {
			return swallowing{lane}, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{lanes: 2, wrap: faults(faulty{lane: c.lane})})
				failed, took := 0, time.Duration(0)
				for range 5 {
					took += r.meet()
					if r.a.loop.last().Kind != averaging.Finished {
						failed++
					}
					pass(stall)
					r.b.RepairAll(stall)
				}
				if failed != c.fails || took > c.within {
					t.Errorf("%d of 5 exchanges failed, want %d; they took %s", failed, c.fails, took)
				}
				r.conserved(c.name)
				r.idle(c.name)
			})
		})
	}
}

// losing is a stream that loses each ACCEPT, and takes a second until it knows.
type losing struct{ transport.Stream }

func (s losing) Write(b []byte) (int, error) {
	header, _, err := wire.NewReader(bytes.NewReader(b), 0).Next()
	if err != nil || header.Type != wire.TypeAccept {
		return s.Stream.Write(b)
	}
	time.Sleep(time.Second)
	return 0, errors.New("the connection is gone")
}

// TestALaneOfAnExchangeWhoseAnswerIsLost: a lane that has come before the answer to its proposal was
// lost ends with the exchange, which waits for that.
func TestALaneOfAnExchangeWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{lanes: 2, wrap: faults(faulty{served: func(s transport.Stream) transport.Stream { return losing{s} }})})
		first, proposal := r.byHand(1), r.proposal()
		proposal.Lanes = 2
		first.say(first.pack(proposal))
		pass(100 * time.Millisecond)
		second := r.byHand(1)
		second.say(second.pack(wire.Lane{Lane: 1}))
		began := time.Now()
		if header, _, err := second.frames.Next(); err == nil {
			t.Errorf("the lane is answered %v", header.Type)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the lane ended after %s", took)
		}
		synctest.Wait()
		r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
		r.idle("a lost answer")
	})
}

// TestAnOpeningIsGivenUp: an exchange that its machine gives up does not go on opening its stream.
func TestAnOpeningIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{wrap: faults(faulty{opened: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})})
		x := r.a.propose(r.b, 1)
		pass(time.Second)
		r.a.loop.hears(t, "a")
		r.a.Abort(x)
		synctest.Wait()
		r.a.loop.hears(t, "a", averaging.Failed)
		if ends := r.a.loop.ends; len(ends) != 1 || !errors.Is(ends[0], session.ErrAborted) && !errors.Is(ends[0], context.Canceled) {
			t.Errorf("hooks hear %v", ends)
		}
		r.idle("the opening")
	})
}
