package peertest

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/hashicorp/golang-lru/v2"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxVerified bounds the signatures that a flock remembers.
const maxVerified = 1 << 16

// notary is a transport that verifies each signature once for a whole flock: the peers
// share one process, so they share the results.
type notary struct {
	*memnet.Transport
	verified *lru.Cache[[sha256.Size]byte, bool]
}

// Verify implements transport.Transport.
func (n notary) Verify(peer transport.PeerID, message, signature []byte) bool {
	key := binary.BigEndian.AppendUint32(nil, uint32(len(peer)))
	key = binary.BigEndian.AppendUint32(append(key, peer...), uint32(len(message)))
	sum := sha256.Sum256(append(append(key, message...), signature...))
	holds, known := n.verified.Get(sum)
	if !known {
		holds = n.Transport.Verify(peer, message, signature)
		n.verified.Add(sum, holds)
	}
	return holds
}
