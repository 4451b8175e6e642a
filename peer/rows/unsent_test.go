package rows

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// wide is rows of 1 KiB, which count how many bytes were encoded.
type wide struct {
	rows    int
	encoded *atomic.Int64
}

func (s wide) Rows() int { return s.rows }

func (s wide) Append(dst []byte, rows []int32) ([]byte, error) {
	s.encoded.Add(int64(len(rows)) << 10)
	return append(dst, make([]byte, len(rows)<<10)...), nil
}

// slowly has a member ask as often as it may, and read a frame each 4 s until it is told to read all; came counts the rows of whole
// answers.
func (w *world) slowly(n *peer.Node, read <-chan struct{}, came *atomic.Int64) {
	service, holder := asking(w.t, n), w.all[0].Self()
	for range maxOut {
		go func() {
			_ = service.Ask(w.t.Context(), holder, func(s *framed.Stream) error {
				err := framed.Say(s, 0, wire.Want{Rows: []uint32{wire.MaxRows}, Hops: 1})
				s.Bulk()
				var m wire.Rows
				for rows, left := 0, 1; err == nil && left > 0; left -= len(m.Data) {
					select {
					case <-read:
					case <-time.After(4 * time.Second):
					}
					if _, err = s.Receive(&m); len(m.Rows) > 0 {
						rows, left = count(m.Rows), count(m.Bytes)
					}
					if err == nil && left == len(m.Data) {
						came.Add(int64(rows))
					}
				}
				if err == nil {
					err = framed.Say(s, 0, wire.Done{Trained: 1})
					s.Finish()
				}
				return err
			})
		}()
	}
}

// TestTakersThatDoNotRead: what members ask for and do not read takes a bounded part of a holder's memory, of each and of all
// together, for a bounded time, and keeps rows from nobody else.
func TestTakersThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, encoded, came, never := newWorld(t), new(atomic.Int64), new(atomic.Int64), make(chan struct{})
		w.net = memnet.New(memnet.Config{Window: 16 << 10}) // what is within it counts as sent
		h := w.hold(w.member("holder"), wide{1 << 20, encoded}, HoldConfig{})
		first, encodedBefore := w.member("first"), encoded.Load()
		w.met()
		w.slowly(first, never, came)
		time.Sleep(time.Second)
		if n := encoded.Load() - encodedBefore; n > maxUnsent || n < maxUnsent/2 {
			t.Errorf("%d MiB wait for one that does not read", n>>20)
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"} {
			n := w.member(name)
			w.met()
			w.slowly(n, never, came)
		}
		time.Sleep(time.Second)
		if n := encoded.Load() - encodedBefore; n > maxAllUnsent+21*leastUnsent || n < maxAllUnsent/2 {
			t.Errorf("%d MiB wait for many that do not read", n>>20)
		}
		honest, began := w.member("honest"), time.Now()
		w.met()
		b, err := From(honest, FromConfig{Batch: 100})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			w.next(b)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("one that reads waits %s", took)
		}
		b.Close()
		time.Sleep(longest)
		h.unsent.mu.Lock()
		defer h.unsent.mu.Unlock()
		if h.unsent.all > 0 || len(h.unsent.of) > 0 {
			t.Errorf("of what nobody reads %d bytes are kept", h.unsent.all)
		}
	})
}

// TestATakerThatReadsLate gets what it asked for, all at once, and as fast as its rate allows.
func TestATakerThatReadsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, encoded, came, read := newWorld(t), new(atomic.Int64), new(atomic.Int64), make(chan struct{})
		h := w.hold(w.member("holder"), wide{1 << 20, encoded}, HoldConfig{})
		late := w.member("late")
		w.met()
		w.slowly(late, read, came)
		time.Sleep(2 * time.Second)
		close(read)
		time.Sleep(6 * time.Second)
		if n, c := came.Load(), h.Counts(); n<<10 < maxOut*maxAnswer || c.Trained != uint64(n) || c.Outstanding() > 0 {
			t.Errorf("%d rows have come: %+v", n, c)
		}
	})
}

// TestUnsent: one taker, and all together, have at most so much, and one that has nothing always gets something.
func TestUnsent(t *testing.T) {
	u := newUnsent()
	ended, end := context.WithCancel(t.Context())
	end()
	reserves := func(taker transport.PeerID, want int) {
		t.Helper()
		if n, err := u.reserve(ended, taker, 2*maxUnsent); n != want || (err == nil) != (want > 0) {
			t.Errorf("%s has %d bytes, %v, want %d", taker, n, err, want)
		}
	}
	reserves("a", maxUnsent)
	reserves("a", 0)
	u.add("a", maxAnswer-maxUnsent) // it was less
	reserves("a", maxUnsent-maxAnswer)
	u.add("b", maxAllUnsent-maxUnsent-4*maxAnswer)
	reserves("c", 4*maxAnswer)
	reserves("c", 0)
	reserves("d", leastUnsent)
	reserves("d", 0)
	u.add("a", -maxUnsent)
	reserves("c", maxUnsent-4*maxAnswer)
	if len(u.of) != 3 {
		t.Errorf("%v", u.of)
	}
}
