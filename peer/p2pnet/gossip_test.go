package p2pnet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Pitfall: gossipsub has no Close, only the context it was begun with. A transport that
// closes ends it, with topics open too (TestMain looks for goroutines), and what is
// asked of a topic afterwards fails with a word.
func TestTopicEndsWithItsTransport(t *testing.T) {
	at, other := start(t, loopback()), start(t, loopback())
	topic := takePart(t, at, new(ear))
	takePart(t, other, new(ear))
	connectTo(t, at, other)
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	if err := topic.Publish([]byte("late")); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("publishing after the end: %v", err)
	}
	if n := topic.Neighbours(); n != 0 {
		t.Errorf("%d neighbours after the end", n)
	}
	if err := topic.Close(); err != nil {
		t.Errorf("leaving after the end: %v", err)
	}
	if _, err := at.Topic(testTopic, nil, new(ear).hear); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("taking part after the end: %v", err)
	}
}

// A topic can be left and taken part in again, by one handler at a time; no handler
// runs once Close has returned.
func TestTopicIsLeftAndTakenUpAgain(t *testing.T) {
	topics, ears, transports := line(t, 2)
	if _, err := transports[0].Topic(testTopic, nil, new(ear).hear); err == nil {
		t.Error("two handlers for one topic")
	}
	if err := topics[1].Close(); err != nil {
		t.Fatal(err)
	}
	heard := ears[1].total()
	eventually(t, "the other has noticed", func() bool { return topics[0].Neighbours() == 0 })
	publish(t, topics[0], "to nobody")
	var again ear
	topic := takePart(t, transports[1], &again)
	eventually(t, "they are neighbours again", func() bool { return topics[0].Neighbours() == 1 && topic.Neighbours() == 1 })
	publish(t, topics[0], "welcome back")
	eventually(t, "the message arrives", func() bool { return again.count("welcome back") == 1 })
	if ears[1].total() != heard {
		t.Error("a handler was called after its topic was closed")
	}
}

// Peers that are connected before either takes part find each other all the same.
func TestTopicAfterTheConnection(t *testing.T) {
	a, b := start(t, loopback()), start(t, loopback())
	connectTo(t, a, b)
	topicA := takePart(t, a, new(ear))
	topicB := takePart(t, b, new(ear))
	eventually(t, "they are neighbours", func() bool { return topicA.Neighbours() == 1 && topicB.Neighbours() == 1 })
}

func TestTopicNames(t *testing.T) {
	at := start(t, loopback())
	for _, name := range []string{"", run, "other/1/" + run, topicPrefix + strings.Repeat("x", transport.MaxTopicName)} {
		if _, err := at.Topic(name, nil, new(ear).hear); err == nil {
			t.Errorf("topic %q is taken part in", name)
		}
	}
}

// foreign runs gossipsub of other settings in a transport that has no topic of ours.
func foreign(t *testing.T, at *Transport, options ...pubsub.Option) *pubsub.Topic {
	t.Helper()
	router, err := pubsub.NewGossipSub(t.Context(), at.host, append(options, pubsub.WithFloodPublish(true))...)
	if err != nil {
		t.Fatal(err)
	}
	topic, err := router.Join(testTopic)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Relay(); err != nil {
		t.Fatal(err)
	}
	return topic
}

// Pitfall: limits differ between networks of gossipsub that share protocol ids. One
// with the usual ids is none of ours.
func TestUsualGossipsubIsNotMet(t *testing.T) {
	at, other := start(t, loopback()), start(t, loopback())
	met, metThere := identifications(t, at, 2), identifications(t, other, 2)
	topic := takePart(t, at, new(ear))
	theirs := foreign(t, other)
	connectTo(t, at, other)
	receive(t, "each knows what the other speaks", met)
	receive(t, "each knows what the other speaks", metThere)
	// Those that come later and speak alike are met, on either side.
	ours, alike := start(t, loopback()), start(t, loopback())
	takePart(t, ours, new(ear))
	foreign(t, alike)
	connectTo(t, at, ours)
	connectTo(t, other, alike)
	eventually(t, "those that speak alike are neighbours", func() bool { return topic.Neighbours() > 0 && len(theirs.ListPeers()) > 0 })
	if n, m := topic.Neighbours(), theirs.ListPeers(); n != 1 || len(m) != 1 || m[0] != alike.host.ID() {
		t.Errorf("%d neighbours here, %v there", n, m)
	}
}

// Pitfall: the signing policy is each peer's own. What a peer signs in gossipsub's name
// is dropped before a handler sees it, since its number would make repetitions new.
func TestMessageSignedByGossipsubIsDropped(t *testing.T) {
	t.Parallel()
	at, other := start(t, loopback()), start(t, loopback())
	var heard ear
	topic := takePart(t, at, &heard)
	theirs := foreign(t, other, pubsub.WithGossipSubProtocols([]protocol.ID{gossipProtocol}, gossipFeatures))
	connectTo(t, at, other)
	eventually(t, "they are neighbours", func() bool { return topic.Neighbours() == 1 && len(theirs.ListPeers()) == 1 })
	if err := theirs.Publish(t.Context(), []byte("signed")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if heard.total() != 0 {
		t.Errorf("heard %q", heard.heard)
	}
}

// Pitfall: what neighbours say of their topics was kept without bound. Here only names
// of ours are, up to maxTopics of a neighbour, until it is gone.
func TestForeignSubscriptionsAreBounded(t *testing.T) {
	connected := true
	s := &subscriptions{topics: make(map[peer.ID]map[string]bool), connected: func(peer.ID) bool { return connected }}
	subscribe := func(from peer.ID, on bool, names ...string) (kept int, err error) {
		var said []*pb.RPC_SubOpts
		for _, name := range names {
			said = append(said, &pb.RPC_SubOpts{Subscribe: &on, Topicid: &name})
		}
		left, err := s.FilterIncomingSubscriptions(from, said)
		return len(left), err
	}
	if kept, err := subscribe("a", true, "foreign", topicPrefix+"x", topicPrefix+strings.Repeat("y", transport.MaxTopicName)); kept != 1 || err != nil {
		t.Errorf("%d of one good topic kept, %v", kept, err)
	}
	total := 1
	for i := range 10 * maxTopics {
		kept, err := subscribe("a", true, topicPrefix+fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		total += kept
	}
	if total != maxTopics {
		t.Errorf("%d topics of one neighbour are kept", total)
	}
	if kept, _ := subscribe("a", true, topicPrefix+"x"); kept != 1 {
		t.Error("what is known is refused when it is said again")
	}
	if _, err := subscribe("a", false, topicPrefix+"x"); err != nil || len(s.topics["a"]) != maxTopics-1 {
		t.Errorf("%d topics after one was left, %v", len(s.topics["a"]), err)
	}
	many := make([]string, maxSubscriptions+1)
	for i := range many {
		many[i] = topicPrefix + fmt.Sprint("many", i)
	}
	if _, err := subscribe("b", true, many...); err == nil {
		t.Error("any number of topics at once")
	}
	connected = false
	s.gone(nil, gone{id: "a"})
	if kept, _ := subscribe("a", true, topicPrefix+"late"); kept != 0 {
		t.Error("a topic is kept of a neighbour that has gone: what it said came late")
	}
	if len(s.topics) != 0 {
		t.Errorf("%d neighbours after all have gone", len(s.topics))
	}
}

// gone is a connection that has ended.
type gone struct {
	network.Conn
	id peer.ID
}

func (g gone) RemotePeer() peer.ID { return g.id }

// A transport that closes waits for the handlers of topics that are open still.
func TestCloseWaitsForATopicsHandler(t *testing.T) {
	t.Parallel()
	at, other := start(t, loopback()), start(t, loopback())
	judging, release := make(chan struct{}), make(chan struct{})
	if _, err := at.Topic(testTopic, nil, func(transport.PeerID, []byte) transport.Verdict {
		close(judging)
		<-release
		return transport.Drop
	}); err != nil {
		t.Fatal(err)
	}
	topic := takePart(t, other, new(ear))
	connectTo(t, at, other)
	eventually(t, "they are neighbours", func() bool { return topic.Neighbours() == 1 })
	publish(t, topic, "hello")
	receive(t, "a handler runs", judging)
	closed := make(chan struct{})
	go func() { at.Close(); close(closed) }()
	select {
	case <-closed:
		t.Error("closed with a handler running")
	case <-time.After(300 * time.Millisecond): // against the real clock: sockets are real
	}
	close(release)
	receive(t, "it closes once the handler has returned", closed)
}

// A flood over a real connection: the neighbour is cut short, and memory with it.
func TestFloodOverAConnectionIsBounded(t *testing.T) {
	t.Parallel()
	topics, ears, _ := line(t, 2)
	const flood = 4 * messageBurst
	began, before := time.Now(), ears[1].total()
	for i := range flood {
		publish(t, topics[0], fmt.Sprint("flood ", i))
		if i%16 == 15 {
			time.Sleep(time.Millisecond)
		}
	}
	eventually(t, "some has arrived", func() bool { return ears[1].total() > 0 })
	time.Sleep(300 * time.Millisecond)
	if n, most := ears[1].total()-before, messageBurst+int(messagesPerSecond*time.Since(began).Seconds())+1; n > most {
		t.Errorf("%d of %d messages were judged, want %d at most", n, flood, most)
	}
	eventually(t, "the neighbour is heard again", func() bool {
		publish(t, topics[0], "sorry")
		publish(t, topics[0], fmt.Sprint("sorry ", time.Now()))
		return ears[1].countAll("sorry") > 0
	})
}

// Who disconnects and connects anew has no new allowance.
func TestFloodIsNotForgivenByConnectingAnew(t *testing.T) {
	t.Parallel()
	topics, ears, transports := line(t, 2)
	const lives = 4
	began, before := time.Now(), ears[1].total()
	for life := range lives {
		for i := range 2 * messageBurst {
			publish(t, topics[0], fmt.Sprint("flood ", life, " ", i))
			if i%16 == 15 {
				time.Sleep(time.Millisecond) // the author's own queue for a neighbour holds 64
			}
		}
		transports[0].Disconnect(transports[1].Self())
		eventually(t, "they are neighbours no more", func() bool { return topics[0].Neighbours()+topics[1].Neighbours() == 0 })
		connectTo(t, transports[0], transports[1])
		eventually(t, "they are neighbours again", func() bool { return topics[0].Neighbours() == 1 && topics[1].Neighbours() == 1 })
	}
	if n, most := ears[1].total()-before, messageBurst+int(messagesPerSecond*time.Since(began).Seconds())+1; n > most {
		t.Errorf("%d messages were judged in %v, want %d at most", n, time.Since(began), most)
	}
}
