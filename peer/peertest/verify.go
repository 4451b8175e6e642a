package peertest

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// maxVerified bounds the signatures that a flock remembers.
const maxVerified = 1 << 16

// verified remembers which signatures hold: what one peer of a flock has found out,
// the others, in the same process, need not compute again.
type verified struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]bool
}

// notary is a transport that verifies each signature once for a whole flock.
type notary struct {
	*memnet.Transport
	verified *verified
}

func (n notary) Verify(peer seam.PeerID, message, signature []byte) bool {
	key := binary.BigEndian.AppendUint32(nil, uint32(len(peer)))
	key = binary.BigEndian.AppendUint32(append(key, peer...), uint32(len(message)))
	sum := sha256.Sum256(append(append(key, message...), signature...))
	v := n.verified
	v.mu.Lock()
	holds, known := v.known[sum]
	v.mu.Unlock()
	if known {
		return holds
	}
	holds = n.Transport.Verify(peer, message, signature)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxVerified || v.known == nil {
		v.known = make(map[[sha256.Size]byte]bool)
	}
	v.known[sum] = holds
	return holds
}
