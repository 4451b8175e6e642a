package p2pnet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// gossipProtocol is gossipsub under a name of its own: a network with limits of
	// its own must not meet others that use gossipsub's default ones.
	gossipProtocol protocol.ID = "/murmuration/gossip/1"
	// topicPrefix begins the topics that are accepted at all.
	topicPrefix = "murmuration/1/"

	// gossipEnvelope is what gossipsub adds to a message: the topic's name and a few
	// lengths. With it, the largest message fits an RPC.
	gossipEnvelope = transport.MaxTopicName + 128
	// maxGossipControl bounds gossipsub's own control messages (who has what), which
	// are lists of message ids and never large here.
	maxGossipControl = 16 << 10
	// validateQueue bounds messages that wait to be judged, outboundQueue those that
	// wait for a neighbour. What finds no room is dropped.
	validateQueue = 256
	outboundQueue = 64
	// seenFor is how long a message is recognized when it comes again.
	seenFor = 2 * time.Minute
	// maxSubscriptions bounds the topics that a neighbour may name at once, and
	// maxTopics those kept of one in all.
	maxSubscriptions = 16
	maxTopics        = 64
	// maxAdmitted bounds the neighbours whose messages are counted.
	maxAdmitted = 4 * DefaultConnections
	// messagesPerSecond and messageBurst are what one neighbour may pass on: gossipsub
	// remembers each message for seenFor, so the rate bounds memory too.
	messagesPerSecond = 64
	messageBurst      = 512
)

var errFlood = errors.New("more messages than a neighbour may pass on")

// gossip is the gossipsub router of a transport. It starts with the first topic,
// so a process without topics does not speak gossipsub.
type gossip struct {
	*node
	subscribers subscribers

	mu     sync.Mutex
	router *pubsub.PubSub
}

// start returns the router, which begins with the first call.
func (g *gossip) start() (*pubsub.PubSub, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.router != nil {
		return g.router, nil
	}
	allowed := newAllowance()
	filter := &subscriptions{topics: make(map[peer.ID]map[string]bool), connected: func(id peer.ID) bool {
		return g.host.Network().Connectedness(id) == network.Connected
	}}
	subscribers := &g.subscribers
	router, err := pubsub.NewGossipSub(g.ending, subscribersHost{g.host, subscribers},
		pubsub.WithGossipSubProtocols([]protocol.ID{gossipProtocol}, gossipFeatures),
		// Control messages are signed by their authors, whoever passes them on; a
		// second signature would say nothing, and a sequence number of gossipsub's own
		// would make a message that comes from two sides two messages.
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		// A mesh takes a heartbeat or more to form, and who is added to it is never
		// offered what came before; what is published here goes to all neighbours.
		pubsub.WithFloodPublish(true),
		pubsub.WithSeenMessagesTTL(seenFor),
		pubsub.WithMaxMessageSize(transport.MaxMessage+gossipEnvelope),
		pubsub.WithMaxControlMessageSize(maxGossipControl),
		pubsub.WithValidateQueueSize(validateQueue),
		pubsub.WithPeerOutboundQueueSize(outboundQueue),
		pubsub.WithSubscriptionFilter(filter),
		pubsub.WithPeerFilter(subscribers.has),
		pubsub.WithAppSpecificRpcInspector(func(from peer.ID, rpc *pubsub.RPC) error {
			n := len(rpc.GetPublish())
			// Before anything is remembered: what was seen is not taken again from those who
			// may pass it on.
			rpc.Publish = subscribers.without(from, rpc.Publish)
			if n > 0 && !allowed.take(from, n, time.Now()) {
				return errFlood
			}
			return nil
		}),
		pubsub.WithLogger(slog.New(handlerOf(g.log.Named("gossipsub")))),
		pubsub.WithRPCLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, fmt.Errorf("starting gossipsub: %w", err)
	}
	g.host.Network().Notify(&network.NotifyBundle{DisconnectedF: filter.gone})
	g.router = router
	return router, nil
}

// Topic implements transport.Topics. The name begins with "murmuration/1/". Its
// messages come from peers that this process is connected to: it dials nobody.
func (g *gossip) Topic(name string, takesPart func(transport.PeerID) bool, handler transport.TopicHandler) (transport.Topic, error) {
	if !strings.HasPrefix(name, topicPrefix) || len(name) > transport.MaxTopicName {
		return nil, fmt.Errorf("p2pnet: topic %q: want %s and a name, at most %d bytes", name, topicPrefix, transport.MaxTopicName)
	}
	if !g.gate.enter() {
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, transport.ErrClosed)
	}
	defer g.gate.leave()
	router, err := g.start()
	if err != nil {
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, err)
	}
	topic := &Topic{gossip: g, name: name, handler: handler}
	topic.finish = sync.OnceValue(topic.close)
	// The validator is also what delivers: a subscription of gossipsub drops what
	// comes while its reader is slow. It runs on gossipsub's own few workers, whose
	// queue is bounded, so a flood costs no more goroutines.
	if err := router.RegisterTopicValidator(name, topic.judge, pubsub.WithValidatorInline(true)); err != nil {
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, err)
	}
	g.subscribers.set(name, takesPart)
	if topic.topic, err = router.Join(name); err == nil {
		// To relay is to take part without a subscription.
		topic.relay, err = topic.topic.Relay()
	}
	if err != nil {
		g.subscribers.set(name, nil)
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, errors.Join(err, router.UnregisterTopicValidator(name)))
	}
	return topic, nil
}

// gossipFeatures says that gossipProtocol is gossipsub 1.2. Gossipsub's peer
// exchange is not used: the membership says which peers there are.
func gossipFeatures(feature pubsub.GossipSubFeature, id protocol.ID) bool {
	switch feature {
	case pubsub.GossipSubFeatureMesh, pubsub.GossipSubFeaturePX, pubsub.GossipSubFeatureIdontwant:
		return id == gossipProtocol
	}
	return false
}

// messageID is a hash of the message's content.
func messageID(m *pb.Message) string {
	sum := sha256.Sum256(slices.Concat([]byte(m.GetTopic()), []byte{0}, m.GetData()))
	return string(sum[:])
}

// subscriptions bounds what neighbours may say of the topics they take part in.
// Topics in which this process does not take part yet are remembered too: a
// neighbour names a topic only once, and this process may join it later.
type subscriptions struct {
	connected func(peer.ID) bool

	mu     sync.Mutex
	topics map[peer.ID]map[string]bool // of connected neighbours
}

func (*subscriptions) CanSubscribe(topic string) bool {
	return strings.HasPrefix(topic, topicPrefix) && len(topic) <= transport.MaxTopicName
}

func (s *subscriptions) FilterIncomingSubscriptions(from peer.ID, said []*pb.RPC_SubOpts) ([]*pb.RPC_SubOpts, error) {
	if len(said) > maxSubscriptions {
		return nil, pubsub.ErrTooManySubscriptions
	}
	said = pubsub.FilterSubscriptions(said, s.CanSubscribe)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(said, func(o *pb.RPC_SubOpts) bool { return !s.count(from, o) }), nil
}

// count updates the topics of a neighbour. It reports false if there are too many, or if
// the neighbour has disconnected meanwhile: libp2p reports a disconnection only once.
func (s *subscriptions) count(from peer.ID, o *pb.RPC_SubOpts) bool {
	known, topic := s.topics[from], o.GetTopicid()
	if !o.GetSubscribe() {
		delete(known, topic)
		return true
	}
	if known == nil && s.connected(from) {
		known = make(map[string]bool)
		s.topics[from] = known
	}
	if known == nil || len(known) >= maxTopics && !known[topic] {
		return false
	}
	known[topic] = true
	return true
}

// gone forgets a neighbour that is no longer connected.
func (s *subscriptions) gone(_ network.Network, c network.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from := c.RemotePeer(); !s.connected(from) {
		delete(s.topics, from)
	}
}

// allowance is how many messages each neighbour may still pass on. It outlasts the
// connection, since otherwise a neighbour would get a new allowance by connecting again.
// Of more than maxAdmitted neighbours, those that sent nothing for longest are forgotten.
type allowance struct {
	left *lru.Cache[peer.ID, *rate.Limiter]
}

func newAllowance() *allowance {
	left, _ := lru.New[peer.ID, *rate.Limiter](maxAdmitted) // fails for sizes below one only
	return &allowance{left}
}

func (a *allowance) take(from peer.ID, n int, now time.Time) bool {
	left, known := a.left.Get(from)
	if !known {
		left = rate.NewLimiter(messagesPerSecond, messageBurst)
		if earlier, known, _ := a.left.PeekOrAdd(from, left); known {
			left = earlier
		}
	}
	return left.AllowN(now, n)
}
