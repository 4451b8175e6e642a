package admit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Labels of the uses of the run's key, so that no value can serve for another use.
const (
	labelMember   = "murmuration key member 1"
	labelOpener   = "murmuration key opener 1"
	labelAcceptor = "murmuration key acceptor 1"
)

// runKey is the secret that the peers of a run share. It is never sent; docs/WIRE.md says what is.
type runKey struct {
	run    string
	secret []byte
}

// mark is the mark of a peer that knows the key.
func (k runKey) mark(id transport.PeerID) []byte {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(appendTexts(nil, labelMember, k.run, string(id)))
	return mac.Sum(nil)
}

// proof proves, for one conversation only, that a peer knows the key. Both ids are those
// that the connection has proven.
func (k runKey) proof(label string, from, to transport.PeerID, hello wire.Hello, opener, acceptor [wire.NonceSize]byte) (sum [wire.MACSize]byte) {
	text := appendTexts(nil, label, string(from), string(to))
	text = append(append(text, opener[:]...), acceptor[:]...)
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(hello.Append(text))
	mac.Sum(sum[:0])
	return sum
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
		b = append(b, text...)
	}
	return b
}

func newNonce() (nonce [wire.NonceSize]byte) {
	rand.Read(nonce[:]) // never fails
	return nonce
}
