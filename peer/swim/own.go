package swim

import (
	"bytes"
	"math"
	"sync"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// memberlist numbers news about a node by an incarnation of its own, which is not signed:
// news that a node is dead in incarnation 2³²-1 could not be contradicted. So each peer
// signs a ceiling with its record. News by others about the peer counts up to the ceiling;
// only the peer itself can raise it.

// incarnationRoom is how far the ceiling is above the incarnation that a peer has when it
// signs, and how far above the ceiling a denial may be.
const incarnationRoom = 64

func raised(incarnation, by uint32) uint32 {
	if incarnation > math.MaxUint32-by {
		return math.MaxUint32
	}
	return incarnation + by
}

// own is the local peer's own metadata, and what is known about its earlier lives.
type own struct {
	identity transport.Identity
	run      string
	life     uint64
	changed  func() // may be called with the lock held

	mu     sync.Mutex
	record transport.Record
	meta   []byte
	spoken bool // record was announced
	// former is the highest incarnation of earlier lives, if lived; elsewhere is the last record
	// of a life that has not announced its departure, and may still be a running process.
	former    uint64
	lived     bool
	elsewhere *transport.Record
	// incarnation is at least what memberlist gives the local peer; ceiling is what was
	// signed last, formerCeiling what earlier lives have signed.
	incarnation, ceiling, formerCeiling uint32
	recalled                            []byte // verified last, of an earlier life
}

func (o *own) set(s statement, meta []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record, o.meta, o.spoken = s.Record, meta, s.announced
	o.changed()
}

// nodeMeta is the metadata that memberlist spreads.
func (o *own) nodeMeta() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.meta
}

// announced returns the record and its metadata, or false if none was announced.
func (o *own) announced() (transport.Record, []byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record, o.meta, o.spoken
}

func (o *own) trains() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record.Head+o.record.Steps > 0
}

func (o *own) highest() (uint64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.former, o.lived
}

// last is the last record of another life, unless that announced its departure.
func (o *own) last() (r transport.Record, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.elsewhere == nil {
		return transport.Record{}, false
	}
	return cloneRecord(*o.elsewhere), true
}

func (o *own) recognizes(meta []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Equal(meta, o.meta) || bytes.Equal(meta, o.recalled)
}

// recall takes metadata that another peer remembers of the local one. Metadata without a
// valid signature of this peer is ignored. That of an earlier life is accepted: memberlist
// must see it to refute it.
func (o *own) recall(meta []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Equal(meta, o.meta) || bytes.Equal(meta, o.recalled) {
		return nil
	}
	s, err := verified(o.identity, o.run, o.identity.Self(), meta, nil)
	if err != nil {
		return err
	}
	o.recalled = bytes.Clone(meta)
	if s.life == o.life {
		return nil
	}
	o.formerCeiling = max(o.formerCeiling, s.ceiling)
	if o.elsewhere = &s.Record; s.left {
		o.elsewhere = nil
	}
	if s.announced && (!o.lived || s.Incarnation > o.former) {
		o.former, o.lived = s.Incarnation, true
		o.changed()
	}
	return nil
}

// mayLive is the book's, for the local peer. What the metadata names has to be signed by
// then, since this peer's own next ceiling goes by it.
func (o *own) mayLive(meta []byte, incarnation uint32) bool {
	if o.note(incarnation, incarnationRoom) {
		return true
	}
	_ = o.recall(meta)
	return o.note(incarnation, incarnationRoom)
}

// note keeps the incarnation that memberlist may have by now, if it is at most so far
// above all ceilings: memberlist denies what is said of the local peer by the next number.
func (o *own) note(incarnation, above uint32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if incarnation > raised(max(o.ceiling, o.formerCeiling), above) {
		return false
	}
	o.incarnation = max(o.incarnation, raised(incarnation, 1))
	return true
}

// sign returns the ceiling for the next record, which memberlist will give the next
// incarnation.
func (o *own) sign() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.incarnation = raised(o.incarnation, 1)
	o.ceiling = raised(o.incarnation, incarnationRoom)
	return o.ceiling
}

// outgrown tells whether denials have used up half of the room.
func (o *own) outgrown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return raised(o.incarnation, incarnationRoom/2) > o.ceiling && o.ceiling < math.MaxUint32
}
