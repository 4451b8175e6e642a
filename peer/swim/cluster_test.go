package swim

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const testRun = "digits"

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// A flock in virtual time is a small heap with thousands of goroutines: it would collect
// garbage for a quarter of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	goleak.VerifyTestMain(m)
}

// member is a peer of a test cluster.
type member struct {
	*Membership
	wire *memnet.Transport
}

// newNetwork is a network with a round trip of 20 ms.
func newNetwork() *memnet.Network {
	return memnet.New(memnet.Config{Link: memnet.Link{Delay: 10 * time.Millisecond}})
}

// start brings a peer up as an onlooker. Membership and transport are closed
// after the test.
func start(t *testing.T, n *memnet.Network, name string) *member {
	t.Helper()
	return startLogged(t, n, name, nil)
}

func startLogged(t *testing.T, n *memnet.Network, name string, log *zap.Logger) *member {
	t.Helper()
	wire, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Transport: wire, Run: testRun, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		wire.Close()
	})
	return &member{Membership: m, wire: wire}
}

// gossipMissed is how long news takes at worst, if gossip missed somebody and a
// push/pull has to bring it.
const gossipMissed = 3 * pushPullInterval

// record is the local record of a member.
func (m *member) record(incarnation, steps uint64) transport.Record {
	return transport.Record{Peer: m.wire.Self(), Run: testRun, Incarnation: incarnation, Steps: steps, Addresses: m.wire.Addresses()}
}

func (m *member) announce(t *testing.T, incarnation, steps uint64) {
	t.Helper()
	if err := m.Announce(m.record(incarnation, steps)); err != nil {
		t.Fatal(err)
	}
}

func (m *member) join(t *testing.T, other *member) {
	t.Helper()
	if err := m.Join(t.Context(), other.wire.Self()); err != nil {
		t.Fatal(err)
	}
}

// cluster brings n announced members up that have joined the first.
func cluster(t *testing.T, n *memnet.Network, size int) []*member {
	t.Helper()
	var members []*member
	for i := range size {
		m := start(t, n, fmt.Sprint("peer", i))
		m.announce(t, 1, 0)
		if i > 0 {
			m.join(t, members[0])
		}
		members = append(members, m)
	}
	return members
}

// seen lists what a member sees as sorted "name:incarnation:steps" words.
func (m *member) seen(all []*member) string {
	var words []string
	for _, r := range m.Members() {
		name := "?"
		for _, other := range all {
			if other.wire.Self() == r.Peer {
				name = strings.TrimPrefix(other.wire.Addresses()[0], "mem:")
			}
		}
		words = append(words, fmt.Sprintf("%s:%d:%d", name, r.Incarnation, r.Steps))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// within waits in virtual time until a condition holds for what each member
// sees, and returns how long that took.
func within(t *testing.T, limit time.Duration, members []*member, what string, holds func(records []transport.Record) bool) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		pending := ""
		for _, m := range members {
			if !holds(m.Members()) {
				pending = m.seen(members)
				break
			}
		}
		took := time.Since(began)
		if pending == "" {
			t.Logf("%s: %v", what, took)
			return took
		}
		if took > limit {
			t.Fatalf("%s: not within %v, one still sees %s", what, limit, pending)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// remembered is how many peers this member's book holds.
func (m *member) remembered() int {
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	return len(m.book.entries)
}

// lastSaid is what a peer that this member knows has last said of itself.
func (m *member) lastSaid(peer transport.PeerID) statement {
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	return m.book.entries[peer].last
}

func count(n int) func([]transport.Record) bool {
	return func(records []transport.Record) bool { return len(records) == n }
}
