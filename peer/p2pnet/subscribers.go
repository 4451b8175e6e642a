package p2pnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"google.golang.org/protobuf/proto"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// subscribers decides which peers may receive and send messages on this process's topics.
// Gossipsub applies its own filter of peers only to its mesh: its own publications go to
// every peer that has named the topic, and it accepts what those send. So this type removes
// messages from the frames that are written and read. A peer that may hear a topic from
// some moment on need not name it again.
type subscribers struct {
	mu     sync.RWMutex
	topics map[string]func(transport.PeerID) bool
}

// set sets who may receive a topic; nil is everybody.
func (h *subscribers) set(topic string, takesPart func(transport.PeerID) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if takesPart == nil {
		delete(h.topics, topic)
		return
	}
	if h.topics == nil {
		h.topics = make(map[string]func(transport.PeerID) bool)
	}
	h.topics[topic] = takesPart
}

// has tells whether a peer may receive a topic. It is gossipsub's filter of peers.
func (h *subscribers) has(id peer.ID, topic string) bool {
	h.mu.RLock()
	takesPart := h.topics[topic]
	h.mu.RUnlock()
	return takesPart == nil || takesPart(transport.PeerID(id.String()))
}

// without leaves out messages on topics that a peer may neither receive nor send on.
func (h *subscribers) without(id peer.ID, messages []*pb.Message) []*pb.Message {
	return slices.DeleteFunc(messages, func(m *pb.Message) bool { return !h.has(id, m.GetTopic()) })
}

var errGossipFrame = errors.New("gossipsub has written what is no frame of its own")

// frame returns what is left of one of gossipsub's frames for a peer; the result may be empty.
func (h *subscribers) frame(to peer.ID, frame []byte) ([]byte, error) {
	size, head := binary.Uvarint(frame)
	if head <= 0 || size != uint64(len(frame)-head) {
		return nil, errGossipFrame
	}
	var rpc pb.RPC
	if err := proto.Unmarshal(frame[head:], &rpc); err != nil {
		return nil, fmt.Errorf("%w: %w", errGossipFrame, err)
	}
	all := len(rpc.Publish)
	if rpc.Publish = h.without(to, rpc.Publish); len(rpc.Publish) == all {
		return frame, nil
	}
	if size = uint64(proto.Size(&rpc)); size == 0 {
		return nil, nil
	}
	return proto.MarshalOptions{}.MarshalAppend(binary.AppendUvarint(nil, size), &rpc)
}

// subscribersHost is a host for gossipsub: the streams that it opens leave out messages
// that their receiver may not receive.
type subscribersHost struct {
	host.Host
	subscribers *subscribers
}

func (h subscribersHost) NewStream(ctx context.Context, to peer.ID, protocols ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, to, protocols...)
	if err != nil {
		return nil, err
	}
	return subscribersStream{s, h.subscribers}, nil
}

type subscribersStream struct {
	network.Stream
	subscribers *subscribers
}

// Write implements network.Stream. Gossipsub writes a frame at a time.
func (s subscribersStream) Write(frame []byte) (int, error) {
	left, err := s.subscribers.frame(s.Conn().RemotePeer(), frame)
	if err == nil && len(left) > 0 {
		_, err = s.Stream.Write(left)
	}
	if err != nil {
		return 0, err
	}
	return len(frame), nil
}
