package rows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
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

// answering is a hostile holder that answers each question as it likes.
func answering(answer func(s *framed.Stream, want wire.Want) error) func(context.Context, *framed.Stream) error {
	return func(ctx context.Context, s *framed.Stream) error {
		defer s.Reset()
		var want wire.Want
		if _, err := s.Receive(&want); err == nil && answer(s, want) == nil {
			<-ctx.Done()
		}
		return nil
	}
}

// TestHostileHolders: a trainer takes no rows from a holder whose answers are wrong, endless or missing. It names the holder and
// the fault, takes all rows from an honest holder, and its memory does not grow.
func TestHostileHolders(t *testing.T) {
	data := make([]byte, wire.MaxRowsData)
	say := func(s *framed.Stream, rows, bytes uint32, data []byte) error {
		return framed.Say(s, 0, wire.Rows{Rows: []uint32{rows}, Bytes: []uint32{bytes}, Data: data})
	}
	endless := func(s *framed.Stream, m wire.Rows) (err error) {
		for ; err == nil; err = framed.Say(s, 0, m) {
			time.Sleep(100 * time.Microsecond) // without, virtual time stands still
		}
		return err
	}
	for name, c := range map[string]struct {
		answer func(s *framed.Stream, w wire.Want) error
		want   error
	}{
		"wrong shapes":              {func(s *framed.Stream, w wire.Want) error { return say(s, w.Rows[0], 7, data[:7]) }, errShape},
		"more than was asked":       {func(s *framed.Stream, w wire.Want) error { return say(s, w.Rows[0]+1, 44, data[:44]) }, ErrAnswer},
		"a batch that is too large": {func(s *framed.Stream, w wire.Want) error { return say(s, w.Rows[0], wire.MaxRowsTotal, data) }, ErrAnswer},
		"more bytes than it says":   {func(s *framed.Stream, w wire.Want) error { return say(s, w.Rows[0], 40, data) }, ErrAnswer},
		"answers to another question": {func(s *framed.Stream, w wire.Want) error {
			return framed.Say(s, 0, wire.Rows{Rows: []uint32{1, 1}, Bytes: []uint32{4, 4}, Data: data[:8]})
		}, ErrAnswer},
		"endless parts": {func(s *framed.Stream, w wire.Want) error {
			return endless(s, wire.Rows{Rows: w.Rows, Bytes: []uint32{1 << 20}, Data: data})
		}, ErrAnswer},
		"an endless stream of nothing": {func(s *framed.Stream, w wire.Want) error {
			if err := say(s, w.Rows[0], 40, nil); err != nil {
				return err
			}
			return endless(s, wire.Rows{})
		}, ErrAnswer},
		"nothing":        {func(*framed.Stream, wire.Want) error { return nil }, nil},
		"half an answer": {func(s *framed.Stream, w wire.Want) error { return say(s, w.Rows[0], 40, data[:4]) }, nil},
		"noise": {func(s *framed.Stream, _ wire.Want) error {
			for range 64 {
				if _, err := s.Write(data); err != nil {
					return err
				}
			}
			return nil
		}, wire.ErrMagic},
		"a message of something else": {func(s *framed.Stream, _ wire.Want) error { return framed.Say(s, 0, wire.Welcome{}) }, wire.ErrType},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				core, logged := observer.New(zap.WarnLevel)
				n := w.member("trainer")
				bad := w.hostile("bad", 1<<20, answering(c.answer))
				w.met()
				alone := w.from(n, FromConfig{Bytes: 1 << 20, Log: zap.New(core)})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				_, err := alone.Next(ctx)
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
				b := w.from(n, FromConfig{Bytes: 1 << 20})
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

// TestHoldersThatGiveNothingStarveNobody: members that claim very many rows, and have none now, one at a time, or send theirs a
// byte at a time, keep a trainer from an honest holder for a bounded time.
func TestHoldersThatGiveNothingStarveNobody(t *testing.T) {
	none := func(s *framed.Stream, w wire.Want) error {
		rows := make([]uint32, len(w.Rows))
		return framed.Say(s, 0, wire.Rows{Rows: rows, Bytes: rows})
	}
	for name, c := range map[string]struct {
		answer func(s *framed.Stream, w wire.Want) error
		most   time.Duration // until there are 100 batches
	}{
		"none now": {none, time.Second},
		"none, late": {func(s *framed.Stream, w wire.Want) error {
			time.Sleep(4 * time.Second)
			return none(s, w)
		}, 20 * time.Second},
		"a row, late": {func(s *framed.Stream, w wire.Want) error {
			m := wire.Rows{Rows: make([]uint32, len(w.Rows)), Bytes: make([]uint32, len(w.Rows)), Data: make([]byte, 4)}
			m.Rows[0], m.Bytes[0] = 1, 4
			time.Sleep(4 * time.Second)
			return framed.Say(s, 0, m)
		}, 20 * time.Second},
		"a byte at a time": {func(s *framed.Stream, w wire.Want) error {
			m := wire.Rows{Rows: w.Rows, Bytes: make([]uint32, len(w.Rows)), Data: make([]byte, 1)}
			for i, n := range w.Rows {
				m.Bytes[i] = 4 * n
			}
			for {
				if err := framed.Say(s, 0, m); err != nil {
					return err
				}
				m.Rows, m.Bytes = nil, nil
				time.Sleep(4 * time.Second)
			}
		}, 3 * longest},
	} {
		for seed := range uint64(4) { // by two hops, a trainer speaks to one of the two first: to the other with all bits of the seed inverted
			hops := 1 + int(seed%2)
			t.Run(fmt.Sprintf("%s, %d hops, seed %d", name, hops, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					n := w.member("trainer")
					w.hostile("bad", 1<<40, answering(c.answer))
					w.hold(w.member("honest"), numbered{rows: 50}, HoldConfig{})
					w.met()
					began, b := time.Now(), w.from(n, FromConfig{Batch: 20, Bytes: 1 << 20, Hops: hops, Seed: -(seed / 2)})
					ctx, cancel := context.WithTimeout(t.Context(), c.most)
					defer cancel()
					for i := range 100 {
						if _, err := b.Next(ctx); err != nil {
							t.Errorf("batch %d after %v: %v", i, time.Since(began), err)
							break
						}
					}
					b.Close()
				})
			})
		}
	}
}

// brittle has rows that cannot be encoded.
type brittle struct{ numbered }

func (s brittle) Append(dst []byte, rows []int32) ([]byte, error) {
	if len(rows) == 1 && rows[0] == 0 && len(dst) == 0 {
		return s.numbered.Append(dst, rows) // that Hold looks at
	}
	return dst, errors.New("the disk is gone")
}

// TestRowsThatCannotBeEncoded: they stop the holder that passes rows on neither, nor keep it busy.
func TestRowsThatCannotBeEncoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		core, logged := observer.New(zap.WarnLevel)
		n := w.member("trainer")
		w.hold(w.member("broken"), brittle{numbered{rows: 50}}, HoldConfig{Log: zap.New(core)})
		w.met()
		b := w.from(n, FromConfig{Batch: 10, Bytes: 1 << 20, Hops: 2})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := b.Next(ctx); err == nil {
			t.Error("a batch of rows that cannot be encoded")
		}
		b.Close()
		if n := logged.Len(); n == 0 || n > 400 {
			t.Errorf("%d lines logged", n)
		}
	})
}

// asking is a hostile member that sends holders any message it likes.
func asking(t *testing.T, n *peer.Node) *peer.Service {
	t.Helper()
	service, err := peer.Serve(n, transport.ProtocolRows, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	return service
}

// TestHostileTakers: a holder refuses takers that ask endlessly, report wrong numbers or send invalid messages. It gives a typed
// reason, and logs a line that names the taker. The taker's rows count as lost, and are handed out to others.
func TestHostileTakers(t *testing.T) {
	want := wire.Want{Rows: []uint32{6, 4}, Hops: 1}
	for name, c := range map[string]struct {
		after wire.Message // that is said once there is an answer
		first wire.Message // or in the stead of a question
		lost  uint64
	}{
		"asks again on a stream":               {after: want, lost: 10},
		"tells of parts that it does not have": {after: wire.Done{Trained: 2, Lost: 1}, lost: 10},
		"asks for too much":                    {first: wire.Want{Rows: []uint32{wire.MaxRows + 1}, Hops: 1}},
		"says something else":                  {first: wire.Welcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				logged := w.logged()
				holder := w.hold(w.member("holder"), numbered{rows: 1000}, HoldConfig{})
				n := w.member("taker")
				w.met()
				err := asking(t, n).Ask(t.Context(), w.all[0].Self(), func(s *framed.Stream) error {
					if c.first != nil {
						return errors.Join(framed.Say(s, 0, c.first), refused(s))
					}
					err := framed.Say(s, 0, want)
					if err == nil {
						_, err = s.Receive(&wire.Rows{})
					}
					return errors.Join(err, framed.Say(s, 0, c.after), refused(s))
				})
				refusal, _ := errors.AsType[*wire.Refusal](err)
				if refusal == nil || refusal.Reason != wire.ReasonProtocol {
					t.Errorf("the taker is told %v", err)
				}
				synctest.Wait()
				if all := logged.All(); len(all) != 1 || all[0].ContextMap()["peer"] != string(n.Self()) {
					t.Errorf("logged %v", all)
				}
				if got := holder.Counts(); got.Lost != c.lost || got.HandedOut != c.lost || got.Outstanding() != 0 {
					t.Errorf("%+v, want %d lost", got, c.lost)
				}
			})
		})
	}
}

// refused reads the refusal that must come.
func refused(s *framed.Stream) error {
	_, err := s.Receive(&wire.Rows{})
	return err
}

// TestAskingForEver: a taker that asks endlessly and never reports what became of its rows gets maxOut answers and no more. When
// it dies, all its rows count as lost.
func TestAskingForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		core, logged := observer.New(zap.WarnLevel)
		holder := w.hold(w.member("holder"), numbered{rows: 1000}, HoldConfig{Log: zap.New(core)})
		n := w.member("taker")
		w.met()
		greedy, ctx, cancel := asking(t, n), t.Context(), context.CancelFunc(nil)
		ctx, cancel = context.WithCancel(ctx)
		var group sync.WaitGroup
		for i := range maxOut + 1 {
			came := make(chan error)
			group.Go(func() {
				_ = greedy.Ask(ctx, w.all[0].Self(), func(s *framed.Stream) error {
					_ = framed.Say(s, 0, wire.Want{Rows: []uint32{10}, Hops: 1})
					_, err := s.Receive(&wire.Rows{})
					came <- err
					<-ctx.Done()
					return err
				})
			})
			err := <-came
			if refusal, _ := errors.AsType[*wire.Refusal](err); (refusal != nil && refusal.Reason == wire.ReasonBusy) != (i == maxOut) {
				t.Fatalf("question %d: %v", i, err)
			}
		}
		if all := logged.All(); len(all) != 1 || all[0].ContextMap()["peer"] != string(n.Self()) {
			t.Errorf("logged %v", all)
		}
		cancel()
		group.Wait()
		time.Sleep(time.Second)
		if got := holder.Counts(); got.Lost != 10*maxOut || got.HandedOut != got.Lost {
			t.Errorf("%+v", got)
		}
	})
}

// TestATakerHasItsRate: a taker that reports rows as trained at once gets no more than its rate, over all its streams. It does not
// delay other takers, and the memory of the holder does not grow.
func TestATakerHasItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.hold(w.member("holder"), numbered{rows: 1 << 20}, HoldConfig{Rate: 1 << 20})
		greedy, other := w.member("greedy"), w.member("other")
		w.met()
		began := time.Now()
		var before, after runtime.MemStats
		service, ctx := asking(t, greedy), t.Context()
		runtime.ReadMemStats(&before)
		for range 2 {
			go func() {
				for ctx.Err() == nil {
					_ = service.Ask(ctx, w.all[0].Self(), func(s *framed.Stream) error {
						_ = framed.Say(s, 0, wire.Want{Rows: []uint32{wire.MaxRows}, Hops: 1})
						s.Bulk()
						var m wire.Rows
						_, err := s.Receive(&m)
						for left := count(m.Bytes) - len(m.Data); err == nil && left > 0; left -= len(m.Data) {
							_, err = s.Receive(&m)
						}
						if err == nil {
							err = framed.Say(s, 0, wire.Done{Trained: 1})
							s.Finish()
						}
						return err
					})
				}
			}()
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
		if c := holder.Counts(); c.HandedOut != c.Trained+c.Outstanding() {
			t.Errorf("%+v", c)
		}
	})
}

// TestStrangersGetNothing: a peer that is no member of the run is refused, whatever it asks.
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
		_ = framed.Say(&s, 0, wire.Want{Rows: []uint32{1}, Hops: 1})
		_, err = s.Receive(&wire.Rows{})
		refusal, _ := errors.AsType[*wire.Refusal](err)
		if refusal == nil || refusal.Reason != wire.ReasonNotMember || holder.Counts() != (Counts{}) {
			t.Errorf("a stranger is told %v, and counts are %+v", err, holder.Counts())
		}
		stream.Reset()
	})
}
