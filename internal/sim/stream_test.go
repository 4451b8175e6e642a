package sim

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// wired is a line between peers 0 and 1, and what its streams' ends have read.
type wired struct {
	queue Queue
	line  *line
}

func newWired(link Link, seed uint64) *wired {
	w := &wired{}
	w.line = &line{queue: &w.queue, spare: new(buffers), link: link, chance: rand.New(rand.NewPCG(seed, 0)).Float64}
	return w
}

// heard is all that one end has read, and when the last of it came.
type heard struct {
	bytes []byte
	at    []time.Duration // of every arrival
	fault error
}

// stream opens a stream whose ends read at once what comes.
func (w *wired) stream(from, to int) (s *Stream, opener, other *heard) {
	s = newStream(w.line, from, to)
	return s, w.attend(&s.ends[0]), w.attend(&s.ends[1])
}

func (w *wired) attend(e *end) *heard {
	h := &heard{}
	e.ready = func() {
		more, err := io.ReadAll(e)
		if len(more) > 0 {
			h.bytes = append(h.bytes, more...)
			h.at = append(h.at, w.queue.Now())
		}
		if h.fault == nil && !errors.Is(err, errDry) {
			if h.fault = err; err == nil {
				h.fault = io.EOF
			}
		}
	}
	return h
}

func TestLinkTakesItsTime(t *testing.T) {
	w := newWired(Link{Delay: 10 * time.Millisecond, Bandwidth: 1000}, 0)
	a, _, first := w.stream(0, 1)
	b, back, second := w.stream(1, 0)
	a.ends[0].Write(make([]byte, 500))
	b.ends[1].Write(make([]byte, 250)) // the same way, so behind it
	b.ends[0].Write(make([]byte, 100)) // the other way
	w.queue.Run(time.Minute)
	for _, arrival := range []struct {
		name string
		of   *heard
		want time.Duration
	}{{"first", first, 510}, {"behind it", back, 760}, {"other way", second, 110}} {
		if want := arrival.want * time.Millisecond; len(arrival.of.at) != 1 || arrival.of.at[0] != want {
			t.Errorf("%s: arrived at %v, want %v", arrival.name, arrival.of.at, want)
		}
	}
}

// TestLossCostsTimeOnly compares the rate over a link that loses with that of one
// that does not.
func TestLossCostsTimeOnly(t *testing.T) {
	took := func(loss float64) time.Duration {
		w := newWired(Link{Delay: time.Millisecond, Bandwidth: 1e6, Loss: loss}, 7)
		s, _, got := w.stream(0, 1)
		var sent []byte
		for i := range 200 {
			piece := bytes.Repeat([]byte{byte(i)}, 3000)
			sent = append(sent, piece...)
			s.ends[0].Write(piece)
		}
		w.queue.Run(time.Hour)
		if !bytes.Equal(got.bytes, sent) {
			t.Fatalf("with loss %g %d bytes arrived of %d, or in another order", loss, len(got.bytes), len(sent))
		}
		return got.at[len(got.at)-1]
	}
	clean, half := took(0), took(0.5)
	if want := 601 * time.Millisecond; clean != want {
		t.Errorf("600 kB took %v without loss, want %v", clean, want)
	}
	// Each of the 600 segments is sent twice on average.
	if ratio := float64(half) / float64(clean); ratio < 2 || ratio > 3.5 {
		t.Errorf("losing every other segment takes %.2f times as long", ratio)
	}
}

func TestCutStreamDeliversExactlySoMuch(t *testing.T) {
	w := newWired(Link{Delay: 5 * time.Millisecond}, 0)
	s, opener, other := w.stream(0, 1)
	s.CutAfter(0, 150)
	s.ends[0].Write(make([]byte, 100))
	s.ends[0].Write(make([]byte, 100))
	w.queue.After(4*time.Millisecond, func() { s.ends[1].Write([]byte("under way")) })
	w.queue.Run(time.Second)
	if len(other.bytes) != 150 || len(opener.bytes) != 0 {
		t.Errorf("%d and %d bytes arrived, want 150 and none", len(other.bytes), len(opener.bytes))
	}
	if other.fault != ErrReset || opener.fault != ErrReset {
		t.Errorf("the ends saw %v and %v", other.fault, opener.fault)
	}
	if err := s.ends[0].Write(nil); !errors.Is(err, ErrReset) {
		t.Errorf("writing afterwards: %v", err)
	}
	if len(w.line.streams) != 0 {
		t.Error("the line still knows the stream")
	}
}

func TestResetComesBehindWhatWasWritten(t *testing.T) {
	w := newWired(Link{Delay: time.Millisecond, Bandwidth: 1000}, 0)
	s, opener, other := w.stream(1, 0)
	s.ends[0].Write([]byte("last words"))
	s.ends[1].Write([]byte("unread"))
	s.ends[0].Reset()
	w.queue.Run(time.Second)
	if string(other.bytes) != "last words" || other.fault != ErrReset {
		t.Errorf("the other end read %q and then %v", other.bytes, other.fault)
	}
	if len(opener.bytes) != 0 {
		t.Errorf("the end that broke it off read %q", opener.bytes)
	}
}

func TestFrozenLineKeepsOrder(t *testing.T) {
	w := newWired(Link{Delay: 3 * time.Millisecond}, 0)
	s, _, other := w.stream(0, 1)
	s.ends[0].Write([]byte("a"))
	w.line.frozen = true
	w.queue.Run(10 * time.Millisecond)
	s.ends[0].Write([]byte("b"))
	w.queue.After(2*time.Millisecond, w.line.thaw)
	w.queue.After(2*time.Millisecond, func() { s.ends[0].Write([]byte("c")) })
	w.queue.After(2500*time.Microsecond, func() {
		if string(other.bytes) != "a" {
			t.Errorf("thawed, %q had arrived", other.bytes)
		}
	})
	w.queue.Run(time.Second)
	if string(other.bytes) != "abc" {
		t.Errorf("arrived: %q", other.bytes)
	}
}

func TestStalledDirectionGoesOnWhereItStopped(t *testing.T) {
	w := newWired(Link{Delay: time.Millisecond}, 0)
	s, opener, other := w.stream(0, 1)
	s.StallAfter(0, 4)
	s.ends[0].Write([]byte("stall"))
	s.ends[0].Write([]byte("ed"))
	s.ends[0].CloseWrite()
	s.ends[1].Write([]byte("not this way"))
	w.queue.Run(time.Second)
	if string(other.bytes) != "stal" || other.fault != nil || string(opener.bytes) != "not this way" {
		t.Errorf("stalled, %q and %q had arrived, and %v", other.bytes, opener.bytes, other.fault)
	}
	s.Resume(0)
	w.queue.Run(2 * time.Second)
	if string(other.bytes) != "stalled" || other.fault != io.EOF {
		t.Errorf("resumed, %q had arrived, and then %v", other.bytes, other.fault)
	}
}

// TestWhatArrivesIsWhatWasWritten holds for any writes and faults: it arrives from
// the beginning, in order, and to the end unless the stream broke.
func TestWhatArrivesIsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		link := Link{
			Delay:     time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * time.Millisecond,
			Bandwidth: float64(rapid.SampledFrom([]int{0, 1e3, 1e6}).Draw(t, "bandwidth")),
			Loss:      rapid.SampledFrom([]float64{0, 0.1, 0.9}).Draw(t, "loss"),
		}
		w := newWired(link, rapid.Uint64().Draw(t, "seed"))
		s, _, other := w.stream(0, 1)
		var sent []byte
		broken := false
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				w.line.frozen = true
			case 1:
				w.line.thaw()
			case 2:
				w.queue.Run(w.queue.Now() + time.Duration(rapid.IntRange(0, 20).Draw(t, "ms"))*time.Millisecond)
			case 3:
				if !broken && rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
					s.CutAfter(0, int64(rapid.IntRange(0, 4000).Draw(t, "after")))
					broken = true
				}
			default:
				piece := bytes.Repeat([]byte{byte(len(sent))}, rapid.IntRange(0, 3000).Draw(t, "bytes"))
				if s.ends[0].Write(piece) == nil {
					sent = append(sent, piece...)
				}
			}
		}
		w.line.thaw()
		s.ends[0].CloseWrite()
		w.queue.Run(w.queue.Now() + time.Hour)
		if !bytes.HasPrefix(sent, other.bytes) {
			t.Fatalf("%d bytes arrived that are not the beginning of the %d written", len(other.bytes), len(sent))
		}
		if other.fault == io.EOF && len(other.bytes) < len(sent) {
			t.Fatalf("%d of %d bytes arrived, and the end", len(other.bytes), len(sent))
		}
		if !broken && other.fault != io.EOF {
			t.Fatalf("the stream did not end but with %v", other.fault)
		}
	})
}
