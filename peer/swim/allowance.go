package swim

import (
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// packetsPerSecond and packetBurst bound the packets that are taken from one peer:
	// many times what memberlist sends to one. What is beyond them is dropped, as a
	// network would.
	packetsPerSecond = 100
	packetBurst      = 200
	// messagesPerSecond and messageBurst bound the messages in them, of which a packet can
	// hold 255.
	messagesPerSecond = 500
	messageBurst      = 2000
	// introductionsPerSecond and introductionBurst bound what a peer may say of itself until
	// it is a member: each time costs a signature.
	introductionsPerSecond = 2
	introductionBurst      = 16
	// syncsPerSecond and syncBurst bound the conversations that one peer may begin. It
	// begins one in fifteen seconds, and a few to join.
	syncsPerSecond = 1
	syncBurst      = 8
)

// allowance is what a peer may still send.
type allowance struct {
	packets, messages, introductions, probes, syncs *rate.Limiter
}

func newAllowance() *allowance {
	return &allowance{
		packets:       rate.NewLimiter(packetsPerSecond, packetBurst),
		messages:      rate.NewLimiter(messagesPerSecond, messageBurst),
		introductions: rate.NewLimiter(introductionsPerSecond, introductionBurst),
		probes:        rate.NewLimiter(probesPerSecond, probeBurst),
		syncs:         rate.NewLimiter(syncsPerSecond, syncBurst),
	}
}

// allowances are those of all peers: they outlive their streams.
type allowances struct {
	peers *lru.Cache[seam.PeerID, *allowance]
}

func newAllowances() allowances {
	peers, _ := lru.New[seam.PeerID, *allowance](maxMembers) // fails for sizes below one only
	return allowances{peers}
}

func (a allowances) of(peer seam.PeerID) *allowance {
	if known, ok := a.peers.Get(peer); ok {
		return known
	}
	fresh := newAllowance()
	if known, ok, _ := a.peers.PeekOrAdd(peer, fresh); ok {
		return known
	}
	return fresh
}
