package p2pnet

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// insiders decide who takes part in a topic, from some moment on.
type insiders struct {
	ids atomic.Pointer[[]transport.PeerID]
}

func (i *insiders) let(ids ...transport.PeerID) { i.ids.Store(&ids) }

func (i *insiders) has(id transport.PeerID) bool { return slices.Contains(*i.ids.Load(), id) }

// closed is a topic of two that take part, the second in the middle, and one that is
// connected with it and does not.
type closed struct {
	at     [3]*Transport
	topics [3]transport.Topic
	ears   [3]*ear
	lets   insiders
}

const first, middle, outsider = 0, 1, 2

func newClosed(t *testing.T) *closed {
	t.Helper()
	c := new(closed)
	for i := range c.at {
		c.at[i], c.ears[i] = start(t, loopback()), new(ear)
	}
	c.lets.let(c.at[first].Self(), c.at[middle].Self())
	for i, at := range c.at {
		var takesPart func(transport.PeerID) bool
		if i != outsider {
			takesPart = c.lets.has
		}
		topic, err := at.Topic(testTopic, takesPart, c.ears[i].hear)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = topic.Close() })
		c.topics[i] = topic
	}
	connectTo(t, c.at[first], c.at[middle])
	connectTo(t, c.at[outsider], c.at[middle])
	eventually(t, "each end of a connection has named the topic", func() bool {
		named := func(at, of int) bool {
			return slices.Contains(c.topics[at].(*Topic).topic.ListPeers(), c.at[of].id)
		}
		return named(first, middle) && named(middle, first) && named(middle, outsider) && named(outsider, middle)
	})
	eventually(t, "those who take part are neighbours", func() bool { return c.topics[first].Neighbours() == 1 })
	return c
}

// TestOutsiderHearsNothingOfATopic: who does not take part in a run, but names its topic,
// hears none of 800 messages, nor is it heard; from the moment that it does take part it
// is, without naming the topic again.
func TestOutsiderHearsNothingOfATopic(t *testing.T) {
	t.Parallel()
	c := newClosed(t)
	var said [3]transport.Topic // on a topic that the outsider may hear
	open := new(ear)
	for i, hear := range map[int]transport.TopicHandler{middle: new(ear).hear, outsider: open.hear} {
		topic, err := c.at[i].Topic(testTopic+"-open", nil, hear)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = topic.Close() })
		said[i] = topic
	}
	if n := c.topics[middle].Neighbours(); n != 1 {
		t.Errorf("%d neighbours take part, want 1", n)
	}
	const rounds = 20
	for round := range rounds {
		for i := range 20 {
			publish(t, c.topics[first], fmt.Sprintf("first %d %d", round, i))
			publish(t, c.topics[middle], fmt.Sprintf("middle %d %d", round, i))
			publish(t, c.topics[outsider], fmt.Sprintf("outsider %d %d", round, i))
		}
		eventually(t, "insiders hear each other", func() bool {
			return c.ears[first].countAll(fmt.Sprintf("middle %d ", round)) == 20 && c.ears[middle].countAll(fmt.Sprintf("first %d ", round)) == 20
		})
	}
	for _, i := range []int{first, middle} {
		if n := c.ears[i].countAll("outsider"); n != 0 {
			t.Errorf("insider %d has heard %d messages of the outsider", i, n)
		}
	}
	// What had been sent before this would have come before: a stream is in order.
	probe := 0
	eventually(t, "the outsider hears what is for all", func() bool {
		probe++
		publish(t, said[middle], fmt.Sprint("for all ", probe))
		return open.total() > 0
	})
	if n := c.ears[outsider].total(); n != 0 {
		t.Errorf("the outsider has heard %d messages of %d", n, 2*20*rounds)
	}
	c.lets.let(c.at[first].Self(), c.at[middle].Self(), c.at[outsider].Self())
	publish(t, c.topics[middle], "welcome")
	// Gossipsub may tell it of what was said in the last seconds too, now that it takes part.
	eventually(t, "who takes part now hears", func() bool { return c.ears[outsider].count("welcome") == 1 })
	eventually(t, "what others say is passed on to it, and what it says to others", func() bool {
		probe++
		publish(t, c.topics[first], fmt.Sprint("far ", probe))
		publish(t, c.topics[outsider], fmt.Sprint("near ", probe))
		return c.ears[outsider].countAll("far") > 0 && c.ears[first].countAll("near") > 0
	})
}

// TestFramesThatAreNone: what gossipsub would not write ends its stream, and nothing panics.
func TestFramesThatAreNone(t *testing.T) {
	var h subscribers
	h.set(testTopic, func(transport.PeerID) bool { return false })
	for _, frame := range [][]byte{nil, {0x80}, {5, 1}, {1, 0xff}, {2, 0x12, 0x7f}} {
		if left, err := h.frame(peer.ID("somebody"), frame); err == nil {
			t.Errorf("%v is taken for a frame, left %v", frame, left)
		}
	}
}
