package memnet

import (
	"crypto/ed25519"
	"encoding/base32"
	"strings"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// idPrefix begins every peer id; the public key in base 32 follows.
const idPrefix = "mem"

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// identity implements transport.Identity with an Ed25519 key.
type identity struct {
	key ed25519.PrivateKey
	id  transport.PeerID
}

func newIdentity(seed []byte) identity {
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	return identity{key: key, id: transport.PeerID(idPrefix + idEncoding.EncodeToString(public))}
}

func (i identity) Self() transport.PeerID { return i.id }

// Sign implements transport.Identity. It cannot fail.
func (i identity) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(i.key, message), nil
}

func (i identity) Verify(peer transport.PeerID, message, signature []byte) bool {
	text, ok := strings.CutPrefix(string(peer), idPrefix)
	if !ok {
		return false
	}
	public, err := idEncoding.DecodeString(text)
	if err != nil || len(public) != ed25519.PublicKeySize || idEncoding.EncodeToString(public) != text {
		return false
	}
	return ed25519.Verify(public, message, signature)
}
