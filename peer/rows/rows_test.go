package rows

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
)

// TestRowsTravel: one member holds 1,000 rows and two train on them. Each row is handed out once an epoch, in advance. Rows that
// were not trained are returned. At the end, by the counters of all, each row handed out was trained.
func TestRowsTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, about := newWorld(t), make([]byte, 2*maxAnswer+7)
		about[maxAnswer], about[len(about)-1] = 1, 2
		holder := w.hold(w.member("holder"), numbered{rows: 1000}, HoldConfig{Seed: 1, About: about})
		trainers := []*Batches{w.from(w.member("a"), FromConfig{}), w.from(w.member("b"), FromConfig{})}
		w.met()
		if got, err := trainers[0].About(t.Context(), len(about)); err != nil || !bytes.Equal(got, about) {
			t.Errorf("%d bytes about rows, %v", len(got), err)
		}
		if _, err := trainers[0].About(t.Context(), len(about)-1); !errors.Is(err, ErrAnswer) {
			t.Errorf("more is taken than there is room for: %v", err)
		}
		seen := make([]int, 1000)
		for range 100 {
			for _, b := range trainers {
				for _, row := range numbers(t, w.next(b)) {
					seen[row]++
				}
			}
		}
		if few, many := slices.Min(seen), slices.Max(seen); few < 1 || many > 3 {
			t.Errorf("rows are seen %d to %d times in 2 epochs, of which some are under way", few, many)
		}
		time.Sleep(time.Second)
		if c := holder.Counts(); c.Outstanding() == 0 || c.HandedOut != c.Trained+c.Outstanding() || c.Lost != 0 {
			t.Errorf("while two train: %+v", c)
		}
		began := time.Now()
		w.next(trainers[0])
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a batch that is ready takes %s", waited)
		}
		trained := uint64(0)
		for _, b := range trainers {
			b.Done()
			if err := b.Close(); err != nil || b.Close() != nil {
				t.Error(err)
			}
			all, by := b.Counts()
			if trained += all.Trained; all.Outstanding() != 0 || all.HandedOut != all.Trained || by[w.all[0].Self()] != all {
				t.Errorf("a trainer counts %+v and %+v", all, by)
			}
			if _, err := b.Next(t.Context()); !errors.Is(err, peer.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		if c := holder.Counts(); c.HandedOut != c.Trained || c.Trained != trained || trained != 2010 || c.Outstanding() != 0 {
			t.Errorf("at the end: %+v, and the trainers have trained on %d", c, trained)
		}
		if sent, received := w.all[0].Stats().Exchanges.BytesSent, w.all[1].Stats().Exchanges.BytesReceived; sent < 4*2010 || received < 4*1000 {
			t.Errorf("%d bytes sent and %d received, of 2,010 rows of four", sent, received)
		}
		for _, m := range w.all[1].Members() {
			if holds := m.ID == w.all[0].Self(); holds != (m.Does() == "holds") || holds != (m.Rows == 1000) {
				t.Errorf("%s %s, %d rows", m.ID, m.Does(), m.Rows)
			}
		}
	})
}

// TestDeathsAreCounted: a trainer dies, and its rows are lost and handed out again. A holder dies whose rows trainers have, and
// the trainers' counts stand for its own. In all, handed out = trained + lost.
func TestDeathsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.hold(w.member("first"), numbered{rows: 500}, HoldConfig{Seed: 1})
		w.hold(w.member("second"), numbered{first: 500, rows: 500}, HoldConfig{Seed: 2})
		var trainers []*Batches
		for _, name := range []string{"a", "b", "c"} {
			trainers = append(trainers, w.from(w.member(name), FromConfig{Seed: 3}))
		}
		w.met()
		steps := func(n int, of ...*Batches) {
			var group sync.WaitGroup
			for _, b := range of {
				group.Go(func() {
					for range n {
						w.next(b)
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			group.Wait()
		}
		steps(20, trainers...)
		out := first.Counts().Outstanding()
		w.net.Crash(w.all[4].Self())
		time.Sleep(time.Minute) // until it counts as gone
		steps(20, trainers[:2]...)
		if lost := first.Counts().Lost; lost == 0 || lost > out {
			t.Errorf("%d rows are lost with a trainer, of %d that were out", lost, out)
		}
		w.net.Crash(w.all[1].Self())
		steps(60, trainers[:2]...)
		for _, b := range trainers[:2] {
			b.Done()
			b.Close()
			all, by := b.Counts()
			if all.Trained != 1000 || all.HandedOut != all.Trained+all.Lost {
				t.Errorf("a trainer counts %+v", all)
			}
			if of := by[w.all[1].Self()]; of.HandedOut != of.Trained+of.Lost || of.Trained == 0 || of.Outstanding() != 0 {
				t.Errorf("of the holder that died: %+v", of)
			}
		}
		if total := first.Counts(); total.HandedOut != total.Trained+total.Lost || total.Outstanding() != 0 {
			t.Errorf("in the end %+v", total)
		}
	})
}

// TestMembersComeAndGo: with a round robin, each row is trained once an epoch although trainers come and leave.
func TestMembersComeAndGo(t *testing.T) {
	for _, policy := range []Policy{Random, RoundRobin, Speed} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			holder := w.hold(w.member("holder"), numbered{rows: 1000}, HoldConfig{Seed: 1, Policy: policy})
			var nodes []*peer.Node
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				nodes = append(nodes, w.member(name))
			}
			w.met()
			var mu sync.Mutex
			seen := make([]int, 1000)
			var group sync.WaitGroup
			for i, n := range nodes {
				group.Go(func() {
					time.Sleep(time.Duration(i) * 150 * time.Millisecond)
					b := w.from(n, FromConfig{})
					defer b.Close()
					for range []int{20, 40, 60, 80, 200}[i] {
						got := w.next(b)
						mu.Lock()
						for _, row := range numbers(t, got) {
							seen[row]++
						}
						mu.Unlock()
						time.Sleep(time.Duration(10+i) * time.Millisecond)
					}
					b.Done()
				})
			}
			group.Wait()
			// 4,000 rows are four epochs; those that were given back are taken by the last one, which goes on for long.
			c := holder.Counts()
			if slices.Min(seen) != 4 || slices.Max(seen) != 4 || c.HandedOut != 4000 || c.Trained != 4000 || c.Lost != 0 {
				t.Errorf("policy %d: rows are seen %d to %d times, want 4: %+v", policy, slices.Min(seen), slices.Max(seen), c)
			}
		})
	}
}

// TestNobodyHoldsRows: without a holder, a trainer waits until its caller's context ends, or it closes. Invalid settings are refused.
func TestNobodyHoldsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.member("trainer")
		b := w.from(n, FromConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody holds rows: %v", err)
		}
		if _, err := b.About(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody tells of rows: %v", err)
		}
		long, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		time.AfterFunc(time.Second, func() { b.Close() })
		if _, err := b.About(long, 1); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("nobody tells of rows until it closes: %v", err)
		}
		for what, with := range map[string]FromConfig{
			"no batch": {}, "large batch": {Batch: MaxBatch + 1}, "many hops": {Batch: 1, Hops: MaxHops + 1}, "no bytes": {Batch: 1, Bytes: -1},
		} {
			if _, err := From(n, with); !errors.Is(err, peer.ErrConfig) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, with := range map[string]HoldConfig{"a rate below none": {Rate: -1}, "too much": {About: make([]byte, wire.MaxRowsTotal+1)}, "no policy": {Policy: 9}} {
			if _, err := Hold(n, numbered{rows: 1}, with); !errors.Is(err, peer.ErrConfig) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := Hold(n, noRows{t}, HoldConfig{}); !errors.Is(err, peer.ErrConfig) {
			t.Errorf("no rows are held: %v", err)
		}
	})
}

// TestASilentTrainerHoldsUpNobody: a member with a share of a round robin stops training, but lives. The others wait for Patience
// and no longer. Then they get its share, which is counted.
func TestASilentTrainerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.hold(w.member("holder"), numbered{rows: 2000}, HoldConfig{Policy: RoundRobin})
		silent, b := w.from(w.member("silent"), FromConfig{}), w.from(w.member("b"), FromConfig{})
		w.met()
		w.next(silent)
		began := time.Now()
		for range 250 {
			w.next(b)
		}
		if c := holder.Counts(); c.TakenBack == 0 || c.HandedOut != c.Trained+c.Outstanding() {
			t.Errorf("%+v", c)
		}
		if took := time.Since(began); took < Patience || took > Patience+time.Second {
			t.Errorf("the other was held up for %s", took)
		}
		w.next(silent) // and gets rows again
	})
}

// TestAboutIsMoreThanAnAnswer: who has little memory for rows can ask about them too, and takes rows of that holder then.
func TestAboutIsMoreThanAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		about := make([]byte, 3*maxAnswer/2)
		w.hold(w.member("holder"), numbered{rows: 1000}, HoldConfig{Seed: 1, About: about})
		b := w.from(w.member("taker"), FromConfig{Bytes: 64 << 10})
		w.met()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := b.About(ctx, len(about)); err != nil || len(got) != len(about) {
			t.Errorf("%d bytes about rows: %v", len(got), err)
		}
		w.next(b)
	})
}

// unlike is rows of which the first has one byte, and all others 40 KB.
type unlike struct{ rows int }

func (s unlike) Rows() int { return s.rows }

func (s unlike) Append(dst []byte, rows []int32) ([]byte, error) {
	for _, row := range rows {
		dst = append(dst, make([]byte, 1+min(row, 1)*40_000)...)
	}
	return dst, nil
}

// TestRowsAreUnlike: a row that is much smaller than the others says little of how many fit into an answer.
func TestRowsAreUnlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold(w.member("holder"), unlike{2000}, HoldConfig{})
		b, err := From(w.member("taker"), FromConfig{Batch: 1000, Bytes: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		w.met()
		if got := w.next(b); got.Rows != 1000 || len(got.Data) < 1000*40_000-40_000 {
			t.Errorf("a batch of %d rows in %d bytes", got.Rows, len(got.Data))
		}
	})
}

// large is rows of 600 KB.
type large struct{ rows int }

func (s large) Rows() int { return s.rows }

func (s large) Append(dst []byte, rows []int32) ([]byte, error) {
	return append(dst, make([]byte, len(rows)*600_000)...), nil
}

// TestALargeBatchComes though an answer has room for one row, and a taker may have 64 answers: with the two batches that are drawn in
// advance, and from one holder through another.
func TestALargeBatchComes(t *testing.T) {
	for hops := 1; hops <= 2; hops++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			logged := w.logged()
			for i := range hops {
				w.hold(w.member(string(rune('a'+i))), large{300}, HoldConfig{Log: w.log})
			}
			b, err := From(w.member("taker"), FromConfig{Batch: 70, Hops: hops, Log: w.log})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			w.met()
			for range 3 { // all that are held at once
				if got := w.next(b); got.Rows != 70 {
					t.Errorf("a batch of %d rows in %d bytes", got.Rows, len(got.Data))
				}
				time.Sleep(10 * time.Second) // as long as it is trained on
			}
			if n := logged.Len(); n > 0 {
				t.Errorf("by %d hops %d warnings, the first: %v", hops, n, logged.All()[0])
			}
		})
	}
}

// noRows is a set without rows, none of which may be asked for.
type noRows struct{ t *testing.T }

func (noRows) Rows() int { return 0 }

func (s noRows) Append(dst []byte, rows []int32) ([]byte, error) {
	s.t.Errorf("rows %v of none are asked for", rows)
	return dst, nil
}

// TestJoinedTakesNoMoreThanItHolds: a batch may be large, and would be copied each time that it grew.
func TestJoinedTakesNoMoreThanItHolds(t *testing.T) {
	of := func(value byte, sizes ...uint32) answer {
		return answer{rows: []uint32{1, 2}, sizes: sizes, data: bytes.Repeat([]byte{value}, int(sizes[0]+sizes[1]))}
	}
	got := joined(2, []answer{of('a', 1000, 2000), of('b', 3000, 0), of('c', 500, 2500)})
	var want []byte
	for _, run := range [][]byte{{'a', 10}, {'b', 30}, {'c', 5}, {'a', 20}, {'c', 25}} {
		want = append(want, bytes.Repeat(run[:1], 100*int(run[1]))...)
	}
	if !bytes.Equal(got.data, want) || !slices.Equal(got.rows, []uint32{3, 6}) || !slices.Equal(got.sizes, []uint32{4500, 4500}) {
		t.Errorf("joined %d bytes, %d rows in %d", len(got.data), got.rows, got.sizes)
	}
	if most := cap(slices.Grow([]byte(nil), len(want))); cap(got.data) > most {
		t.Errorf("room for %d bytes, want at most %d", cap(got.data), most)
	}
}
