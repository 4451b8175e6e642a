package memnet

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// transfer sends size bytes from one end to the other and returns the time until
// the last was read.
func transfer(t *testing.T, from, to transport.Stream, size int) time.Duration {
	t.Helper()
	start := time.Now()
	fault := make(chan error, 1)
	go func() {
		_, err := from.Write(make([]byte, size))
		fault <- err
	}()
	if _, err := io.ReadFull(to, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-fault; err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestLinkFigures(t *testing.T) {
	const mbit = 1e6 / 8
	cases := map[string]struct {
		link Link
		size int
		want time.Duration
	}{
		"no limit":            {Link{}, 10 << 20, 0},
		"delay":               {Link{Delay: 25 * time.Millisecond}, 1, 25 * time.Millisecond},
		"bandwidth":           {Link{Bandwidth: 100 * mbit}, 12_500_000, time.Second},
		"bandwidth and delay": {Link{Bandwidth: 8 * mbit, Delay: 100 * time.Millisecond}, 1_000_000, 1100 * time.Millisecond},
		"odd bandwidth":       {Link{Bandwidth: 3_000_000}, 1_000_000, 333_333_333},
		"window":              {Link{Delay: 10 * time.Millisecond}, 4 * DefaultWindow, 40 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peers := newPeers(t, New(Config{Link: c.link}), "a", "b")
				near, far := connect(t, peers[0], peers[1])
				if got := transfer(t, near, far, c.size); got != c.want {
					t.Errorf("took %v, want %v", got, c.want)
				}
				if got := transfer(t, far, near, c.size); got != c.want {
					t.Errorf("back took %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestOpenTakesARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, New(Config{Link: Link{Delay: 20 * time.Millisecond}}), "a", "b")
		start := time.Now()
		near, far := connect(t, peers[0], peers[1])
		if took := time.Since(start); took != 40*time.Millisecond {
			t.Errorf("open took %v, want 40ms", took)
		}
		if near.Remote() != peers[1].Self() || far.Remote() != peers[0].Self() {
			t.Errorf("the ends name %s and %s as each other", near.Remote().Short(), far.Remote().Short())
		}
	})
}

func TestStreamsShareTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, New(Config{Link: Link{Bandwidth: 1e6}}), "a", "b")
		near1, far1 := connect(t, peers[0], peers[1])
		near2, far2 := connect(t, peers[0], peers[1])
		back, forth := connect(t, peers[1], peers[0])
		start := time.Now()
		took := make(chan time.Duration, 3)
		for _, s := range [][2]transport.Stream{{near1, far1}, {near2, far2}, {back, forth}} {
			go func() {
				transfer(t, s[0], s[1], 1_000_000)
				took <- time.Since(start)
			}()
		}
		if first := <-took; first != time.Second {
			t.Errorf("the direction with one stream took %v, want 1s", first)
		}
		<-took
		if last := <-took; last != 2*time.Second {
			t.Errorf("the direction with two streams took %v, want 2s", last)
		}
	})
}

func TestSetLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Link: Link{Bandwidth: 1e6}})
		peers := newPeers(t, n, "a", "b")
		near, far := connect(t, peers[0], peers[1])
		if got := transfer(t, near, far, 500_000); got != 500*time.Millisecond {
			t.Errorf("before: %v", got)
		}
		n.SetLink(peers[1].Self(), peers[0].Self(), Link{Bandwidth: 2e6, Delay: time.Second})
		if got := transfer(t, near, far, 100_000); got != 1050*time.Millisecond {
			t.Errorf("after: %v, want 1.05s", got)
		}
	})
}

func TestLoss(t *testing.T) {
	measure := func(seed uint64, loss float64) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			link := Link{Delay: 5 * time.Millisecond, Loss: loss}
			peers := newPeers(t, New(Config{Seed: seed, Link: link, Window: 64 * SegmentSize}), "a", "b")
			near, far := connect(t, peers[0], peers[1])
			took = transfer(t, near, far, 64*SegmentSize)
		})
		return took
	}
	some, again := measure(7, 0.1), measure(7, 0.1)
	if some != again {
		t.Errorf("one seed gave %v and %v", some, again)
	}
	// Without a bandwidth a loss costs 2·Delay + RetransmitWait = 20 ms.
	const penalty = 20 * time.Millisecond
	extra := some - measure(7, 0)
	if extra <= 0 || extra%penalty != 0 || extra > 20*penalty {
		t.Errorf("a tenth of 64 segments lost took %v longer, want about 6 times %v", extra, penalty)
	}
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, New(Config{Link: Link{Loss: 1}}), "a", "b")
		near, far := connect(t, peers[0], peers[1])
		if _, err := near.Write([]byte{1}); !errors.Is(err, ErrReset) {
			t.Errorf("write on a dead link: %v, want a reset", err)
		}
		if _, err := far.Read([]byte{1}); !errors.Is(err, ErrReset) {
			t.Errorf("read on a dead link: %v, want a reset", err)
		}
	})
}

func TestCutIsSilentAndHealResends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Link: Link{Delay: 10 * time.Millisecond}})
		peers := newPeers(t, n, "a", "b")
		a, b := peers[0].Self(), peers[1].Self()
		near, far := connect(t, peers[0], peers[1])
		mustWrite(t, near, "arrived ")
		time.Sleep(10 * time.Millisecond)
		mustWrite(t, near, "under way ")
		n.Cut(a, b)
		mustWrite(t, near, "and after")
		if err := near.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		mustRead(t, far, "arrived ")
		far.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := far.Read(make([]byte, 1)); !isTimeout(err) {
			t.Fatalf("read across the cut: %v, want a timeout", err)
		}
		far.SetReadDeadline(time.Time{})
		n.Heal(b, a)
		start := time.Now()
		text, err := io.ReadAll(far)
		if string(text) != "under way and after" || err != nil {
			t.Errorf("read %q, %v after healing", text, err)
		}
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("what was held back took %v, want the delay", took)
		}
	})
}

func TestResetAcrossACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		near, far := connect(t, peers[0], peers[1])
		n.Cut(peers[0].Self(), peers[1].Self())
		near.Reset()
		far.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := far.Read(make([]byte, 1)); !isTimeout(err) {
			t.Errorf("read: %v, want a timeout: nobody can know of the reset", err)
		}
		far.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, n.HealAll)
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Errorf("read after healing: %v, want a reset", err)
		}
	})
}

func TestPartition(t *testing.T) {
	n := New(Config{})
	peers := newPeers(t, n, "a", "b", "c", "d", "e")
	n.Partition(
		[]transport.PeerID{peers[0].Self(), peers[1].Self()},
		[]transport.PeerID{peers[2].Self()},
		[]transport.PeerID{peers[3].Self()},
	)
	group := []int{0, 0, 1, 2, -1}
	for i, p := range peers {
		for j, q := range peers[:i] {
			want := group[i] != group[j] && group[i] >= 0
			if got := n.cable(p.Self(), q.Self()).isCut(); got != want {
				t.Errorf("%s and %s: cut %v, want %v", p.name, q.name, got, want)
			}
		}
	}
	n.HealAll()
	if n.cable(peers[0].Self(), peers[2].Self()).isCut() {
		t.Error("HealAll left a link cut")
	}
}

func TestCrash(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		a, b := peers[0], peers[1]
		near, far := connect(t, a, b)
		mustWrite(t, far, "unread")
		n.Crash(b.Self())
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Errorf("read from the crashed peer: %v, want a reset", err)
		}
		if _, err := a.Open(t.Context(), b.Self(), testProtocol, testRun); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("open to the crashed peer: %v", err)
		}
		next := newPeers(t, n, "b")[0]
		if next.Self() != b.Self() {
			t.Error("the next life has another identity")
		}
		b.Close() // the old life must not take the new one off the network
		connect(t, a, next)
	})
}
