package swim

import (
	"bytes"
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/seam"
)

var _ seam.Courier = (*Membership)(nil)

// Signed implements seam.Courier.
func (m *Membership) Signed() []byte { return m.book.announcement() }

// Heard implements seam.Courier.
func (m *Membership) Heard(peer seam.PeerID, signed []byte) (news bool, err error) {
	news, err = m.book.hear(peer, signed)
	if err != nil {
		return false, fmt.Errorf("swim: the record that %s handed out %w", peer.Short(), err)
	}
	return news, nil
}

// Compare implements seam.Courier: it is a push and pull of memberlist's, and
// makes the peer no seed.
func (m *Membership) Compare(ctx context.Context, peer seam.PeerID) error {
	answer := make(chan error, 1)
	if err := m.begin(func() { answer <- m.contact(peer) }); err != nil {
		return fmt.Errorf("swim: compare: %w", err)
	}
	return m.awaitAnswers(ctx, answer, 1)
}

// announcement is the metadata of the local record, nil if none was announced.
func (b *book) announcement() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.spoken {
		return nil
	}
	return b.ownMeta
}

// hear takes a record that did not come by gossip, of a member that is alive.
func (b *book) hear(peer seam.PeerID, meta []byte) (news bool, err error) {
	b.mu.Lock()
	e := b.entries[peer]
	stranger := e == nil || !e.alive
	known := e != nil && bytes.Equal(meta, e.meta)
	b.mu.Unlock()
	if stranger || known || peer == b.identity.Self() {
		return false, nil
	}
	switch err := b.admit(peer, meta); err {
	case nil:
		return true, nil
	case errOldRecord: // gossip was faster
		return false, nil
	default:
		return false, err
	}
}
