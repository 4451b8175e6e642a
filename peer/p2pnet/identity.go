package p2pnet

import (
	"crypto/ed25519"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// signatureDomain precedes every message that is signed. So nobody can present a
// signature from here in another protocol that uses the same key (as libp2p's
// TLS handshake does), or one from there here.
const signatureDomain = "murmuration-record:"

func inDomain(message []byte) []byte {
	return append([]byte(signatureDomain), message...)
}

// parsePeer returns the libp2p id that a transport.PeerID is the text of. Only the
// canonical text of an Ed25519 id is accepted: all other code would take two texts
// of one peer for two peers.
func parsePeer(text transport.PeerID) (peer.ID, error) {
	id, err := peer.Decode(string(text))
	if err != nil {
		return "", fmt.Errorf("%q is no peer id: %w", text, err)
	}
	if id.String() != string(text) {
		return "", fmt.Errorf("%q is not the usual form of the peer id %s", text, id)
	}
	if !isEd25519(id) {
		return "", fmt.Errorf("peer id %q does not hold an Ed25519 key", text)
	}
	return id, nil
}

func publicKey(id peer.ID) (ed25519.PublicKey, error) {
	key, err := id.ExtractPublicKey()
	if err != nil {
		return nil, fmt.Errorf("reading the key in peer id %s: %w", id, err)
	}
	if _, ok := key.(*crypto.Ed25519PublicKey); !ok {
		return nil, fmt.Errorf("peer id %s does not hold an Ed25519 key", id)
	}
	return key.Raw()
}

func isEd25519(id peer.ID) bool {
	_, err := publicKey(id)
	return err == nil
}

// ID is the peer id of a key.
func ID(key ed25519.PublicKey) (transport.PeerID, error) {
	id, err := idOfKey(key)
	return transport.PeerID(id.String()), err
}

func idOfKey(public ed25519.PublicKey) (peer.ID, error) {
	key, err := crypto.UnmarshalEd25519PublicKey(public)
	if err != nil {
		return "", fmt.Errorf("making an id of a key: %w", err)
	}
	return peer.IDFromPublicKey(key)
}
