package swim

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxSeeds bounds the peers given to Join that are contacted again without a time limit.
const maxSeeds = 64

// book keeps the newest verified record of every known peer, departed ones included, and
// takes from memberlist which are alive. It is called under memberlist's node lock, so it
// never calls memberlist, and takes no locks other than its own and that of own.
type book struct {
	own       *own
	admission transport.Admission
	// changed is called, with the lock held, whenever members may answer otherwise than
	// before. It must not block.
	changed func()

	mu      sync.Mutex
	entries entries
	seeds   int
	news    bool // some entries have learned addresses
	closed  bool
	full    bool // strangers have been turned away

	strangers chan struct{} // capacity 1: there is one to be met
}

func newBook(identity transport.Identity, run string, life uint64, changed func()) *book {
	return &book{
		own:       &own{identity: identity, run: run, life: life, changed: changed},
		admission: everybody{},
		changed:   changed,
		entries:   make(entries),
		strangers: make(chan struct{}, 1),
	}
}

// everybody is the admission of a run that admits every peer.
type everybody struct{}

func (everybody) Mark() []byte                         { return nil }
func (everybody) Admit(transport.PeerID, []byte) error { return nil }

func (b *book) admits(peer transport.PeerID, mark []byte) bool {
	return b.admission.Admit(peer, mark) == nil
}

// admit judges the metadata of a node that is said to be alive, and remembers it.
func (b *book) admit(peer transport.PeerID, meta []byte) error {
	if !validPeer(peer) {
		return errBadName
	}
	if peer == b.own.identity.Self() {
		return b.own.recall(meta)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	if e != nil && e.recognizes(meta) {
		if !b.admits(peer, e.mark) {
			return errStranger // it has been removed from a list
		}
		return nil
	}
	s, err := verified(b.own.identity, b.own.run, peer, meta, func(s statement) error { return b.judge(peer, e, s) })
	if err != nil {
		return err
	}
	if e = b.entries.of(peer, false); e == nil {
		return errBookFull
	}
	if !e.received() {
		e.since = time.Now()
		if !e.met && b.waitsFor(peer, s) {
			e.next = e.since.Add(strangerTimeout)
		}
	}
	e.take(s, meta)
	b.news = true
	b.changed()
	if !e.met {
		signal(b.strangers)
	}
	return nil
}

// judge checks a peer's statement before its signature is verified.
func (b *book) judge(peer transport.PeerID, e *entry, s statement) error {
	switch {
	case (e == nil || !e.received() && !e.met) && b.entries.crowded():
		b.full = true
		return errCrowd
	case !b.admits(peer, s.mark):
		return errStranger
	case s.announced && e != nil && e.meta != nil && e.last.Newer(s.Record):
		return errOldRecord
	case !s.announced && e != nil && e.superseded(s.life):
		return errOldRecord
	}
	return nil
}

// waitsFor tells whether the stranger is to dial, not the local peer: it is if it has no
// model yet and the local peer has one, since it wants to copy the model soon; otherwise
// the one with the lower id dials.
func (b *book) waitsFor(peer transport.PeerID, says statement) bool {
	if own := b.own.trains(); own != (says.Head+says.Steps > 0) {
		return own
	}
	return peer < b.own.identity.Self()
}

// of is a copy of a peer's entry, empty if there is none.
func (b *book) of(peer transport.PeerID) entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[peer]; e != nil {
		return *e
	}
	return entry{}
}

func (b *book) knows(peer transport.PeerID) bool {
	e := b.of(peer)
	return !e.since.IsZero()
}

func (b *book) recognizes(peer transport.PeerID, meta []byte) bool {
	if peer == b.own.identity.Self() {
		return b.own.recognizes(meta)
	}
	e := b.of(peer)
	return e.recognizes(meta)
}

// accepts tells whether a peer is known by its record and alive.
func (b *book) accepts(peer transport.PeerID) bool {
	e := b.of(peer)
	return peer == b.own.identity.Self() || e.alive && e.received()
}

// highest is the highest incarnation received of a peer; of the local one, of its earlier
// lives only.
func (b *book) highest(peer transport.PeerID) (uint64, bool) {
	if peer == b.own.identity.Self() {
		return b.own.highest()
	}
	e := b.of(peer)
	return e.last.Incarnation, e.meta != nil
}

func (b *book) last(peer transport.PeerID) (transport.Record, bool) {
	if peer == b.own.identity.Self() {
		return b.own.last()
	}
	e := b.of(peer)
	return cloneRecord(e.last.Record), e.meta != nil
}

// addresses returns where a peer says it can be reached.
func (b *book) addresses(peer transport.PeerID) []string {
	e := b.of(peer)
	if e.learned != nil {
		return e.learned
	}
	return e.last.Addresses
}

// mayLive tells whether news that a peer is alive may have this incarnation: up to a little
// more than the peer has signed, since it denies an accusation with the next number and
// signs afterwards. The signature on meta is verified later, if at all.
func (b *book) mayLive(peer transport.PeerID, meta []byte, incarnation uint32) bool {
	if peer == b.own.identity.Self() {
		return b.own.mayLive(meta, incarnation)
	}
	if e := b.of(peer); incarnation <= raised(e.ceiling, incarnationRoom) {
		return true
	}
	body, _, err := split(meta)
	if err != nil {
		return false
	}
	s, err := decode(peer, body)
	return err == nil && incarnation <= raised(s.ceiling, incarnationRoom)
}

// mayBeAccused tells whether news that a peer is silent, dead or gone may have an
// incarnation.
func (b *book) mayBeAccused(peer transport.PeerID, incarnation uint32) bool {
	if peer == b.own.identity.Self() {
		return b.own.note(incarnation, 0)
	}
	e := b.of(peer)
	return incarnation <= e.ceiling
}

// receive takes a record that did not come by gossip, of a member that is alive.
func (b *book) receive(peer transport.PeerID, meta []byte) (news bool, err error) {
	if e := b.of(peer); !e.alive || e.recognizes(meta) {
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

// meet notes an authenticated stream with a peer, or an answer from it.
func (b *book) meet(peer transport.PeerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries.of(peer, true)
	if e == nil || e.met {
		return
	}
	if e.met = true; e.received() {
		b.changed()
	}
	if e.dialled {
		e.dialled = false
		signal(b.strangers) // another can be dialled
	}
}

func (b *book) miss(peer transport.PeerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	if e == nil || e.met {
		return
	}
	e.dialled = false
	e.missed++
	e.next = time.Now().Add(time.Duration(e.missed) * missedWait)
	b.changed()
	signal(b.strangers) // another can be dialled
}

func (b *book) toMeet(now time.Time) []transport.PeerID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries.toMeet(now)
}

// lost picks whom to contact next among those not alive, at most so many.
func (b *book) lost(now time.Time, most int) []transport.PeerID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries.lost(b.own.identity.Self(), now, most, b.admits)
}

// turnedAway returns true once after strangers were turned away, when there is room again,
// with a member to ask for them.
func (b *book) turnedAway() (ask transport.PeerID, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.full || b.entries.crowded() {
		return "", false
	}
	b.full = false
	ask = b.entries.longest()
	return ask, ask != ""
}

// setAlive records whether memberlist takes an admitted peer for alive.
func (b *book) setAlive(peer transport.PeerID, alive bool) {
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

// living is the number of peers that memberlist takes for alive, this one and strangers
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

func (b *book) members() []transport.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	records := make([]transport.Record, 0, len(b.entries)+1)
	if record, _, spoken := b.own.announced(); spoken {
		records = append(records, cloneRecord(record))
	}
	for _, e := range b.entries {
		if e.present() && e.met {
			records = append(records, cloneRecord(e.last.Record))
		}
	}
	for _, peer := range b.entries.plausible(len(records)) {
		records = append(records, cloneRecord(b.entries[peer].last.Record))
	}
	return records
}

func cloneRecord(r transport.Record) transport.Record {
	r.Addresses = slices.Clone(r.Addresses)
	return r
}

func (b *book) takeLearned() map[transport.PeerID][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.news {
		return nil
	}
	b.news = false
	learned := make(map[transport.PeerID][]string)
	for peer, e := range b.entries {
		if e.learned != nil {
			learned[peer], e.learned = e.learned, nil
		}
	}
	return learned
}

// addSeed makes a peer a seed, which is contacted again without a time limit, while there is room.
func (b *book) addSeed(peer transport.PeerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries.of(peer, true)
	if e != nil && !e.seed && b.seeds < maxSeeds {
		e.seed = true
		b.seeds++
	}
}

func (b *book) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed()
}
