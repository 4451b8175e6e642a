package p2pnet

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const testTopic = topicPrefix + run

// ear is a topic handler that keeps what it hears.
type ear struct {
	verdict transport.Verdict
	pause   time.Duration

	mu    sync.Mutex
	heard []string
}

func (e *ear) hear(_ transport.PeerID, message []byte) transport.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	time.Sleep(e.pause)
	e.heard = append(e.heard, string(message))
	return e.verdict
}

func (e *ear) set(verdict transport.Verdict, pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.verdict, e.pause = verdict, pause
}

func (e *ear) count(message string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, heard := range e.heard {
		if heard == message {
			n++
		}
	}
	return n
}

func (e *ear) countAll(prefix string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, heard := range e.heard {
		if strings.HasPrefix(heard, prefix) {
			n++
		}
	}
	return n
}

func (e *ear) total() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.heard)
}

func takePart(t testing.TB, at *Transport, e *ear) transport.Topic {
	t.Helper()
	topic, err := at.Topic(testTopic, nil, e.hear)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := topic.Close(); err != nil {
			t.Errorf("leaving: %v", err)
		}
	})
	return topic
}

func connectTo(t testing.TB, from, to *Transport) {
	t.Helper()
	if _, err := from.Connect(t.Context(), to.JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
}

// line is transports each of which is connected with the next, and their ears.
func line(t testing.TB, n int) (topics []transport.Topic, ears []*ear, transports []*Transport) {
	t.Helper()
	for i := range n {
		at, e := start(t, loopback()), new(ear)
		topics, ears, transports = append(topics, takePart(t, at, e)), append(ears, e), append(transports, at)
		if i > 0 {
			connectTo(t, transports[i-1], at)
		}
	}
	eventually(t, "neighbours know each other's topics", func() bool {
		for i, topic := range topics {
			want := 2
			if i == 0 || i == n-1 {
				want = 1
			}
			if topic.Neighbours() != want {
				return false
			}
		}
		return true
	})
	probe := 0
	eventually(t, "the mesh has formed", func() bool {
		probe++
		publish(t, topics[0], fmt.Sprint("probe forth ", probe))
		publish(t, topics[n-1], fmt.Sprint("probe back ", probe))
		return ears[n-1].total() > 0 && ears[0].total() > 0
	})
	return topics, ears, transports
}

func publish(t testing.TB, topic transport.Topic, message string) {
	t.Helper()
	if err := topic.Publish([]byte(message)); err != nil {
		t.Fatal(err)
	}
}

// A message goes from hop to hop to everybody, once, and not to its author.
func TestTopicReachesThoseBehindOthers(t *testing.T) {
	topics, ears, _ := line(t, 3)
	publish(t, topics[0], "hello")
	eventually(t, "the last hears", func() bool { return ears[2].count("hello") == 1 })
	if ears[1].count("hello") != 1 || ears[0].count("hello") != 0 {
		t.Errorf("in the middle %d times, at the author %d", ears[1].count("hello"), ears[0].count("hello"))
	}
}

// Pitfall of gossipsub: Publish of a message larger than its limit returns nil, and
// the message is lost. Here it is an error, and the largest allowed one arrives.
func TestOversizeMessageIsAnErrorNotALoss(t *testing.T) {
	topics, ears, _ := line(t, 2)
	if err := topics[0].Publish(make([]byte, transport.MaxMessage+1)); !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("publishing a byte too many: %v", err)
	}
	largest := strings.Repeat("x", transport.MaxMessage)
	publish(t, topics[0], largest)
	eventually(t, "the largest message arrives", func() bool { return ears[1].count(largest) == 1 })
}

// Pitfall: before neighbours know of each other a message goes nowhere, without an
// error, and its repetition is taken for seen. Neighbours tells, and the caller of
// the topic has to hand over what matters by a stream.
func TestMessageToNobodyIsLostAndNeighboursTells(t *testing.T) {
	a, b := start(t, loopback()), start(t, loopback())
	var heard ear
	topic := takePart(t, a, new(ear))
	if n := topic.Neighbours(); n != 0 {
		t.Fatalf("%d neighbours of a peer without connections", n)
	}
	publish(t, topic, "early")
	other := takePart(t, b, &heard)
	connectTo(t, a, b)
	eventually(t, "both are neighbours", func() bool { return topic.Neighbours() == 1 && other.Neighbours() == 1 })
	publish(t, topic, "early")
	publish(t, topic, "late")
	eventually(t, "what came later arrives", func() bool { return heard.count("late") == 1 })
	t.Logf("the early message, published again: heard %d times", heard.count("early"))
}

// Pitfall: with gossipsub's own numbers, one message from two publishers is two.
// Here what a message says is what it is, and no signature of gossipsub is on it.
func TestSameBytesFromTwoPublishersAreOneMessage(t *testing.T) {
	topics, ears, _ := line(t, 3)
	publish(t, topics[0], "again")
	eventually(t, "the last hears", func() bool { return ears[2].count("again") == 1 })
	publish(t, topics[2], "again")
	publish(t, topics[1], "again")
	publish(t, topics[0], "done")
	eventually(t, "the next message arrives", func() bool { return ears[2].count("done") == 1 })
	for i, e := range ears {
		if n := e.count("again"); n > 1 {
			t.Errorf("peer %d heard it %d times", i, n)
		}
	}
}

// What a handler drops or refuses goes no further.
func TestRefusedMessageIsNotPassedOn(t *testing.T) {
	t.Parallel()
	for _, verdict := range []transport.Verdict{transport.Drop, transport.Refuse} {
		topics, ears, _ := line(t, 3)
		ears[1].set(verdict, 0)
		publish(t, topics[0], "bad")
		eventually(t, "the middle hears", func() bool { return ears[1].count("bad") == 1 })
		publish(t, topics[2], "other way")
		eventually(t, "and the other way too", func() bool { return ears[1].count("other way") == 1 })
		if ears[2].count("bad") != 0 || ears[0].count("other way") != 0 {
			t.Errorf("verdict %d: passed on", verdict)
		}
	}
}

// Pitfall: a subscription of gossipsub drops what comes while its reader is slow
// (beyond 32 messages by default), and so does its validation queue. Here a handler
// that takes 5 ms loses none of a burst, of as many as the author's own queue for a
// neighbour holds: more would have to be sent by the clock.
func TestSlowHandlerLosesNoBurst(t *testing.T) {
	t.Parallel()
	topics, ears, _ := line(t, 2)
	ears[1].set(transport.Forward, 5*time.Millisecond)
	const burst = outboundQueue - 4 // room for what gossipsub says of itself
	for i := range burst {
		publish(t, topics[0], fmt.Sprint("message ", i))
	}
	eventually(t, "all have arrived", func() bool { return ears[1].countAll("message ") == burst })
}

// A neighbour that floods is cut short, and heard again later; others do not suffer.
func TestFloodingNeighbourIsCutShort(t *testing.T) {
	a := newAllowance()
	now := time.Now()
	for i := range messageBurst {
		if !a.take("flooder", 1, now) {
			t.Fatalf("message %d is refused", i)
		}
	}
	if a.take("flooder", 1, now) {
		t.Error("no end of messages")
	}
	if !a.take("other", 1, now) {
		t.Error("another neighbour suffers")
	}
	if !a.take("flooder", messagesPerSecond, now.Add(time.Second)) || a.take("flooder", 1, now.Add(time.Second)) {
		t.Error("a second's allowance is not what a second gives")
	}
	for i := range 2 * maxAdmitted {
		if !a.take(peer.ID(fmt.Sprint(i)), 1, now) {
			t.Fatalf("neighbour %d is not heard", i)
		}
	}
	if n := a.left.Len(); n > maxAdmitted {
		t.Errorf("%d neighbours are remembered", n)
	}
}
