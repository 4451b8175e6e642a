package swim

import (
	"bytes"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// memberlist numbers what is said of a node by an incarnation of its own, which it does
// not sign: whoever said that another is dead in incarnation 2³²-1 could not be
// contradicted. So each peer signs a ceiling with its record. What others say of it counts
// up to there; only it can raise it.

// incarnationRoom is how far the ceiling is above the incarnation that a peer has when it
// signs, and how far above the ceiling a denial may be.
const incarnationRoom = 64

// mayLive tells whether news that a peer is alive may have an incarnation: up to a little
// more than it has signed, since it denies an accusation by the next number and signs
// after that. The signature on meta is verified later, if it is.
func (b *book) mayLive(peer seam.PeerID, meta []byte, incarnation uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if incarnation > raised(b.ceilingOf(peer), incarnationRoom) && incarnation > raised(b.claimed(peer, meta), incarnationRoom) {
		return false
	}
	b.noteSelf(peer, incarnation)
	return true
}

// claimed is the ceiling that metadata names. Of the local peer it has to be signed by
// then, since this peer's own next ceiling goes by it. The caller holds the lock.
func (b *book) claimed(peer seam.PeerID, meta []byte) uint32 {
	if peer == b.identity.Self() {
		_ = b.recollect(meta)
		return b.ceilingOf(peer)
	}
	body, _, err := split(meta)
	if err != nil {
		return 0
	}
	s, err := decode(peer, body)
	if err != nil {
		return 0
	}
	return s.ceiling
}

// mayBeAccused tells whether news that a peer is silent, dead or gone may have an
// incarnation.
func (b *book) mayBeAccused(peer seam.PeerID, incarnation uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if incarnation > b.ceilingOf(peer) {
		return false
	}
	b.noteSelf(peer, incarnation)
	return true
}

// ceilingOf is the highest ceiling that a peer is known to have signed. The caller holds
// the lock.
func (b *book) ceilingOf(peer seam.PeerID) uint32 {
	if peer == b.identity.Self() {
		return max(b.ceiling, b.formerCeiling)
	}
	if e := b.entries[peer]; e != nil {
		return e.ceiling
	}
	return 0
}

// noteSelf keeps the incarnation that memberlist may have by now: it denies what is said
// of the local peer by the next number. The caller holds the lock.
func (b *book) noteSelf(peer seam.PeerID, incarnation uint32) {
	if peer == b.identity.Self() {
		b.incarnation = max(b.incarnation, raised(incarnation, 1))
	}
}

// sign returns the ceiling for the next record, which memberlist will give the next
// incarnation.
func (b *book) sign() uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.incarnation = raised(b.incarnation, 1)
	b.ceiling = raised(b.incarnation, incarnationRoom)
	return b.ceiling
}

// outgrown tells whether denials have used up half of the room.
func (b *book) outgrown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return raised(b.incarnation, incarnationRoom/2) > b.ceiling && b.ceiling < math.MaxUint32
}

func raised(incarnation, by uint32) uint32 {
	if incarnation > math.MaxUint32-by {
		return math.MaxUint32
	}
	return incarnation + by
}

// believes tells whether a peer is known by its record and alive.
func (b *book) believes(peer seam.PeerID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if peer == b.identity.Self() {
		return true
	}
	e := b.entries[peer]
	return e != nil && e.alive && e.heard()
}

// hasLeft tells whether a peer has signed that it leaves.
func (b *book) hasLeft(peer seam.PeerID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	return e != nil && e.left
}

// recall takes metadata that another peer remembers of the local one. What does not
// verify is ignored: it is signed by us or worth nothing.
func (b *book) recall(meta []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.recollect(meta)
}

// recollect is recall for who holds the lock.
func (b *book) recollect(meta []byte) error {
	if bytes.Equal(meta, b.ownMeta) || bytes.Equal(meta, b.recalled) {
		return nil
	}
	s, err := b.read(b.identity.Self(), meta)
	if err == nil {
		b.recalled = bytes.Clone(meta)
		b.hearSelf(s)
	}
	return err
}

// renew signs a higher ceiling if denials have come near it. Once a second is enough: by
// then the ceiling has risen by at most incarnationRoom.
func (m *Membership) renew() {
	if !m.book.outgrown() {
		return
	}
	select {
	case <-m.announcing:
		defer func() { m.announcing <- struct{}{} }()
	case <-m.stopping:
		return
	}
	s := m.said
	s.Sequence++
	_ = m.say(s, time.Nanosecond) // it was sealed before
}
