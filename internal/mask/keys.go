package mask

import (
	"crypto/ecdh"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const publicSize = 32

// Card is a public key with its owner's signature.
type Card [publicSize + 64]byte

// Keys has a member's key for masks, and its secrets with other members. It belongs to one goroutine.
type Keys struct {
	Card    Card
	run     string
	own     transport.Identity
	private *ecdh.PrivateKey
	secrets *lru.LRU[string, []byte] // by owner and card
}

// NewKeys makes the keys of one incarnation of a member.
func NewKeys(run string, own transport.Identity, random [32]byte) (*Keys, error) {
	k := &Keys{run: run, own: own}
	k.secrets, _ = lru.NewLRU[string, []byte](Most, nil)  // fails for sizes below 1 only
	k.private, _ = ecdh.X25519().NewPrivateKey(random[:]) // fails for other lengths only
	copy(k.Card[:], k.private.PublicKey().Bytes())
	signature, err := own.Sign(k.statement(own.Self(), &k.Card))
	if n := copy(k.Card[publicSize:], signature); err != nil || n < len(k.Card)-publicSize {
		return nil, fmt.Errorf("a signature of %d bytes: %v", n, err)
	}
	return k, nil
}

// statement is the bytes that an owner signs.
func (k *Keys) statement(owner transport.PeerID, card *Card) []byte {
	return sum256("key", []byte(k.run), []byte(owner), card[:publicSize])
}

// Secret is the secret of this member and the owner of a card; nil if the owner has not signed the card.
func (k *Keys) Secret(owner transport.PeerID, card Card) []byte {
	name := string(owner) + string(card[:])
	secret, known := k.secrets.Get(name)
	if known || !k.own.Verify(owner, k.statement(owner, &card), card[publicSize:]) {
		return secret
	}
	public, _ := ecdh.X25519().NewPublicKey(card[:publicSize]) // fails for other lengths only
	secret, err := k.private.ECDH(public)
	if err != nil {
		return nil // a key with which every secret would be zero
	}
	k.secrets.Add(name, secret)
	return secret
}
