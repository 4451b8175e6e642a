package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// What the run's key signs. No two uses of it can be taken for one another.
const (
	labelMember   = "murmuration key member 1"
	labelOpener   = "murmuration key opener 1"
	labelAcceptor = "murmuration key acceptor 1"
)

// What is said to a peer that is refused; it does not tell what the list says.
const (
	detailList    = "your id is not on the list here"
	detailNoProof = "no proof of the run's key"
	detailNoKey   = "the run has a key, which this peer was not given"
	detailNotAsks = "it asks for no proof of the run's key, which this peer has"
	detailFalse   = "its proof of the run's key is false"
)

// markOf is what a peer shows that knows the key; see docs/WIRE.md.
func (g *guard) markOf(id seam.PeerID) []byte {
	mac := hmac.New(sha256.New, g.admission.Key)
	mac.Write(appendTexts(nil, labelMember, g.run, string(id)))
	return mac.Sum(nil)
}

// proof is what shows, in one conversation only, that a peer knows the key. Both ids
// are those that the connection has proven.
func (g *guard) proof(label string, from, to seam.PeerID, hello wire.Hello, opener, acceptor [wire.NonceSize]byte) (sum [wire.MACSize]byte) {
	text := appendTexts(nil, label, string(from), string(to))
	text = append(append(text, opener[:]...), acceptor[:]...)
	mac := hmac.New(sha256.New, g.admission.Key)
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

// vet finds out whether a peer that says hello may take part. The reason is 0 if it
// may.
func (g *guard) vet(t *talk, hello wire.Hello) (reason wire.Reason, detail string) {
	from := t.stream.Remote()
	if g.admitID(from) != nil {
		return wire.ReasonAdmission, detailList
	}
	if !g.keyed() {
		return 0, ""
	}
	own := newNonce()
	var theirs wire.Proof
	err := say(t, 0, wire.Challenge{Nonce: own})
	if err == nil {
		_, err = t.hear(&theirs)
	}
	if err != nil {
		return wire.ReasonAdmission, detailNoProof
	}
	want := g.proof(labelOpener, from, g.self, hello, theirs.Nonce, own)
	if !hmac.Equal(want[:], theirs.MAC[:]) {
		return wire.ReasonAdmission, detailFalse
	}
	g.hasShown(from)
	answer := wire.Proof{Nonce: own, MAC: g.proof(labelAcceptor, g.self, from, hello, theirs.Nonce, own)}
	if say(t, 0, answer) != nil {
		return wire.ReasonAdmission, detailNoProof
	}
	return 0, ""
}

// welcomed awaits the answer to a hello, and before it proves what it is asked for.
func (g *guard) welcomed(t *talk, hello wire.Hello, welcome *wire.Welcome) error {
	header, payload, err := t.await(wire.TypeWelcome)
	switch {
	case err != nil:
		return err
	case header.Type == wire.TypeRefuse:
		return refused(payload)
	case header.Type == wire.TypeWelcome && g.keyed():
		return notAdmitted(detailNotAsks)
	case header.Type == wire.TypeWelcome:
		return welcome.Decode(payload)
	case header.Type == wire.TypeChallenge && !g.keyed():
		t.refuse(0, wire.ReasonAdmission, detailNoProof)
		return notAdmitted(detailNoKey)
	case header.Type != wire.TypeChallenge:
		return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeWelcome, header.Type, wire.ErrType)
	}
	var challenge wire.Challenge
	if err := challenge.Decode(payload); err != nil {
		return err
	}
	if err := g.prove(t, hello, challenge.Nonce); err != nil {
		return err
	}
	_, err = t.hear(welcome)
	return err
}

// prove answers a challenge, and has the other end prove as much.
func (g *guard) prove(t *talk, hello wire.Hello, theirs [wire.NonceSize]byte) error {
	to, own := t.stream.Remote(), newNonce()
	mine := wire.Proof{Nonce: own, MAC: g.proof(labelOpener, g.self, to, hello, own, theirs)}
	if err := say(t, 0, mine); err != nil {
		return err
	}
	var answer wire.Proof
	if _, err := t.hear(&answer); err != nil {
		return err
	}
	want := g.proof(labelAcceptor, to, g.self, hello, own, theirs)
	if answer.Nonce != theirs || !hmac.Equal(want[:], answer.MAC[:]) {
		t.refuse(0, wire.ReasonAdmission, detailFalse)
		return notAdmitted(detailFalse)
	}
	g.hasShown(to)
	return nil
}

// notAdmitted is a refusal by this peer, of one that it has asked.
func notAdmitted(detail string) error {
	return &refusal{wire.Refuse{Reason: wire.ReasonAdmission, Detail: detail}}
}
