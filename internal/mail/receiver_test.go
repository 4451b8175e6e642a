package mail

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// slowStream takes its time to be reset, as one does whose transport has to send that.
type slowStream struct {
	transport.Stream
	from  transport.PeerID
	reset chan struct{}
}

func newSlowStream(from transport.PeerID) *framed.Stream {
	var f framed.Stream
	f.Begin(slowStream{from: from, reset: make(chan struct{})}, stall)
	return &f
}

func (s slowStream) Remote() transport.PeerID { return s.from }

func (s slowStream) SetReadDeadline(time.Time) error { return nil }

func (s slowStream) Read([]byte) (int, error) {
	<-s.reset
	return 0, io.ErrClosedPipe
}

func (s slowStream) Reset() {
	time.Sleep(time.Second)
	close(s.reset)
}

// TestNothingWaitsForAStreamToBeReset: neither an older stream in whose place another has come
// nor those that Close resets keep anything waiting.
func TestNothingWaitsForAStreamToBeReset(t *testing.T) {
	for name, reset := range map[string]func(m *Mailbox){
		"an older stream": func(m *Mailbox) { go m.Receive(newSlowStream("a"), nil) },
		"the end":         func(m *Mailbox) { m.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(Config{Lost: func(transport.PeerID, error) { t.Error("it is told as lost") }})
				first := make(chan error, 1)
				go func() { first <- m.Receive(newSlowStream("a"), nil) }()
				synctest.Wait()
				began := time.Now()
				reset(m)
				go m.Receive(newSlowStream("b"), nil)
				synctest.Wait()
				m.receiver.mu.Lock()
				if m.breaks["b"] == nil || time.Since(began) > 0 {
					t.Errorf("another partner's stream waits, after %s", time.Since(began))
				}
				m.receiver.mu.Unlock()
				<-first
				if waited := time.Since(began); waited != time.Second {
					t.Errorf("the first stream has ended after %s", waited)
				}
				m.Close(context.Background())
				time.Sleep(2 * time.Second) // for the others
			})
		})
	}
}

// TestALimitIsForAllStreams: of a partner that begins one stream after the other no more is received than
// on one; another partner has a limit of its own.
func TestALimitIsForAllStreams(t *testing.T) {
	m := New(Config{Rate: Rate{PerSecond: 2000, AtOnce: 500, AtFirst: 16}})
	now := time.Now()
	for _, partner := range []transport.PeerID{"a", "b"} {
		received := 0
		for range 1000 {
			if m.limit(partner, now).ReserveN(now, 1).DelayFrom(now) == 0 {
				received++
			}
		}
		if received != 16 {
			t.Errorf("%s: %d messages received at once on 1000 streams, want 16", partner, received)
		}
	}
	if New(Config{}).limit("a", now) != nil {
		t.Error("a limit where there is none")
	}
}

// TestMessagesAreReceivedAtARate: who sends much is received no faster than at the rate, and what it sends
// beyond it waits.
func TestMessagesAreReceivedAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{Rate: Rate{PerSecond: 10, AtOnce: 5, AtFirst: 2}})
		for i := range 22 {
			p.send(i)
		}
		synctest.Wait()
		if n := len(p.got()); n != 2 {
			t.Errorf("%d messages came at once", n)
		}
		time.Sleep(time.Second + time.Millisecond)
		if n := len(p.got()); n != 12 {
			t.Errorf("%d messages came within a second", n)
		}
		time.Sleep(time.Second)
		p.want(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
	})
}

// TestANewerStreamTakesThePlace: what comes on the newer one is received, and the older one is ended.
func TestANewerStreamTakesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		p.send(1)
		synctest.Wait()
		stream, err := p.from.Transport.Open(t.Context(), p.to.Transport.Self(), protocol, run)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Reset()
		frame, _ := wire.Pack(nil, 0, wire.Tell{Kind: 2})
		if _, err := stream.Write(frame); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.want(1, 2)
		if ended, lost := p.errs(&p.ended), p.errs(&p.unheard); len(ended) != 1 || len(lost) > 0 {
			t.Errorf("the older stream ended with %v, lost: %v", ended, lost)
		}
		stream.Reset()
		synctest.Wait()
		if lost := p.errs(&p.unheard); len(lost) != 1 {
			t.Errorf("after the newer one has broken, lost: %v", lost)
		}
	})
}

// TestAReceiverEndsAStream: at a message that its user does not take, after a silence, or when its other
// end has closed it.
func TestAReceiverEndsAStream(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		then  func(transport.Stream)
		kind  uint8
		after time.Duration
		want  error
	}{
		"a message is refused": {func(transport.Stream) {}, 7, 0, refused},
		"silence":              {func(transport.Stream) {}, 1, stall + idleAfter, nil},
		"the end":              {func(s transport.Stream) { s.CloseWrite() }, 1, 0, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(t, Config{}, Config{})
				ended := make(chan error, 1)
				p.serve = func(s transport.Stream) {
					defer s.Reset()
					var f framed.Stream
					f.Begin(s, stall)
					err := p.to.Receive(&f, func(_ wire.Header, payload []byte) error {
						var m wire.Tell
						if m.Decode(payload); m.Kind == 7 {
							return refused
						}
						return nil
					})
					synctest.Wait()
					if _, err := s.Write([]byte{1}); err != nil || f.Stall != stall {
						t.Errorf("the stream is not its user's: %v, it waits for %s", err, f.Stall)
					}
					ended <- err
				}
				stream, err := p.from.Transport.Open(t.Context(), p.to.Transport.Self(), protocol, run)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Reset()
				frame, _ := wire.Pack(nil, 0, wire.Tell{Kind: c.kind})
				stream.Write(frame)
				c.then(stream)
				began := time.Now()
				if err := <-ended; c.want != nil && err != c.want || err == nil {
					t.Errorf("it ended with %v, want %v", err, c.want)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it ended after %s, want %s", took, c.after)
				}
			})
		})
	}
}
