package memnet

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// connectLane is connect over a lane.
func connectLane(t *testing.T, from, to *Transport, lane int) (near, far transport.Stream) {
	t.Helper()
	ends := make(chan transport.Stream, 1)
	stop, err := to.Handle(testProtocol, testRun, func(s transport.Stream) { ends <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if near, err = from.OpenLane(t.Context(), to.Self(), testProtocol, testRun, lane); err != nil {
		t.Fatal(err)
	}
	far = <-ends
	t.Cleanup(func() {
		near.Reset()
		far.Reset()
	})
	return near, far
}

// TestLanesMultiplyTheRate sends the same bytes over one path of 100 Mbit/s and
// split over several.
func TestLanesMultiplyTheRate(t *testing.T) {
	const size = 12_500_000 // a second's worth
	for _, lanes := range []int{1, 2, 1 + transport.MaxLane} {
		synctest.Test(t, func(t *testing.T) {
			peers := newPeers(t, New(Config{Link: Link{Bandwidth: 100e6 / 8}}), "a", "b")
			near, far := connect(t, peers[0], peers[1])
			paths := [][2]transport.Stream{{near, far}}
			for lane := 1; lane < lanes; lane++ {
				near, far := connectLane(t, peers[0], peers[1], lane)
				paths = append(paths, [2]transport.Stream{near, far})
			}
			start := time.Now()
			done := make(chan struct{}, lanes)
			for _, p := range paths {
				go func() {
					transfer(t, p[0], p[1], size/lanes)
					done <- struct{}{}
				}()
			}
			for range lanes {
				<-done
			}
			speedup := float64(time.Second) / float64(time.Since(start))
			if speedup < 0.999*float64(lanes) || speedup > 1.001*float64(lanes) {
				t.Errorf("%d paths are %.3f times as fast as one", lanes, speedup)
			}
		})
	}
}

// TestLaneIsOnePath lets both peers open the same lane: its streams share it.
func TestLaneIsOnePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, New(Config{Link: Link{Bandwidth: 1e6}}), "a", "b")
		near, far := connectLane(t, peers[0], peers[1], 2)
		back, forth := connectLane(t, peers[1], peers[0], 2)
		if n, m := peers[0].Connections(), peers[1].Connections(); n != 1 || m != 1 {
			t.Errorf("connections %d and %d, want 1 and 1", n, m)
		}
		start := time.Now()
		done := make(chan struct{}, 2)
		go func() { transfer(t, near, far, 1_000_000); done <- struct{}{} }()
		go func() { transfer(t, forth, back, 1_000_000); done <- struct{}{} }()
		<-done
		<-done
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("two streams of one lane took %v, want 2s", took)
		}
	})
}

func TestLanesAreConnections(t *testing.T) {
	peers := newPeers(t, New(Config{}), "a", "b")
	near, far := connect(t, peers[0], peers[1])
	lane, _ := connectLane(t, peers[0], peers[1], 1)
	connectLane(t, peers[0], peers[1], 1)
	connectLane(t, peers[0], peers[1], transport.MaxLane)
	for _, p := range peers {
		if got := p.Connections(); got != 3 {
			t.Errorf("%s has %d connections, want 3: Open's and two lanes", p.name, got)
		}
	}
	near.Close()
	far.Close()
	if got := peers[0].Connections(); got != 2 {
		t.Errorf("%d connections once Open's is gone, want 2", got)
	}
	mustWrite(t, lane, "still here")
}

func TestLaneRefusals(t *testing.T) {
	n := New(Config{})
	peers := newPeers(t, n, "a", "b")
	a, b := peers[0], peers[1]
	if _, err := b.Handle(testProtocol, testRun, func(s transport.Stream) { s.Close() }); err != nil {
		t.Fatal(err)
	}
	for _, lane := range []int{-1, 0, transport.MaxLane + 1} {
		if _, err := a.OpenLane(t.Context(), b.Self(), testProtocol, testRun, lane); !errors.Is(err, transport.ErrLane) {
			t.Errorf("lane %d: %v, want ErrLane", lane, err)
		}
	}
	if _, err := a.OpenLane(t.Context(), b.Self(), testProtocol, "other", 1); !errors.Is(err, transport.ErrUnknownRun) {
		t.Errorf("other run: %v", err)
	}
	if _, err := a.OpenLane(t.Context(), "mem77", testProtocol, testRun, 1); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("unknown peer: %v", err)
	}
}

// TestFaultsReachEveryLane cuts, heals and crashes.
func TestFaultsReachEveryLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Link: Link{Delay: time.Millisecond}})
		peers := newPeers(t, n, "a", "b")
		near, far := connectLane(t, peers[0], peers[1], 3)
		n.Cut(peers[0].Self(), peers[1].Self())
		mustWrite(t, near, "held")
		far.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := far.Read(make([]byte, 1)); !isTimeout(err) {
			t.Fatalf("read on a lane across the cut: %v, want a timeout", err)
		}
		far.SetReadDeadline(time.Time{})
		n.HealAll()
		mustRead(t, far, "held")
		n.Crash(peers[1].Self())
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Errorf("read on a lane from the crashed peer: %v, want a reset", err)
		}
	})
}
