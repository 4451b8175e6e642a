package rows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// answering is a hostile holder that says what it has, and answers each question as it likes.
func answering(said Holding, answer func(s *framed.Stream, number uint64, want wire.Want) error) func(context.Context, transport.Stream) {
	return func(ctx context.Context, stream transport.Stream) {
		defer context.AfterFunc(ctx, stream.Reset)()
		defer stream.Reset()
		var (
			s     framed.Stream
			wants Holding
			want  wire.Want
		)
		s.Begin(stream, time.Hour)
		if _, err := s.Receive(&wants); err != nil || framed.Say(&s, 0, said) != nil {
			return
		}
		for {
			header, payload, err := s.Next()
			if err != nil {
				return
			}
			if header.Type == wire.TypeWant && (want.Decode(payload) != nil || answer(&s, header.Exchange, want) != nil) {
				return
			}
		}
	}
}

// TestHostileHolders: a trainer takes nothing of a holder that answers what was not asked, endlessly or not at all. It says who
// that is and what was wrong, takes all from an honest one, and its memory stays as it is.
func TestHostileHolders(t *testing.T) {
	said := Holding{Kind: "numbers", Rows: 1 << 40, Life: 1}
	data := make([]byte, wire.MaxRowsData)
	say := func(s *framed.Stream, number uint64, m wire.Rows) error { return framed.Say(s, number, m) }
	for name, c := range map[string]struct {
		answer func(context.Context, transport.Stream)
		want   error
	}{
		"wrong shapes": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			return say(s, n, wire.Rows{Rows: w.Rows, Total: 7, Data: data[:7]})
		}), errShape},
		"more than was asked": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			return say(s, n, wire.Rows{Rows: w.Rows + 1, Total: 4 * (w.Rows + 1), Data: data[:4*(w.Rows+1)]})
		}), ErrAnswer},
		"a batch that is too large": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			return say(s, n, wire.Rows{Rows: w.Rows, Total: wire.MaxRowsTotal, Data: data})
		}), ErrAnswer},
		"endless parts": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			for {
				if err := say(s, n, wire.Rows{Rows: w.Rows, Total: 1 << 20, Data: data}); err != nil {
					return err
				}
				time.Sleep(100 * time.Microsecond) // without, virtual time stands still
			}
		}), ErrAnswer},
		"an endless stream of empty answers": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			for {
				if err := say(s, n, wire.Rows{}); err != nil {
					return err
				}
				time.Sleep(100 * time.Microsecond) // without, virtual time stands still
			}
		}), ErrAnswer},
		"another question's answer": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			return say(s, n+1, wire.Rows{Rows: w.Rows, Total: 4 * w.Rows, Data: data[:4*w.Rows]})
		}), ErrAnswer},
		"nothing": {answering(said, func(*framed.Stream, uint64, wire.Want) error { return nil }), nil},
		"no word": {func(ctx context.Context, s transport.Stream) { <-ctx.Done(); s.Reset() }, nil},
		"half an answer": {answering(said, func(s *framed.Stream, n uint64, w wire.Want) error {
			return say(s, n, wire.Rows{Rows: w.Rows, Total: 4 * w.Rows, Data: data[:4]})
		}), nil},
		"noise": {func(_ context.Context, s transport.Stream) {
			for range 64 {
				if _, err := s.Write(data); err != nil {
					break
				}
			}
			s.Reset()
		}, wire.ErrMagic},
		"another kind": {answering(Holding{Kind: "other", Rows: 1}, func(*framed.Stream, uint64, wire.Want) error { return nil }), ErrAnswer},
		"a message of something else": {answering(said, func(s *framed.Stream, n uint64, _ wire.Want) error {
			return framed.Say(s, n, wire.Welcome{})
		}), wire.ErrType},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				core, logged := observer.New(zap.WarnLevel)
				n := w.member("trainer")
				bad := w.hostile("bad", 1<<20, c.answer)
				w.met()
				alone := w.from(n, FromConfig{Kind: "numbers", Wait: 20 * time.Second, Bytes: 1 << 20, Log: zap.New(core)})
				_, err := alone.Next(t.Context())
				fault, _ := errors.AsType[*Fault](err)
				late := net.Error(nil)
				if fault == nil || fault.Partner != bad.Self() || c.want != nil && !errors.Is(err, c.want) || c.want == nil && !(errors.As(err, &late) && late.Timeout()) {
					t.Errorf("the trainer says %v", err)
				}
				alone.Close()
				if all := logged.All(); len(all) == 0 || len(all) > 40 || all[0].ContextMap()["peer"] != string(bad.Self()) {
					t.Errorf("%d lines logged", len(all))
				}
				honest := w.hold(w.member("honest"), numbered{rows: 50}, HoldConfig{})
				w.met()
				b := w.from(n, FromConfig{Kind: "numbers", Bytes: 1 << 20})
				for range 20 {
					w.next(b)
				}
				b.Done()
				b.Close()
				if c := honest.Counts(); c.Trained != 200 || c.HandedOut != 200 {
					t.Errorf("the honest holder: %+v", c)
				}
			})
		})
	}
}

// asking opens a stream to a holder as a trainer does.
func asking(t *testing.T, n *peer.Node, holder transport.PeerID) *framed.Stream {
	t.Helper()
	service, err := peer.Serve(n, transport.ProtocolRows, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	stream, err := service.Open(t.Context(), holder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Reset)
	s := &framed.Stream{}
	s.Begin(stream, time.Hour)
	s.Limit(wire.MaxPayload)
	if err := framed.Say(s, 0, Holding{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHostileTakers: a holder refuses those that ask for ever, lie about what they have or say what nobody should, by a typed
// reason and a line that names them. What they had is lost, counted, and handed out to others.
func TestHostileTakers(t *testing.T) {
	want := wire.Want{Rows: 10, Hops: 1}
	for name, c := range map[string]struct {
		do     func(s *framed.Stream) error
		reason wire.Reason
		lost   uint64
	}{
		"asks for ever": {func(s *framed.Stream) error {
			for number := uint64(1); ; number++ {
				if err := framed.Say(s, number, want); err != nil {
					return err
				}
				if _, err := s.Receive(&wire.Rows{}); err != nil {
					return err
				}
			}
		}, wire.ReasonBusy, 640},
		"asks the same question twice": {func(s *framed.Stream) error {
			for range 2 {
				_ = framed.Say(s, 7, want)
			}
			return nil
		}, wire.ReasonProtocol, 10},
		"tells of rows that it does not have": {func(s *framed.Stream) error { return framed.Say(s, 7, wire.Done{Fate: 1}) }, wire.ReasonProtocol, 0},
		"asks for too much": {func(s *framed.Stream) error {
			return framed.Say(s, 1, wire.Want{Rows: wire.MaxWantedRows + 1, Hops: 1})
		}, wire.ReasonProtocol, 0},
		"says something else": {func(s *framed.Stream) error { return framed.Say(s, 1, wire.Welcome{}) }, wire.ReasonProtocol, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				core, logged := observer.New(zap.WarnLevel)
				holder := w.hold(w.member("holder"), numbered{rows: 1000}, HoldConfig{Log: zap.New(core)})
				n := w.member("taker")
				w.met()
				s := asking(t, n, w.all[0].Self())
				if _, err := s.Receive(&Holding{}); err != nil {
					t.Fatal(err)
				}
				err := c.do(s)
				for err == nil {
					_, err = s.Receive(&wire.Rows{})
				}
				refusal, _ := errors.AsType[*wire.Refusal](err)
				if refusal == nil || refusal.Reason != c.reason {
					t.Errorf("the taker is told %v", err)
				}
				s.Close()
				synctest.Wait()
				if all := logged.All(); len(all) != 1 || all[0].ContextMap()["peer"] != string(n.Self()) {
					t.Errorf("logged %v", all)
				}
				if got := holder.Counts(); got.Lost != c.lost || got.HandedOut != c.lost || got.Outstanding != 0 {
					t.Errorf("%+v, want %d lost", got, c.lost)
				}
			})
		})
	}
}

// TestATakerHasItsRate: who takes rows and tells at once that it has trained gets no more than its rate, over all its streams, and
// holds up nobody else; the memory of the holder does not grow.
func TestATakerHasItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.hold(w.member("holder"), numbered{rows: 1 << 20}, HoldConfig{Rate: 1 << 20})
		greedy, other := w.member("greedy"), w.member("other")
		w.met()
		began := time.Now()
		var before, after runtime.MemStats
		for i := range 2 {
			s := asking(t, greedy, w.all[0].Self())
			if _, err := s.Receive(&Holding{}); err != nil {
				t.Fatal(err)
			}
			go func() {
				for number := uint64(1); ; number++ {
					if framed.Say(s, number, wire.Want{Rows: wire.MaxWantedRows, Hops: 1}) != nil {
						return
					}
					for m := (wire.Rows{Total: 1}); m.Offset+uint32(len(m.Data)) < m.Total; {
						if _, err := s.Receive(&m); err != nil {
							return
						}
					}
					if framed.Say(s, number, wire.Done{Fate: 1}) != nil {
						return
					}
				}
			}()
			if i == 0 {
				runtime.ReadMemStats(&before)
			}
		}
		time.Sleep(20 * time.Second)
		b := w.from(other, FromConfig{})
		asked := time.Now()
		w.next(b)
		if took := time.Since(asked); took > 100*time.Millisecond {
			t.Errorf("another waits %s", took)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		sent, most := w.all[0].Stats().Exchanges.BytesSent, (1+time.Since(began).Seconds())*(1<<20)*1.01
		if float64(sent) > most || float64(sent) < most/2 {
			t.Errorf("%d bytes are sent in %s, want at most %.0f and no less than half", sent, time.Since(began), most)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
			t.Errorf("memory has grown by %d bytes", grown)
		}
		if c := holder.Counts(); c.HandedOut != c.Trained+c.Outstanding {
			t.Errorf("%+v", c)
		}
	})
}

// TestStrangersGetNothing: who is no member of the run is refused, whatever it asks.
func TestStrangersGetNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.hold(w.member("holder"), numbered{rows: 100}, HoldConfig{})
		tr, err := w.net.Transport("stranger")
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		stream, err := tr.Open(t.Context(), w.all[0].Self(), transport.ProtocolRows, run)
		if err != nil {
			t.Fatal(err)
		}
		var s framed.Stream
		s.Begin(stream, time.Minute)
		_ = framed.Say(&s, 0, Holding{})
		_, err = s.Receive(&Holding{})
		refusal, _ := errors.AsType[*wire.Refusal](err)
		if refusal == nil || refusal.Reason != wire.ReasonNotMember || holder.Counts() != (Counts{}) {
			t.Errorf("a stranger is told %v, and counts are %+v", err, holder.Counts())
		}
		stream.Reset()
	})
}

// TestManyStreams: one partner has so many streams, and no more.
func TestManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold(w.member("holder"), numbered{rows: 100}, HoldConfig{})
		n := w.member("taker")
		w.met()
		var err error
		for i := range maxStreams + 1 {
			s := asking(t, n, w.all[0].Self())
			if _, err = s.Receive(&Holding{}); (err != nil) != (i == maxStreams) {
				t.Fatal(fmt.Errorf("stream %d: %w", i, err))
			}
		}
		if refusal, _ := errors.AsType[*wire.Refusal](err); refusal == nil || refusal.Reason != wire.ReasonBusy {
			t.Errorf("one stream more: %v", err)
		}
	})
}
