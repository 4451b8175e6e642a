package mail

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMessagesArriveInOrder shows that those of no topic go before others, that a topic can be dropped, and
// that a stream stays open.
func TestMessagesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		p.from.Transport = slow{p.from.Transport}
		p.send(0)
		synctest.Wait() // it waits for a stream
		for i, topic := range []string{"x", "y", "", "x", ""} {
			if err := Send(p.from, p.to.Transport.Self(), topic, wire.Tell{Kind: uint8(i + 1)}); err != nil {
				t.Error(err)
			}
		}
		p.from.Forget("x")
		time.Sleep(2 * time.Second)
		p.want(0, 3, 5, 2)
		p.send(6)
		p.want(0, 3, 5, 2, 6)
		if n := len(p.errs(&p.ended)) + len(p.errs(&p.lost)); n > 0 {
			t.Errorf("%d streams have ended", n)
		}
	})
}

// slow is a transport that takes its time to open a stream.
type slow struct{ transport.Transport }

func (s slow) Open(ctx context.Context, to transport.PeerID, p transport.Protocol, run string) (transport.Stream, error) {
	time.Sleep(time.Second)
	return s.Transport.Open(ctx, to, p, run)
}

// TestWhatWaitsIsBounded: of too many messages for a partner that takes nothing the last are lost, or all
// that wait in the place of the last, and what is left comes once it takes them.
func TestWhatWaitsIsBounded(t *testing.T) {
	for _, renew := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPost(t, Config{Bounds: Bounds{Messages: 5, Bytes: 1 << 20, Renew: renew}}, Config{})
			takes := make(chan struct{})
			p.serve = func(s transport.Stream) {
				<-takes
				p.receive(s)
			}
			full, most := 0, 0
			for i := range 40 {
				err := Send(p.from, p.to.Transport.Self(), "", wire.Tell{Kind: uint8(i)})
				if errors.Is(err, ErrFull) {
					full++
				} else if err != nil {
					t.Error(err)
				}
				synctest.Wait()
				_, n := p.waiting()
				most = max(most, n)
			}
			close(takes)
			synctest.Wait()
			got := p.got()
			if most != 5 || renew == (full > 0) || got[0] != 0 || renew != (got[len(got)-1] == 39) || len(got) > 5+window/40+1 {
				t.Errorf("renew %t: messages %v came, up to %d waited, %d were refused", renew, got, most, full)
			}
		})
	}
}

// TestAPartnerThatReadsNothing: what waits for it is lost once it has had its time, whatever comes then
// waits a moment, and it gets that when it reads again.
func TestAPartnerThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		reads := make(chan struct{})
		p.serve = func(s transport.Stream) {
			select {
			case <-reads:
				p.receive(s)
			default:
				<-reads
				s.Reset()
			}
		}
		for i := range 50 {
			p.send(i)
		}
		time.Sleep(stall - time.Millisecond)
		if senders, messages := p.waiting(); senders != 1 || messages < 40 || len(p.errs(&p.lost)) > 0 {
			t.Errorf("%d messages wait, lost: %v", messages, p.errs(&p.lost))
		}
		time.Sleep(2 * time.Millisecond)
		if _, messages := p.waiting(); messages != 0 || len(p.errs(&p.lost)) == 0 {
			t.Errorf("%d messages wait for who takes none, lost: %v", messages, p.errs(&p.lost))
		}
		close(reads)
		p.send(60)
		p.want()
		time.Sleep(restFor)
		p.want(60)
	})
}

// TestWhoCannotBeReachedIsLeftAlone: a partner is tried once in a while, whatever there is to say to it.
func TestWhoCannotBeReachedIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		p.net.Crash(p.to.Transport.Self())
		for range 500 {
			p.send(1)
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(p.errs(&p.lost)); n < 9 || n > 11 {
			t.Errorf("%d times in 5 s one was tried that is away", n)
		}
	})
}

// TestAStreamThatBreaksIsReplaced: where the other end has reset it, where only the writing shows it, and
// where only the reading does.
func TestAStreamThatBreaksIsReplaced(t *testing.T) {
	for name, by := range map[string]func(b *broken){
		"reset":   func(b *broken) { b.Stream.Reset() },
		"writing": func(b *broken) { b.refuses.Store(true) },
		"reading": func(b *broken) { b.SetReadDeadline(time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(t, Config{}, Config{})
				first := &breaking{Transport: p.from.Transport}
				p.from.Transport = first
				p.send(1)
				p.want(1)
				by(first.stream)
				p.want(1)
				began := time.Now()
				p.send(2, 3)
				p.want(1, 2, 3)
				if first.opened != 2 || time.Since(began) > 0 || len(p.errs(&p.lost)) != 1 {
					t.Errorf("%d streams after %s, lost: %v", first.opened, time.Since(began), p.errs(&p.lost))
				}
			})
		})
	}
}

// breaking is a transport whose first stream can be broken.
type breaking struct {
	transport.Transport
	opened int
	stream *broken
}

func (b *breaking) Open(ctx context.Context, to transport.PeerID, p transport.Protocol, run string) (transport.Stream, error) {
	stream, err := b.Transport.Open(ctx, to, p, run)
	if b.opened++; b.opened > 1 {
		return stream, err
	}
	b.stream = &broken{Stream: stream}
	return b.stream, err
}

// broken is a stream that can refuse to write.
type broken struct {
	transport.Stream
	refuses atomic.Bool
}

func (b *broken) Write(p []byte) (int, error) {
	if b.refuses.Load() {
		return 0, io.ErrClosedPipe
	}
	return b.Stream.Write(p)
}

// TestAnIdleStreamIsClosed: in good order, with all that belongs to it, and the next message opens another.
func TestAnIdleStreamIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		p.send(1)
		time.Sleep(idleAfter - time.Second)
		p.send(2)
		time.Sleep(idleAfter - time.Second)
		if senders, _ := p.waiting(); senders != 1 {
			t.Errorf("%d senders before the time", senders)
		}
		time.Sleep(2 * time.Second)
		if senders, _ := p.waiting(); senders != 0 || !slices.Equal(p.errs(&p.ended), []error{io.EOF}) {
			t.Errorf("%d senders after the time, the other end heard %v", senders, p.errs(&p.ended))
		}
		if len(p.to.breaks) > 0 {
			t.Error("the stream that has ended is remembered")
		}
		p.send(3)
		p.want(1, 2, 3)
		if lost := p.errs(&p.lost); len(lost) > 0 {
			t.Errorf("lost: %v", lost)
		}
	})
}

// TestNobodyIsForgottenForWhomSomethingWaits shows that a message that comes at the last moment is sent.
func TestNobodyIsForgottenForWhomSomethingWaits(t *testing.T) {
	m, q := New(Config{}), queueOf(Bounds{Messages: 1, Bytes: 1})
	m.queues["a"] = q
	fill(t, q, put{"1", "", nil})
	if m.retire("a") {
		t.Error("a message is forgotten")
	}
	q.take(nil)
	if !m.retire("a") || len(m.queues) > 0 {
		t.Error("a partner for whom nothing waits is remembered")
	}
}

// TestCloseWaitsForWhoIsTold shows that nobody is told of a loss after Close.
func TestCloseWaitsForWhoIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		var told atomic.Bool
		p.from.Lost = func(transport.PeerID, error) {
			time.Sleep(time.Second)
			told.Store(true)
		}
		p.serve = func(s transport.Stream) {
			s.Read(make([]byte, 1))
			s.Reset()
		}
		p.send(1)
		synctest.Wait()
		if p.from.Close(t.Context()); !told.Load() {
			t.Error("Close has not waited")
		}
	})
}

// TestCloseSendsWhatWaits: to a partner that takes it, and nothing is sent or received afterwards.
func TestCloseSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, Config{}, Config{})
		p.serve = func(s transport.Stream) {
			time.Sleep(time.Second)
			p.receive(s)
		}
		p.send(1, 2, 3, 4, 5, 6, 7, 8)
		p.from.Close(t.Context())
		p.want(1, 2, 3, 4, 5, 6, 7, 8)
		if ends := p.errs(&p.ended); !slices.Equal(ends, []error{io.EOF}) {
			t.Errorf("the stream ended with %v", ends)
		}
		if err := Send(p.from, p.to.Transport.Self(), "", wire.Tell{}); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		p.to.Close(t.Context())
		stream, err := p.from.Transport.Open(t.Context(), p.to.Transport.Self(), protocol, run)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Reset()
		frame, _ := wire.Pack(nil, 0, wire.Tell{Kind: 9})
		if _, err := stream.Write(frame); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if ends := p.errs(&p.ended); len(ends) != 2 || len(p.errs(&p.unheard)) > 0 {
			t.Errorf("after Close streams ended with %v, lost: %v", ends, p.errs(&p.unheard))
		}
		p.want(1, 2, 3, 4, 5, 6, 7, 8)
		p.from.Close(t.Context())
	})
}

// TestCloseEndsInTime: neither a partner that reads nothing, nor one that cannot be reached, nor the rest
// after such a one, nor one that does not end its stream, holds it up.
func TestCloseEndsInTime(t *testing.T) {
	const within = 3 * time.Second
	for name, c := range map[string]struct {
		confirmed bool
		prepare   func(p *post)
		want      time.Duration
	}{
		"reads nothing":     {true, func(p *post) { p.send(1, 2, 3, 4, 5, 6, 7, 8, 9) }, within},
		"does not end":      {true, func(p *post) { p.send(1) }, within},
		"is not waited for": {false, func(p *post) { p.send(1) }, 0},
		"is not reached": {true, func(p *post) {
			p.from.Transport = hanging{p.from.Transport}
			p.send(1)
		}, within},
		"is left alone": {true, func(p *post) {
			p.net.Crash(p.to.Transport.Self())
			p.send(1)
		}, 0},
		"is idle": {true, func(*post) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(t, Config{}, Config{})
				p.from.Confirmed = c.confirmed
				closed := make(chan struct{})
				p.serve = func(s transport.Stream) {
					defer s.Reset()
					<-closed
				}
				c.prepare(p)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				began := time.Now()
				p.from.Close(ctx)
				close(closed)
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
			})
		})
	}
}

// hanging is a transport that opens no stream before its caller gives up.
type hanging struct{ transport.Transport }

func (hanging) Open(ctx context.Context, _ transport.PeerID, _ transport.Protocol, _ string) (transport.Stream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
