package swim

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// maxMembers bounds the book of peers, departed ones included. When it is
	// full, whoever departed first is forgotten for a newcomer; if nobody has
	// departed, the newcomer is refused.
	maxMembers = 4096
	// maxSeeds bounds the peers given to Join that are returned to for ever.
	maxSeeds = 64
	// rejoinFor is how long a departed peer that is no seed is returned to.
	rejoinFor = time.Hour
)

// entry is what is known of another peer.
type entry struct {
	// meta is the newest verified metadata that announces a record, and last what
	// it says; meta is nil if none was heard.
	meta []byte
	last statement
	// onlooker is verified metadata without a record, to know it again.
	onlooker []byte
	// mark is what the newest of both shows to be admitted.
	mark []byte
	// ceiling is the highest that it has signed for memberlist's incarnation, and left
	// tells whether its newest word was that it leaves.
	ceiling uint32
	left    bool
	// waiting: a new life of the peer looks on and has announced nothing yet, so
	// last speaks of an earlier one. onlooks is that life.
	waiting bool
	onlooks uint64
	// over are the latest of its lives that are known to have ended: what they said as
	// onlookers has no number by which it could be told to be old.
	over []uint64
	// alive is memberlist's belief.
	alive bool
	// departed is when alive became false.
	departed time.Time
	// attempts counts how often the peer was contacted since it departed.
	attempts int
	// seed: the peer was given to Join.
	seed bool
	acquaintance
}

// heard tells whether the peer has said anything yet.
func (e *entry) heard() bool { return e.meta != nil || e.onlooker != nil }

// book keeps the newest verified record of every peer that was heard of, those
// that departed included, and believes memberlist about who is alive. It is
// called under memberlist's node lock, so it never calls memberlist, and takes
// no lock but its own.
type book struct {
	identity  seam.Identity
	run       string
	life      uint64
	admission seam.Admission
	// changed is called, with the lock held, whenever members or former may
	// answer otherwise than before. It must not block.
	changed func()

	mu      sync.Mutex
	entries map[seam.PeerID]*entry
	seeds   int
	learned map[seam.PeerID][]string // addresses to hand to the transport
	own     seam.Record
	ownMeta []byte
	spoken  bool // own was announced
	former  uint64
	lived   bool // former was heard of
	// incarnation is at least what memberlist gives the local peer; ceiling is what was
	// signed last, formerCeiling what earlier lives have signed.
	incarnation, ceiling, formerCeiling uint32
	recalled                            []byte // verified last, of an earlier life
	closed                              bool
	full                                bool // strangers have been turned away

	strangers chan struct{} // capacity 1: there is one to be met
}

func newBook(identity seam.Identity, run string, life uint64, changed func()) *book {
	return &book{
		identity:  identity,
		run:       run,
		life:      life,
		admission: everybody{},
		changed:   changed,
		entries:   make(map[seam.PeerID]*entry),
		learned:   make(map[seam.PeerID][]string),
		strangers: make(chan struct{}, 1),
	}
}

// admit judges the metadata of a node that is said to be alive, and remembers
// it. Metadata of an earlier life of the local peer is good: memberlist must see
// it to refute it.
func (b *book) admit(peer seam.PeerID, meta []byte) error {
	if !validPeer(peer) {
		return errBadName
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if peer == b.identity.Self() && bytes.Equal(meta, b.ownMeta) {
		return nil
	}
	e := b.entries[peer]
	if e != nil && (e.meta != nil && bytes.Equal(meta, e.meta) || e.onlooker != nil && bytes.Equal(meta, e.onlooker)) {
		if !b.admits(peer, e.mark) {
			return errStranger // it has been taken off a list
		}
		return nil // verified before
	}
	s, err := b.read(peer, meta)
	if err != nil {
		return err
	}
	if peer == b.identity.Self() {
		b.hearSelf(s)
		return nil
	}
	if e == nil {
		if e = b.add(peer, false); e == nil {
			return errBookFull
		}
	}
	if !e.heard() {
		e.since = time.Now()
		if !e.met && b.waitsFor(peer, s) {
			e.next = e.since.Add(strangerPatience)
		}
	}
	e.mark, e.left, e.ceiling = s.mark, s.left, max(e.ceiling, s.ceiling)
	if !s.announced {
		e.onlooker, e.onlooks = bytes.Clone(meta), s.life
		if e.meta != nil && s.life != e.last.life {
			e.waiting = true
		}
	} else {
		e.end(s.life)
		e.meta, e.last, e.onlooker, e.waiting = bytes.Clone(meta), s, nil, false
	}
	if len(s.Addresses) > 0 {
		b.learned[peer] = s.Addresses
	}
	b.changed()
	if !e.met {
		signal(b.strangers)
	}
	return nil
}

// read decodes and verifies metadata; the cheap tests come first.
func (b *book) read(peer seam.PeerID, meta []byte) (statement, error) {
	body, signature, err := split(meta)
	if err != nil {
		return statement{}, err
	}
	s, err := decode(peer, body)
	switch e := b.entries[peer]; {
	case err != nil:
		return statement{}, err
	case peer != b.identity.Self() && (e == nil || !e.heard() && !e.met) && b.crowded():
		b.full = true
		return statement{}, errCrowd
	case s.Run != b.run:
		return statement{}, errOtherRun
	case peer != b.identity.Self() && !b.admits(peer, s.mark):
		return statement{}, errStranger
	case s.announced && e != nil && e.meta != nil && e.last.Newer(s.Record):
		return statement{}, errOldRecord
	case !s.announced && e != nil && e.outlived(s.life):
		return statement{}, errOldRecord
	case !b.identity.Verify(peer, signedMessage(peer, body), signature):
		return statement{}, errSignature
	}
	return s, nil
}

// recognizes tells whether metadata of a peer was verified before.
func (b *book) recognizes(peer seam.PeerID, meta []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if peer == b.identity.Self() {
		return bytes.Equal(meta, b.ownMeta) || bytes.Equal(meta, b.recalled)
	}
	e := b.entries[peer]
	return e != nil && (e.meta != nil && bytes.Equal(meta, e.meta) || e.onlooker != nil && bytes.Equal(meta, e.onlooker))
}

// hearSelf takes note of what an earlier life of the local peer has said.
func (b *book) hearSelf(s statement) {
	if s.life == b.life {
		return
	}
	b.formerCeiling = max(b.formerCeiling, s.ceiling)
	if !s.announced || (b.lived && s.Incarnation <= b.former) {
		return
	}
	b.former, b.lived = s.Incarnation, true
	b.changed()
}

// remembered returns the newest announcing metadata of a peer, or nil.
func (b *book) remembered(peer seam.PeerID) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[peer]; e != nil {
		return e.meta
	}
	return nil
}

// add makes an entry. If the book is full it takes the place of one that is not
// alive, a stranger's before others, the longest departed first; one that has been
// met takes that of any stranger. It returns nil if there is none.
func (b *book) add(peer seam.PeerID, met bool) *entry {
	if len(b.entries) >= maxMembers {
		var out seam.PeerID
		for id, e := range b.entries {
			if e.seed || e.alive && (e.met || !met) {
				continue
			}
			if out == "" || e.expendable(b.entries[out]) {
				out = id
			}
		}
		if out == "" {
			return nil
		}
		delete(b.entries, out)
		delete(b.learned, out)
	}
	now := time.Now()
	e := &entry{departed: now}
	e.since = now
	b.entries[peer] = e
	return e
}

// expendable tells whether an entry is to be forgotten before another.
func (e *entry) expendable(other *entry) bool {
	if e.met != other.met {
		return !e.met
	}
	return e.departed.Before(other.departed)
}

// setAlive records memberlist's belief about an admitted peer.
func (b *book) setAlive(peer seam.PeerID, alive bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	if e == nil || e.alive == alive {
		return
	}
	e.alive, e.attempts = alive, 0
	b.changed()
	if !alive {
		e.departed = time.Now()
	} else if !e.met {
		signal(b.strangers)
	}
}

// living is the number of peers that memberlist believes alive, this one and strangers
// included.
func (b *book) living() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 1
	for _, e := range b.entries {
		if e.alive {
			n++
		}
	}
	return n
}

// setOwn records what the local peer says of itself.
func (b *book) setOwn(s statement, meta []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own, b.ownMeta, b.spoken = s.Record, meta, s.announced
	b.changed()
}

// nodeMeta is the metadata that memberlist spreads for the local peer.
func (b *book) nodeMeta() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ownMeta
}

// members returns copies of the records of those alive.
func (b *book) members() []seam.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	records := make([]seam.Record, 0, len(b.entries)+1)
	if b.spoken {
		records = append(records, cloneRecord(b.own))
	}
	for _, e := range b.entries {
		if e.present() && e.met {
			records = append(records, cloneRecord(e.last.Record))
		}
	}
	for _, peer := range b.believed(len(records)) {
		records = append(records, cloneRecord(b.entries[peer].last.Record))
	}
	return records
}

func cloneRecord(r seam.Record) seam.Record {
	r.Addresses = slices.Clone(r.Addresses)
	return r
}

// highest is the highest incarnation heard of a peer; of the local one, of its
// earlier lives only.
func (b *book) highest(peer seam.PeerID) (uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if peer == b.identity.Self() {
		return b.former, b.lived
	}
	if e := b.entries[peer]; e != nil && e.meta != nil {
		return e.last.Incarnation, true
	}
	return 0, false
}

// last is the newest record of a peer, alive or not.
func (b *book) last(peer seam.PeerID) (seam.Record, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[peer]; e != nil && e.meta != nil {
		return cloneRecord(e.last.Record), true
	}
	return seam.Record{}, false
}

// takeLearned returns the addresses that the transport has not been told yet.
func (b *book) takeLearned() map[seam.PeerID][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.learned) == 0 {
		return nil
	}
	learned := b.learned
	b.learned = make(map[seam.PeerID][]string)
	return learned
}

// addresses returns where a peer says it can be reached.
func (b *book) addresses(peer seam.PeerID) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if learned := b.learned[peer]; learned != nil {
		return learned
	}
	if e := b.entries[peer]; e != nil {
		return e.last.Addresses
	}
	return nil
}

// addSeed makes a peer one that is returned to for ever, while there is room.
func (b *book) addSeed(peer seam.PeerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	if e == nil {
		e = b.add(peer, true)
	}
	if e != nil && !e.seed && b.seeds < maxSeeds {
		e.seed = true
		b.seeds++
	}
}

// close empties the roster.
func (b *book) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed()
}
