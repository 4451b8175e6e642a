package swim

import (
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// stragglers works out when memberlist's goroutines have ended after its
// Shutdown, which does not wait for them. Two kinds linger: a probe waits for its
// ack, and a probe on behalf of another member for the time to report failure.
// Both begin with a packet that is recognized here. Getting it wrong makes Close
// return some seconds too late, or leaves a goroutine to end by itself.
//
// It implements memberlist.PingDelegate to learn of successful probes.
type stragglers struct {
	mu       sync.Mutex
	probed   transport.PeerID // whom the running probe is about; empty if none runs
	probedAt time.Time
	asked    time.Time // when the last probe for another member began

	completed chan struct{} // capacity 1: a probe ended well
}

func newStragglers() *stragglers { return &stragglers{completed: make(chan struct{}, 1)} }

var _ memberlist.PingDelegate = (*stragglers)(nil)

// sent looks at a packet that memberlist sends.
func (g *stragglers) sent(packet []byte, to transport.PeerID, now time.Time) {
	if firstMessage(packet) != messagePing {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probed, g.probedAt = to, now
}

// received looks at a packet for memberlist.
func (g *stragglers) received(packet []byte, now time.Time) {
	if firstMessage(packet) != messageIndirectPing {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = now
}

func (g *stragglers) AckPayload() []byte { return nil }

func (g *stragglers) NotifyPingComplete(node *memberlist.Node, _ time.Duration, _ []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probed == transport.PeerID(node.Name) {
		g.probed = ""
		signal(g.completed)
	}
}

func (g *stragglers) probing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.probed != ""
}

// settle gives a probe that is under way the time to end well, which it can only
// before the Shutdown.
func (g *stragglers) settle(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for g.probing() {
		select {
		case <-g.completed:
		case <-timer.C:
			return
		}
	}
}

// gone is when the last one ends, given how long a probe may take by now.
func (g *stragglers) gone(probe time.Duration) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	var end time.Time
	if g.probed != "" {
		end = g.probedAt.Add(probe)
	}
	if asked := g.asked.Add(probeTimeout); !g.asked.IsZero() && asked.After(end) {
		end = asked
	}
	return end
}

// firstMessage is the type of the first message in a packet, -1 if there is none. What
// memberlist sends on its own account comes first in a compound, gossip rides behind.
func firstMessage(packet []byte) int {
	messages, _ := messagesOf(packet)
	if len(messages) == 0 || len(messages[0]) == 0 {
		return -1
	}
	return int(messages[0][0])
}
