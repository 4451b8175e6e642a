package memnet

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// ear keeps what a topic brings.
type ear struct {
	mu      sync.Mutex
	verdict transport.Verdict
	heard   []string
	from    []transport.PeerID
	at      []time.Time
}

func (e *ear) hear(from transport.PeerID, message []byte) transport.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard, e.from, e.at = append(e.heard, string(message)), append(e.from, from), append(e.at, time.Now())
	return e.verdict
}

func (e *ear) total() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.heard)
}

// takePart lets peers take part in a topic.
func takePart(t *testing.T, peers []*Transport) (topics []transport.Topic, ears []*ear) {
	t.Helper()
	for _, p := range peers {
		e := new(ear)
		topic, err := p.Topic("news", nil, e.hear)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { topic.Close() })
		topics, ears = append(topics, topic), append(ears, e)
	}
	return topics, ears
}

// A message reaches everybody but its author once, after the link's delay.
func TestTopicReachesEverybodyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Link: Link{Delay: 10 * time.Millisecond}})
		topics, ears := takePart(t, newPeers(t, n, "a", "b", "c", "d"))
		began := time.Now()
		for range 2 {
			if err := topics[0].Publish([]byte("hello")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, e := range ears {
			want := 1
			if i == 0 {
				want = 0
			}
			if len(e.heard) != want {
				t.Errorf("peer %d heard %q", i, e.heard)
			} else if want == 1 && e.at[0].Sub(began) != 10*time.Millisecond {
				t.Errorf("peer %d heard after %v", i, e.at[0].Sub(began))
			}
		}
		if topics[0].Neighbours() != 3 {
			t.Errorf("%d neighbours", topics[0].Neighbours())
		}
	})
}

// Across a cut link a message goes by way of others, unless they drop it.
func TestTopicGoesRoundACut(t *testing.T) {
	for _, verdict := range []transport.Verdict{transport.Forward, transport.Drop, transport.Refuse} {
		synctest.Test(t, func(t *testing.T) {
			n := New(Config{Link: Link{Delay: time.Millisecond}})
			peers := newPeers(t, n, "a", "b", "c")
			topics, ears := takePart(t, peers)
			ears[1].verdict = verdict
			n.Cut(peers[0].Self(), peers[2].Self())
			if err := topics[0].Publish([]byte("round")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			reached := len(ears[2].heard) == 1 && ears[2].from[0] == peers[1].Self()
			if len(ears[1].heard) != 1 || reached != (verdict == transport.Forward) {
				t.Errorf("verdict %d: heard %q in the middle, %q beyond", verdict, ears[1].heard, ears[2].heard)
			}
		})
	}
}

func TestTopicBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		topics, ears := takePart(t, peers)
		if err := topics[0].Publish(make([]byte, transport.MaxMessage+1)); !errors.Is(err, transport.ErrTooLarge) {
			t.Errorf("a byte too many: %v", err)
		}
		if _, err := peers[0].Topic("news", nil, ears[0].hear); err == nil {
			t.Error("two handlers for one topic")
		}
		ears[1].mu.Lock() // the handler hangs
		for i := range 3 * MaxWaiting {
			if err := topics[0].Publish([]byte(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		ears[1].mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ears[1].total(); got < MaxWaiting || got > MaxWaiting+1 {
			t.Errorf("%d messages waited for a handler that hung, at most %d may", got, MaxWaiting)
		}
	})
}

// A topic ends with its transport, and who crashed is reached no more.
func TestTopicEndsWithItsTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		topics, ears := takePart(t, peers)
		n.Crash(peers[1].Self())
		time.Sleep(time.Millisecond)
		if err := topics[0].Publish([]byte("anyone?")); err != nil || topics[0].Neighbours() != 0 {
			t.Errorf("%d neighbours, %v", topics[0].Neighbours(), err)
		}
		if err := topics[1].Publish([]byte("me")); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("who crashed publishes: %v", err)
		}
		if _, err := peers[1].Topic("other", nil, ears[1].hear); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("who crashed takes part: %v", err)
		}
		if err := topics[1].Close(); err != nil || ears[1].total()+ears[0].total() != 0 {
			t.Errorf("heard after the end, or %v", err)
		}
	})
}
