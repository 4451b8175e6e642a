package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// World is a flock in virtual time.
type World struct {
	config Config
	queue  Queue
	peers  []*peer
	index  map[topology.PeerID]int
	lines  map[pair]*line
	codecs []uint8 // those of the plan, for exchanges
	spare  buffers
	idle   []*wire.Reader // for frames of any size; as many as are in use at once
	over   bool

	ports   []port
	overlay *topology.Overlay // of the members, as they are known

	transfers, exact coding // of those that may round, and of those that may not

	gradients         GradientTrainer // or nil
	batcher           Batcher         // the same, or nil
	workers           int
	owed              []*peer   // whose steps have begun, and whose gradients are not yet computed
	step, mean, point []float32 // scratch
}

// pair is two peers, the lower index first.
type pair [2]int

func pairOf(a, b int) pair { return pair{min(a, b), max(a, b)} }

// New makes a world in which, once it runs, every peer knows every other and
// begins to train. It reports all faults of the configuration at once.
func New(config Config) (*World, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("simulated world: %w", err)
	}
	w := &World{config: config.withDefaults(), index: make(map[topology.PeerID]int), lines: make(map[pair]*line)}
	w.config.Terms.Codecs = w.config.Terms.Plan.Codecs()
	w.exact = newCoding(replica.ExactTerms())
	w.transfers = w.exact
	w.gradients, _ = config.Trainer.(GradientTrainer)
	w.batcher, _ = config.Trainer.(Batcher)
	for _, id := range w.config.Terms.Codecs {
		w.codecs = append(w.codecs, uint8(id))
	}
	w.ports, w.spare.most = make([]port, len(config.Members)), sparePerPeer*len(config.Members)
	var members []topology.Member
	for i, m := range config.Members {
		w.index[m.ID] = i
		w.ports[i].bandwidth = config.Port
		if m.Later {
			w.peers = append(w.peers, absent(w, i, m.ID))
			continue
		}
		if !m.Stranger {
			members = append(members, topology.Member{ID: m.ID, Unreachable: m.Unreachable})
		}
		p, err := newPeer(w, i, m)
		if err != nil {
			return nil, fmt.Errorf("simulated world: %w", err)
		}
		w.peers = append(w.peers, p)
	}
	if err := w.adopt(members); err != nil {
		return nil, err
	}
	for _, p := range w.peers {
		w.queue.After(0, p.begin)
	}
	return w, nil
}

// Now is the time since the beginning of the world.
func (w *World) Now() time.Duration { return w.queue.Now() }

// After lets something happen when d has passed.
func (w *World) After(d time.Duration, do func()) { w.queue.After(d, do) }

// Run lets happen all that is due up to and at the given time, and returns how
// much that was.
func (w *World) Run(until time.Duration) (events int) { return w.queue.Run(until) }

// Pending is how much is due later. A world that is finished comes to rest: in the
// end there is nothing.
func (w *World) Pending() int { return w.queue.Len() }

// Finish ends the training: no peer begins another step, and each asks its
// neighbours for a last exchange.
func (w *World) Finish() {
	w.over = true
	for _, p := range w.peers {
		if !p.arriving { // else it hears of it when it knows the others
			p.tell(averaging.Event{Kind: averaging.RunOver})
		}
	}
}

// line is what joins two peers; it is made when it is first asked for.
func (w *World) line(a, b int) *line {
	key := pairOf(a, b)
	l := w.lines[key]
	if l == nil {
		l = &line{queue: &w.queue, spare: &w.spare, chance: w.config.Rand.Float64, link: w.config.Link}
		l.ports = [2]*port{&w.ports[key[0]], &w.ports[key[1]]}
		if lost := w.config.Hooks.Lost; lost != nil {
			l.resent = func(segments int) { lost(key[0], key[1], segments) }
		}
		w.lines[key] = l
	}
	return l
}

// SetLink changes the link between two peers for what is sent from now on.
func (w *World) SetLink(a, b int, link Link) error {
	if err := link.validate(); err != nil {
		return fmt.Errorf("link between peers %d and %d: %w", a, b, err)
	}
	w.line(a, b).link = link
	return nil
}

// Cut breaks all streams between two peers, and none can be opened until Heal.
func (w *World) Cut(a, b int) { w.line(a, b).sever() }

// Heal ends a cut.
func (w *World) Heal(a, b int) { w.line(a, b).cut = false }

// Freeze holds back all that travels between two peers, without telling them,
// until Thaw.
func (w *World) Freeze(a, b int) { w.line(a, b).frozen = true }

// Thaw ends a freeze: what was held back arrives.
func (w *World) Thaw(a, b int) { w.line(a, b).thaw() }

// Counts are what has happened at a peer so far.
func (w *World) Counts(peer int) Counts { return w.peers[peer].counts }

// Digest is a hash of all peers' parameters: two worlds that took the same course
// have the same.
func (w *World) Digest() (digest [sha256.Size]byte) {
	hash := sha256.New()
	for _, p := range w.peers {
		if p.replica == nil {
			continue // never came
		}
		p.replica.Snapshot(p.snapshot)
		for _, x := range p.snapshot {
			var b [4]byte
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
			hash.Write(b[:])
		}
	}
	hash.Sum(digest[:0])
	return digest
}
