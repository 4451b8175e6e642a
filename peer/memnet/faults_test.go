package memnet

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// numbered is bytes of which each tells its place.
func numbered(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// TestCutAfterExactly cuts at any byte, over any link and with any sizes of reads
// and writes: the other end reads exactly what went through.
func TestCutAfterExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		data := numbered(100_000)
		limit := rapid.IntRange(0, len(data)-1).Draw(rt, "limit")
		link := Link{
			Delay:     time.Duration(rapid.IntRange(0, 20).Draw(rt, "delay")) * time.Millisecond,
			Bandwidth: float64(rapid.SampledFrom([]int{0, 1e5, 1e6}).Draw(rt, "bandwidth")),
		}
		write, read := rapid.IntRange(1, 70_000).Draw(rt, "write"), rapid.IntRange(1, 70_000).Draw(rt, "read")
		window := rapid.IntRange(1000, 200_000).Draw(rt, "window")
		synctest.Test(t, func(t *testing.T) {
			n := New(Config{Link: link, Window: window})
			peers := newPeers(t, n, "a", "b")
			near, far := connect(t, peers[0], peers[1])
			n.CutAfter(peers[0].Self(), peers[1].Self(), int64(limit))
			fault := make(chan error, 1)
			go func() {
				var err error
				for left := data; len(left) > 0 && err == nil; {
					var n int
					n, err = near.Write(left[:min(write, len(left))])
					left = left[n:]
				}
				near.Reset() // as its owner does; it must not overtake what went through
				fault <- err
			}()
			var got []byte
			var err error
			for p := make([]byte, read); err == nil; {
				var n int
				n, err = far.Read(p)
				got = append(got, p[:n]...)
			}
			if !errors.Is(err, ErrReset) || !bytes.Equal(got, data[:limit]) {
				t.Errorf("read %d bytes and %v, want the first %d and a reset", len(got), err, limit)
			}
			if _, err := far.Write([]byte{1}); !errors.Is(err, ErrReset) {
				t.Errorf("a write behind the break: %v, want a reset", err)
			}
			if err := <-fault; !errors.Is(err, ErrReset) {
				t.Errorf("the writer: %v, want a reset", err)
			}
		})
	})
}

func TestCutAfterBreaksEveryStream(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		a, b := peers[0], peers[1]
		near, far := connect(t, a, b)
		back, forth := connect(t, b, a)
		lane, enal := connectLane(t, a, b, 1)
		mustWrite(t, lane, "under way")
		n.CutAfter(a.Self(), b.Self(), 4)
		mustWrite(t, back, "does not count")
		if n, err := near.Write([]byte("12345")); n != 4 || !errors.Is(err, ErrReset) {
			t.Errorf("wrote %d, %v, want 4 and a reset", n, err)
		}
		mustRead(t, far, "1234")
		mustRead(t, enal, "under way")
		for name, s := range map[string]transport.Stream{"near": near, "far": far, "back": back, "forth": forth, "lane": lane, "enal": enal} {
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
				t.Errorf("read at %s: %v, want a reset", name, err)
			}
			if _, err := s.Write(make([]byte, 1)); !errors.Is(err, ErrReset) {
				t.Errorf("write at %s: %v, want a reset", name, err)
			}
			s.Reset()
		}
		near, far = connect(t, a, b)
		mustWrite(t, near, "a new stream is whole")
		mustRead(t, far, "a new stream is whole")
		n.CutAfter(a.Self(), b.Self(), 0)
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Errorf("read after CutAfter 0: %v, want a reset", err)
		}
	})
}

// TestCutWakesTheOtherWriter: the end that is cut off learns of it while its
// write waits for the window.
func TestCutWakesTheOtherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Link: Link{Delay: time.Second}})
		peers := newPeers(t, n, "a", "b")
		near, far := connect(t, peers[0], peers[1])
		start := time.Now()
		fault := make(chan error, 1)
		go func() {
			_, err := far.Write(make([]byte, 2*DefaultWindow))
			fault <- err
		}()
		n.CutAfter(peers[0].Self(), peers[1].Self(), 1)
		mustWrite(t, near, "x")
		if err := <-fault; !errors.Is(err, ErrReset) || time.Since(start) != time.Second {
			t.Errorf("the write ended after %v with %v, want a reset after the delay", time.Since(start), err)
		}
	})
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Link: Link{Delay: 10 * time.Millisecond}})
		peers := newPeers(t, n, "a", "b")
		a, b := peers[0], peers[1]
		near, far := connect(t, a, b)
		n.StallAfter(a.Self(), b.Self(), 9)
		mustWrite(t, near, "mid-frame stalled ")
		mustRead(t, far, "mid-frame")
		mustWrite(t, far, "the other way goes on")
		mustRead(t, near, "the other way goes on")
		late, etal := connectLane(t, a, b, 1)
		mustWrite(t, late, "a later stream stalls too")
		late.CloseWrite()
		reset, teser := connect(t, a, b)
		reset.Reset()
		for name, s := range map[string]transport.Stream{"stalled": far, "later": etal, "reset": teser} {
			s.SetReadDeadline(time.Now().Add(time.Minute))
			if n, err := s.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
				t.Errorf("%s: read %d, %v, want a timeout", name, n, err)
			}
			s.SetReadDeadline(time.Time{})
		}
		n.Cut(a.Self(), b.Self())
		n.Heal(a.Self(), b.Self())
		far.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := far.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
			t.Errorf("healing a cut ended the stall: %d, %v", n, err)
		}
		far.SetReadDeadline(time.Time{})
		n.Release(a.Self(), b.Self())
		start := time.Now()
		mustRead(t, far, " stalled ")
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("what was held back took %v, want the delay", took)
		}
		if all, err := io.ReadAll(etal); string(all) != "a later stream stalls too" || err != nil {
			t.Errorf("the later stream: %q, %v", all, err)
		}
		if _, err := teser.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Errorf("the stream that was reset: %v", err)
		}
	})
}

// TestRelease calls off faults that have yet to strike.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		a, b := peers[0].Self(), peers[1].Self()
		near, far := connect(t, peers[0], peers[1])
		n.CutAfter(a, b, 3)
		n.StallAfter(a, b, 5) // replaces the cut
		n.Release(a, b)
		mustWrite(t, near, "unharmed")
		mustRead(t, far, "unharmed")
	})
}
