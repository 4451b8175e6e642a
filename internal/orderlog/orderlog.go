// Package orderlog keeps the operator's messages that still count, and exchanges them on
// streams, as signed messages whose bytes are passed on unchanged. Other packages interpret
// their contents. On streams of another protocol, members answer questions from outside
// about the run's members.
package orderlog

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// kinds is the number of kinds of messages that an operator sends.
	kinds = int(wire.ControlDuties)
	// maxPlanned bounds the messages of one kind that are kept: the one in force and
	// those that take effect later.
	maxPlanned = 4
	// Most bounds all kept messages of an operator: those of kinds that are not planned are one each. Releases that
	// knew six kinds take no more.
	Most = 6 * maxPlanned
)

// Order is a message of the operator with its bytes.
type Order struct {
	wire.Control
	Bytes []byte
}

// Sign makes an order of a message whose author has this identity.
func Sign(by transport.Identity, m wire.Control) (Order, error) {
	signature, err := by.Sign(m.Signed())
	if err != nil {
		return Order{}, fmt.Errorf("signing a control message: %w", err)
	}
	if copy(m.Signature[:], signature) != len(signature) || len(signature) != wire.ControlSignature {
		return Order{}, fmt.Errorf("signing a control message: a signature of %d bytes, not the %d of Ed25519", len(signature), wire.ControlSignature)
	}
	return Order{m, m.Append(nil)}, nil
}

// Later orders the messages of one kind.
func (m Order) Later(other Order) bool {
	if m.Sequence != other.Sequence {
		return m.Sequence > other.Sequence
	}
	return bytes.Compare(m.Bytes, other.Bytes) > 0
}

// Orders are the messages that still count. They depend on the messages alone, not on the
// order of arrival: a message replaces the earlier ones of its kind that take effect at its
// step or later. The zero value is ready.
type Orders struct {
	kept [kinds][]Order // by kind less one; the earliest first
}

// Of are the messages of a kind that this release knows, the earliest first.
func (s *Orders) Of(kind wire.ControlKind) []Order { return s.kept[kind-1] }

// Wants tells whether a message would change anything. A message of an unknown kind is for
// later releases.
func (s *Orders) Wants(m Order) bool {
	if m.Kind < 1 || int(m.Kind) > kinds {
		return true
	}
	newer := 0
	for _, kept := range s.Of(m.Kind) {
		if !kept.Later(m) {
			if bytes.Equal(kept.Bytes, m.Bytes) {
				return false
			}
			continue
		}
		if kept.At <= m.At {
			return false
		}
		newer++
	}
	return newer < maxPlanned
}

// Take keeps a message that is wanted, and drops those that it replaces.
func (s *Orders) Take(m Order) {
	kept := &s.kept[m.Kind-1]
	*kept = slices.DeleteFunc(*kept, func(old Order) bool { return m.Later(old) && old.At >= m.At })
	place := slices.IndexFunc(*kept, func(old Order) bool { return old.Later(m) })
	if place < 0 {
		place = len(*kept)
	}
	*kept = slices.Insert(*kept, place, m)
	if len(*kept) > maxPlanned {
		*kept = slices.Delete(*kept, 0, len(*kept)-maxPlanned)
	}
}

// All are the bytes of all messages that count.
func (s *Orders) All() (messages [][]byte) {
	for _, kind := range s.kept {
		for _, m := range kind {
			messages = append(messages, m.Bytes)
		}
	}
	return messages
}

// Newest is the newest message of a kind.
func (s *Orders) Newest(kind wire.ControlKind) (Order, bool) {
	kept := s.Of(kind)
	if len(kept) == 0 {
		return Order{}, false
	}
	return kept[len(kept)-1], true
}
