package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/topology"
)

// World is a flock in virtual time.
type World struct {
	config Config
	queue  Queue
	peers  []*peer
	index  map[topology.PeerID]int
	lines  map[pair]*line
	spare  buffers
	over   bool

	ports    []port
	uplinks  map[int]*port       // of sites
	overlays []*topology.Overlay // of the members that hold each stage, as they are known

	offers []links.Offer // codecs of exchanges, by stage
	exact  links.Offer   // and of transfers

	gradients gradients
	made      uint64        // steps of all peers
	past      []StageCounts // of peers that have gone, by stage, and last of their rows
	ended     time.Duration // when the training did
}

// pair is two peers, the lower index first.
type pair [2]int

func pairOf(a, b int) pair { return pair{min(a, b), max(a, b)} }

// New makes a world. When it runs, every peer knows all others and begins to
// train. The error names all faults of the configuration.
func New(config Config) (*World, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("simulated world: %w", err)
	}
	w := &World{config: config.withDefaults(), index: make(map[topology.PeerID]int), lines: make(map[pair]*line), uplinks: make(map[int]*port)}
	terms := config.Pipeline.of(config.Terms)
	of := len(terms)
	w.exact, w.past, w.overlays = links.NewOffer(replica.ExactTerms().Plan), make([]StageCounts, of+1), make([]*topology.Overlay, of)
	for _, t := range terms {
		w.offers = append(w.offers, links.NewOffer(t.Plan))
	}
	w.ports = make([]port, len(config.Members))
	members := make([][]topology.Member, of)
	for i, m := range config.Members {
		w.index[m.ID] = i
		w.ports[i].bandwidth = config.Port
		if m.Later {
			w.peers = append(w.peers, &peer{world: w, index: i, id: m.ID, stage: m.Stage, gone: true, missed: true})
			continue
		}
		if !m.Stranger {
			members[m.Stage] = append(members[m.Stage], topology.Member{ID: m.ID, Role: m.Role, Unreachable: m.Unreachable, Place: m.Place, ServesOnly: collective.Of(m.Machine).Traits().ServesOnly})
		}
		w.peers = append(w.peers, newPeer(w, i, m, 1))
	}
	for stage := range of {
		if err := w.adopt(stage, members[stage]); err != nil {
			return nil, err
		}
	}
	for _, p := range w.peers {
		w.queue.After(0, p.begin)
	}
	return w, nil
}

// Now is the time since the beginning of the world.
func (w *World) Now() time.Duration { return w.queue.Now() }

// After calls do when d has passed.
func (w *World) After(d time.Duration, do func()) { w.queue.After(d, do) }

// Run executes all events that are due up to and at the given time, and
// returns how many those were.
func (w *World) Run(until time.Duration) (events int) { return w.queue.Run(until) }

// Fork makes this many goroutines compute gradients from now on; they have ended
// whenever a call of Run returns. Only the speed of the world changes, not its course.
func (w *World) Fork(workers int) { w.gradients.workers = min(max(workers, 1), MaxWorkers) }

// Pending is the number of future events. After Finish it falls to zero.
func (w *World) Pending() int { return w.queue.Len() }

// Finish ends the training: no peer begins another step, and each asks its
// neighbours for a last exchange.
func (w *World) Finish() {
	w.over, w.ended = true, w.queue.Now()
	for _, p := range w.peers {
		if p.gone {
			continue
		}
		p.trainer.Finish()
		if !p.arriving { // an arriving peer learns of the end when it becomes a member
			p.driver.tell(averaging.Event{Kind: averaging.RunOver})
		}
	}
}

// line returns the line between two peers; its first call makes it.
func (w *World) line(a, b int) *line {
	key := pairOf(a, b)
	l := w.lines[key]
	if l == nil {
		l = &line{queue: &w.queue, spare: &w.spare, chance: w.config.Rand.Float64, link: w.config.Sites.between(a, b, w.config.Link)}
		l.ports = [2]*port{&w.ports[key[0]], &w.ports[key[1]]}
		if sites := w.config.Sites; sites.apart(a, b) {
			l.uplinks = [2]*port{w.uplink(sites.Of[key[0]]), w.uplink(sites.Of[key[1]])}
		}
		if lost := w.config.Hooks.Lost; lost != nil {
			l.resent = func(segments int) { lost(key[0], key[1], segments) }
		}
		w.lines[key] = l
	}
	return l
}

// uplink is the connection of a site to the others.
func (w *World) uplink(site int) *port {
	if w.uplinks[site] == nil {
		w.uplinks[site] = &port{bandwidth: w.config.Sites.Across.Bandwidth}
	}
	return w.uplinks[site]
}

// SetLink changes the link between two peers for what is sent from now on; between sites delay and loss stay.
func (w *World) SetLink(a, b int, link Link) error {
	if err := link.validate(); err != nil {
		return fmt.Errorf("link between peers %d and %d: %w", a, b, err)
	}
	w.line(a, b).link = w.config.Sites.between(a, b, link)
	return nil
}

// Cut breaks all streams between two peers, and none can be opened until Heal.
func (w *World) Cut(a, b int) { w.line(a, b).sever() }

// Heal ends a cut.
func (w *World) Heal(a, b int) { w.line(a, b).cut = false }

// Counts are what has happened at a peer so far.
func (w *World) Counts(peer int) Counts { return w.peers[peer].counts }

// Digest is a hash of all peers' parameters: two worlds that took the same course
// have the same.
func (w *World) Digest() (digest [sha256.Size]byte) {
	hash := sha256.New()
	var values []float32 // scratch that all peers share, since a world can have thousands
	var bytes []byte
	for _, p := range w.peers {
		if p.replica == nil {
			continue // never came
		}
		values = slices.Grow(values[:0], p.replica.Len())[:p.replica.Len()]
		p.replica.Snapshot(values)
		bytes, _ = binary.Append(bytes[:0], binary.LittleEndian, values) // does not fail for numbers
		hash.Write(bytes)
	}
	hash.Sum(digest[:0])
	return digest
}

// adopt makes a view of members of a stage, whose roles stay as far as they can, and the overlay
// of it.
func (w *World) adopt(stage int, members []topology.Member) error {
	view, err := w.config.Topology.View(members)
	if err != nil {
		return fmt.Errorf("simulated world: %w", err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		return fmt.Errorf("simulated world: %w", err)
	}
	w.overlays[stage] = overlay
	return nil
}

// admit adds a member to the view.
func (w *World) admit(p *peer) error {
	return w.adopt(p.stage, append(w.overlays[p.stage].View().Members(), topology.Member{ID: p.id, Unreachable: p.unreachable, Place: p.place, ServesOnly: p.trainer.servesOnly}))
}

// dismiss takes a member out of the view.
func (w *World) dismiss(p *peer) error {
	return w.adopt(p.stage, slices.DeleteFunc(w.overlays[p.stage].View().Members(), func(m topology.Member) bool { return m.ID == p.id }))
}

// announce shows the view to all who are there and have not seen it.
func (w *World) announce() {
	for _, p := range w.peers {
		p.look()
	}
}

// Arrive adds a peer that came Later or has gone, in a new incarnation and with all
// parts of the Member made anew. It copies the model of a neighbour over their link,
// or of the next one if the neighbour goes meanwhile. Then it is a member, of which
// the others learn after News.Gossip, and begins to train. Without any neighbour it
// begins with the values that it has.
func (w *World) Arrive(peer int, m Member) error {
	old := w.peers[peer]
	switch {
	case !old.gone:
		return fmt.Errorf("peer %d arrives, and is there", peer)
	case m.ID != old.id:
		return fmt.Errorf("peer %d arrives as %q, and is %q", peer, m.ID, old.id)
	}
	if err := m.validate(peer); err != nil {
		return err
	}
	if m.Stage < 0 || m.Stage >= w.stages() {
		return fmt.Errorf("peer %d arrives for stage %d of %d", peer, m.Stage, w.stages())
	}
	p := newPeer(w, peer, m, old.incarnation+1)
	w.lose(old) // the others know that a returning peer was away
	p.counts = old.counts
	w.peers[peer] = p
	overlay := w.overlays[p.stage]
	if err := w.admit(p); err != nil {
		return err
	}
	servers := w.overlays[p.stage].Neighbours(p.id)
	w.overlays[p.stage] = overlay // the arriving peer is no member yet
	p.arriving = true
	(&joiner{peer: p, servers: servers}).ask()
	return nil
}

// Crash stops a peer like a power failure: from now on it does nothing, everything under
// way to and from it is lost, and the others are not informed. Its partners stall; after
// News.Crash the others know, and it is no member any more. For a peer that is not there
// Crash does nothing.
func (w *World) Crash(peer int) {
	p := w.peers[peer]
	if p.gone {
		return
	}
	p.vanish(func(s *Stream) {
		s.dead = true
		s.line.forget(s)
	})
	w.queue.After(w.config.News.Crash, func() { w.lose(p) })
}

// Leave ends a peer like a program that is asked to end: its streams break, which
// its partners see at once, and after News.Gossip all others know. Its steps since
// its last exchange are lost.
func (w *World) Leave(peer int) {
	p := w.peers[peer]
	if p.gone {
		return
	}
	p.vanish((*Stream).sever)
	w.queue.After(w.config.News.Gossip, func() { w.lose(p) })
}

// Here tells whether a peer is there: neither gone nor yet to come.
func (w *World) Here(peer int) bool { return !w.peers[peer].gone }

// lose informs the others, once, that a peer has gone.
func (w *World) lose(gone *peer) {
	if gone.missed || !w.overlays[gone.stage].View().Has(gone.id) {
		return
	}
	gone.missed = true
	if err := w.dismiss(gone); err != nil {
		return // a valid view stays valid with fewer members
	}
	for _, p := range w.peers {
		if p != gone && p.stage == gone.stage {
			p.loseTouch(gone)
		}
	}
	w.announce()
}

// SetPort bounds what a peer sends, and what it receives, to so many bytes a second over
// all its links together, from now on. 0 is no bound.
func (w *World) SetPort(peer int, bandwidth float64) error {
	if err := (Link{Bandwidth: bandwidth}).validate(); err != nil {
		return err
	}
	w.ports[peer].bandwidth = bandwidth
	return nil
}

// SetLinks is SetLink for all pairs of peers.
func (w *World) SetLinks(link Link) error {
	if err := link.validate(); err != nil {
		return err
	}
	w.config.Link = link
	for pair, l := range w.lines {
		l.link = w.config.Sites.between(pair[0], pair[1], link)
	}
	return nil
}
