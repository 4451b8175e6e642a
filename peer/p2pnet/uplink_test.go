package p2pnet

import (
	"errors"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// sender writes over connections of a share until the time is over, and counts.
type sender struct {
	share *UplinkShare
	conns int
	size  int             // of a write
	pause time.Duration   // between two
	bytes []int           // by connection
	worst []time.Duration // that a write has taken, by connection
}

// during has senders write for so long.
func during(t *testing.T, lasting time.Duration, senders ...*sender) {
	t.Helper()
	end := time.Now().Add(lasting)
	var all sync.WaitGroup
	for _, s := range senders {
		s.bytes, s.worst = make([]int, s.conns), make([]time.Duration, s.conns)
		for i := range s.conns {
			all.Go(func() {
				for time.Now().Before(end) {
					before := time.Now()
					s.share.send(s.size, nil, time.Time{})
					s.bytes[i] += s.size
					s.worst[i] = max(s.worst[i], time.Since(before))
					time.Sleep(s.pause)
				}
			})
		}
	}
	all.Wait()
}

func (s *sender) sent() (bytes float64) {
	for _, n := range s.bytes {
		bytes += float64(n)
	}
	return bytes
}

func uplink(t *testing.T, rate float64) *Uplink {
	t.Helper()
	u, err := NewUplink(rate)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// weighing is a share of that weight.
func weighing(u *Uplink, weight float64) *UplinkShare {
	s := u.Share()
	s.SetWeight(weight)
	return s
}

func near(got, want, within float64) bool { return math.Abs(got/want-1) <= within }

// TestUplinkIsSharedByWeight, whatever the number of connections and the size of their writes, and
// nothing of it stays unused.
func TestUplinkIsSharedByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink(t, 1e6)
		light := &sender{share: u.Share(), conns: 5, size: 3000}
		heavy := &sender{share: weighing(u, 3), conns: 1, size: 16000}
		during(t, 20*time.Second, light, heavy)
		if all := light.sent() + heavy.sent(); !near(all, 20e6, 0.01) || !near(heavy.sent(), 3*light.sent(), 0.02) {
			t.Errorf("%.0f and %.0f bytes in 20 s at 1 MB/s, want one to three", light.sent(), heavy.sent())
		}
		for _, n := range light.bytes {
			if !near(float64(n), light.sent()/5, 0.02) {
				t.Errorf("connections of one share sent %v", light.bytes)
			}
		}
		during(t, 10*time.Second, light)
		if !near(light.sent(), 10e6, 0.01) {
			t.Errorf("alone a share sent %.0f bytes in 10 s at 1 MB/s", light.sent())
		}
	})
}

// TestTheRunNearerItsEndIsNotSlowed: with weights by what is left of the runs, the one that is nearly
// over has nearly all of the uplink, and the other one what it leaves.
func TestTheRunNearerItsEndIsNotSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			pause time.Duration // of the run near its end: it wants all of the link, or a quarter
			alone float64       // bytes a second by itself
		}{{0, 1e6}, {24 * time.Millisecond, 8000 / 0.032}} {
			u := uplink(t, 1e6)
			ending := &sender{share: weighing(u, 1/0.02), conns: 1, size: 8000, pause: c.pause}
			begun := &sender{share: weighing(u, 1/0.9), conns: 4, size: 16000}
			during(t, 20*time.Second, ending, begun)
			// A write that has begun is not broken off: of one now and then it waits for the rest.
			if got := ending.sent() / 20; got < 0.75*c.alone || c.pause == 0 && got < 0.97*c.alone || c.pause > 0 && ending.worst[0] > 30*time.Millisecond {
				t.Errorf("the run near its end sent %.0f bytes a second, %.0f if it is alone; a write took up to %s", got, c.alone, ending.worst[0])
			}
			if all := ending.sent() + begun.sent(); !near(all, 20e6, 0.01) {
				t.Errorf("%.0f bytes in 20 s at 1 MB/s", all)
			}
		}
	})
}

// TestWhoComesAfterALateTimerWaits: when a timer fires late, several writes are let through at once, and whoever comes after these
// waits for the link as ever.
func TestWhoComesAfterALateTimerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, began := uplink(t, 1e6), time.Now()
		u.mu.Lock()
		for range 3 { // of 3 ms each, 5 ms late
			u.waiting = append(u.waiting, &write{bytes: 3000, turn: make(chan struct{})})
		}
		u.next()
		u.mu.Unlock()
		u.Share().send(3000, nil, time.Time{})
		if took := time.Since(began); took != 4*time.Millisecond {
			t.Errorf("its turn came after %s, want the 1 ms that the first two are ahead and the 3 ms of the third", took)
		}
	})
}

// TestShortMessagesDoNotWait on an uplink that has room.
func TestShortMessagesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{share: uplink(t, 1e6).Share(), conns: 1, size: 1000, pause: 2 * time.Millisecond}
		during(t, time.Second, s)
		if s.worst[0] > 0 {
			t.Errorf("a message waited for %s", s.worst[0])
		}
	})
}

// plainConn is a pipe as a connection of libp2p.
type plainConn struct {
	manet.Conn
	pipe net.Conn
}

func (c plainConn) Write(b []byte) (int, error) { return c.pipe.Write(b) }
func (c plainConn) Close() error                { return c.pipe.Close() }

func (c plainConn) SetWriteDeadline(t time.Time) error { return c.pipe.SetWriteDeadline(t) }
func (c plainConn) SetReadDeadline(t time.Time) error  { return c.pipe.SetReadDeadline(t) }

// TestAConnectionThatIsClosedLeavesTheUplink: its write fails at once, and the others go on.
func TestAConnectionThatIsClosedLeavesTheUplink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink(t, 1e3)
		near, far := net.Pipe()
		defer far.Close()
		go func() {
			for b := make([]byte, turnBytes); ; {
				if _, err := far.Read(b); err != nil {
					return
				}
			}
		}()
		conn := u.Share().limit(plainConn{pipe: near})
		failed := make(chan error)
		go func() {
			_, err := conn.Write(make([]byte, 3*turnBytes)) // 48 s
			failed <- err
		}()
		go u.Share().send(1000, nil, time.Time{})
		time.Sleep(time.Second)
		began := time.Now()
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil || time.Since(began) > 0 {
			t.Errorf("the write ended with %v, after %s", err, time.Since(began))
		}
		synctest.Wait()
		u.Share().send(1, nil, time.Time{})
		if u.busy && len(u.waiting) > 0 {
			t.Error("the uplink waits for a connection that has gone")
		}
	})
}

// TestAWriteEndsAtItsDeadline, however long the uplink is busy; nothing is left of it.
func TestAWriteEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink(t, 1e3)
		here, there := net.Pipe()
		defer there.Close()
		conn := u.Share().limit(plainConn{pipe: here})
		defer conn.Close()
		go u.Share().send(30_000, nil, time.Time{}) // half a minute
		synctest.Wait()
		began := time.Now()
		if err := conn.SetDeadline(began.Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 2*time.Second {
			t.Errorf("the write ended with %v, after %s", err, time.Since(began))
		}
		u.mu.Lock()
		if len(u.waiting) > 0 {
			t.Error("the uplink still has it")
		}
		u.mu.Unlock()
		time.Sleep(time.Minute)
	})
}

// TestAWeightCountsFromNowOn: what was sent at another weight is not held against a share.
func TestAWeightCountsFromNowOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink(t, 1e6)
		a, b := weighing(u, 1e-9), &sender{share: u.Share(), conns: 1, size: turnBytes}
		a.send(turnBytes, nil, time.Time{})
		a.SetWeight(1)
		other := &sender{share: a, conns: 1, size: turnBytes}
		during(t, 10*time.Second, b, other)
		if !near(other.sent(), b.sent(), 0.02) {
			t.Errorf("of two shares alike one sent %.0f bytes, the other %.0f", other.sent(), b.sent())
		}
	})
}

func TestUplinksThatCannotBe(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := NewUplink(rate); err == nil {
			t.Errorf("an uplink of %v bytes a second is taken", rate)
		}
	}
	for w, want := range map[float64]float64{0: 1.0 / mostWeight, -3: 1.0 / mostWeight, 1e-300: 1.0 / mostWeight, math.Inf(1): mostWeight, 7: 7} {
		if s := weighing(uplink(t, 1), w); s.weight != want {
			t.Errorf("a weight of %v counts as %v, want %v", w, s.weight, want)
		}
	}
}

// TestBothEndsSendWithinTheirShares: connections that are accepted and those that are dialled.
func TestBothEndsSendWithinTheirShares(t *testing.T) {
	var shares []*UplinkShare
	for range 2 {
		shares = append(shares, uplink(t, 1e12).Share())
	}
	a := start(t, Config{Listen: []string{}, Uplink: shares[0]})
	listening := loopback()
	listening.Uplink = shares[1]
	b := start(t, listening)
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, transport.ProtocolExchange, run, echo)
	message := strings.Repeat("all that is sent counts; ", 4000)
	if got := ask(t, open(t, a, b, transport.ProtocolExchange, run), message); got != message {
		t.Fatal("the echo is another text")
	}
	for i, s := range shares {
		s.uplink.mu.Lock()
		if sent := s.begun; sent < float64(len(message))/2 {
			t.Errorf("end %d has counted %.0f bytes of %d", i, sent, len(message))
		}
		s.uplink.mu.Unlock()
	}
}
