package framed

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// stall bounds the waits of these tests.
const stall = 5 * time.Second

// meet has one peer converse with another that answers, and returns once both are done.
func meet(t *testing.T, answer func(*Stream), talk func(*Stream) error) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Link: memnet.Link{Delay: 10 * time.Millisecond}})
		host, err1 := n.Transport("host")
		guest, err2 := n.Transport("guest")
		stop, err3 := host.Handle(transport.ProtocolExchange, "run", func(raw transport.Stream) {
			var s Stream
			s.Begin(raw, stall)
			answer(&s)
		})
		raw, err4 := guest.Open(t.Context(), host.Self(), transport.ProtocolExchange, "run")
		if failed := errors.Join(err1, err2, err3, err4); failed != nil {
			t.Fatal(failed)
		}
		err = new(Stream).Converse(t.Context(), raw, stall, talk)
		stop() // which waits for the answer
		_, _ = guest.Close(), host.Close()
	})
	return err
}

// TestWhatIsHeard: the message that is due, or an error that says what came in its stead.
func TestWhatIsHeard(t *testing.T) {
	refusal := func(err error) bool {
		r, ok := errors.AsType[*wire.Refusal](err)
		return ok && r.Reason == wire.ReasonBusy && r.Detail == "later"
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	for name, c := range map[string]struct {
		answer func(*Stream)
		want   func(error) bool
	}{
		"it":              {func(s *Stream) { _ = Say(s, 7, wire.Lane{Lane: 3}); s.Finish() }, is(nil)},
		"a refusal":       {func(s *Stream) { s.Refuse(7, wire.ReasonBusy, "later") }, refusal},
		"another message": {func(s *Stream) { _ = Say(s, 7, wire.Challenge{}); s.Finish() }, is(wire.ErrType)},
		"the end":         {func(s *Stream) { s.Finish() }, is(io.ErrUnexpectedEOF)},
		"a reset":         {func(s *Stream) { s.Reset() }, is(memnet.ErrReset)},
		"nothing":         {func(*Stream) { time.Sleep(2 * stall) }, func(err error) bool { var late net.Error; return errors.As(err, &late) && late.Timeout() }},
	} {
		t.Run(name, func(t *testing.T) {
			err := meet(t, c.answer, func(s *Stream) error {
				var lane wire.Lane
				began := time.Now()
				header, err := s.Receive(&lane)
				if took := time.Since(began); took > stall || err == nil && (lane.Lane != 3 || header.Exchange != 7) {
					t.Errorf("heard %+v in exchange %d after %v", lane, header.Exchange, took)
				}
				return err
			})
			if !c.want(err) {
				t.Errorf("heard with %v", err)
			}
		})
	}
}

// TestALastWordIsNotCutOff: whoever has said it reads what the other end still sends, though
// not for ever, and knows whether that has dealt with all in silence.
func TestALastWordIsNotCutOff(t *testing.T) {
	late := wire.Refuse{Reason: wire.ReasonBusy}
	for name, c := range map[string]struct {
		more func(*Stream) error
		want bool
	}{
		"closed":       {func(*Stream) error { return nil }, true},
		"closed later": {func(*Stream) error { time.Sleep(stall - time.Second); return nil }, true},
		"another word": {func(s *Stream) error { return Say(s, 0, late) }, false},
		"kept open":    {func(*Stream) error { time.Sleep(2 * stall); return nil }, false},
		"reset":        {func(*Stream) error { return io.ErrClosedPipe }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inOrder, took := false, time.Duration(0)
			_ = meet(t, func(s *Stream) {
				began := time.Now()
				_, err := s.Receive(&wire.Challenge{})
				if err = errors.Join(err, Say(s, 0, wire.Lane{Lane: 1}), s.CloseWrite()); err != nil {
					t.Error(err)
				}
				inOrder, took = s.Drain(), time.Since(began)
			}, func(s *Stream) error {
				var lane wire.Lane
				said := Say(s, 0, wire.Challenge{})
				if _, err := s.Receive(&lane); errors.Join(said, err) != nil || lane.Lane != 1 {
					t.Errorf("heard lane %d, %v, having said %v", lane.Lane, err, said)
				}
				return c.more(s)
			})
			if inOrder != c.want || took > stall+time.Second {
				t.Errorf("in order: %v, after %v", inOrder, took)
			}
		})
	}
}

// TestAContextEndsAConversation at once, whatever is waited for.
func TestAContextEndsAConversation(t *testing.T) {
	_ = meet(t, func(s *Stream) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		err := new(Stream).Converse(ctx, s.Stream, stall, func(s *Stream) error { _, _, err := s.Next(); return err })
		if took := time.Since(began); err == nil || took != time.Second {
			t.Errorf("ended with %v after %v", err, took)
		}
	}, func(*Stream) error { time.Sleep(stall); return nil })
}

// TestASignOfLife: the first bytes of a frame that is waited for have to come soon, the rest
// of it within the bound of all, and what came is read again if need be.
func TestASignOfLife(t *testing.T) {
	frame := coded(t, 1, 3000)
	for name, c := range map[string]struct {
		first, rest time.Duration
		want        bool
	}{"in time": {time.Second, 3 * time.Second, true}, "no sign": {2 * time.Second, 0, false}, "no end": {time.Second, 2 * stall, false}} {
		t.Run(name, func(t *testing.T) {
			_ = meet(t, func(s *Stream) {
				s.Bulk()
				s.Soon = 1500 * time.Millisecond
				began := time.Now()
				header, payload, err := s.Next()
				if (err == nil) != c.want || s.Sign.IsZero() != (c.first > 1500*time.Millisecond) || s.Soon != 0 {
					t.Errorf("read with %v after %v, a sign at %v", err, time.Since(began), s.Sign.Sub(began))
				}
				if err == nil {
					s.Unread()
					if again, same, err := s.Next(); again != header || len(same) != len(payload) || err != nil || s.Longest < 4*time.Second {
						t.Errorf("read again with %v; the longest wait was %v", err, s.Longest)
					}
				}
				s.Reset()
			}, func(s *Stream) error {
				time.Sleep(c.first)
				_, err := s.Write(frame[:100])
				time.Sleep(c.rest)
				_, rest := s.Write(frame[100:])
				_, _, end := s.Next()
				return errors.Join(err, rest, end)
			})
		})
	}
}
