// Package links keeps, for each partner, the timeouts, the codec, the number of lanes, and
// the quarantine of a partner that broke the protocol. All follow from the exchanges
// reported to it. Time is an argument, as the time since a start; nothing here logs, waits
// or starts anything, so it works the same in a network and in virtual time.
package links

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// MaxPartners bounds the partners that are remembered: those met last.
	MaxPartners = 256
	// maxQuarantined bounds the peers in quarantine.
	maxQuarantined = 1024
	// oneLaneFor is how long a partner gets one lane only after a further lane to it has
	// failed.
	oneLaneFor = 10 * time.Minute
)

// Config is what all links of a peer have in common.
type Config struct {
	Codecs   quant.Policy
	Layers   []coding.JointLayer
	Lanes    int           // of an exchange; 0: as the link asks for
	Stall    time.Duration // bounds every wait
	Deadline time.Duration // bounds an exchange
	Budget   float64       // bytes a second that exchanges may take; 0 if there is no bound
}

// Links is what a peer knows of the links to its partners. It is safe for concurrent use.
type Links struct {
	config Config
	offers map[coding.ID]Offer // by the codec chosen for a link, or under fixed

	mu          sync.Mutex // held for a look-up at most
	partners    *simplelru.LRU[topology.PeerID, *partner]
	quarantined *simplelru.LRU[topology.PeerID, period]
	first, most time.Duration // the periods of quarantine
	step        time.Duration // mean of the trainer's steps, one sample a proposal
}

// partner is what is known of one partner.
type partner struct {
	tempo   tempo
	link    Link
	oneLane time.Duration // until when exchanges use one lane
}

// New makes links without any partner.
func New(config Config) *Links {
	l := &Links{config: config, offers: offers(config), first: quarantineFirst, most: quarantineMost}
	l.partners, _ = simplelru.NewLRU[topology.PeerID, *partner](MaxPartners, nil) // fails of sizes that are not positive
	l.quarantined, _ = simplelru.NewLRU[topology.PeerID, period](maxQuarantined, nil)
	return l
}

// Timeout bounds the wait for a partner's next frame.
func (l *Links) Timeout(id topology.PeerID) time.Duration {
	return l.tempo(id).timeout(l.config.Stall)
}

// Answer bounds the wait for a partner's answer to a request. Answers are short, so the bound does
// not grow after a timeout, and a partner that does not answer is not waited for ever longer.
func (l *Links) Answer(id topology.PeerID) time.Duration {
	return min(l.tempo(id).base(), l.config.Stall)
}

// Opening bounds the wait for the first frame of a partner whose proposal was accepted.
func (l *Links) Opening(id topology.PeerID) time.Duration {
	return l.tempo(id).opening(l.config.Stall)
}

// Budget bounds an exchange with a partner.
func (l *Links) Budget(id topology.PeerID) time.Duration {
	return l.tempo(id).budget(l.config.Deadline)
}

func (l *Links) tempo(id topology.PeerID) tempo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.partners.Peek(id); ok {
		return k.tempo
	}
	return tempo{}
}

// Ended takes the waits of an exchange that has ended, at either side; err is why it broke
// off, if it did.
func (l *Links) Ended(id topology.PeerID, w Waits, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met(id).tempo.ended(w, err)
}

// met returns the entry of a partner, and makes it the newest. The lock is held.
func (l *Links) met(id topology.PeerID) *partner {
	k, ok := l.partners.Get(id)
	if !ok {
		k = &partner{}
		l.partners.Add(id, k)
	}
	return k
}

// Saw takes a sample of the link to a partner.
func (l *Links) Saw(id topology.PeerID, s Sample) {
	if s.Took <= 0 || s.Bytes == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.met(id)
	k.link.Partner = id
	k.link.saw(s)
}

// Lanes is the number of lanes to propose to a partner.
func (l *Links) Lanes(id topology.PeerID, now time.Duration) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.partners.Peek(id); ok && k.oneLane > now {
		return 1
	}
	if l.config.Lanes > 0 {
		return l.config.Lanes
	}
	if k, ok := l.partners.Peek(id); ok && k.link.wide() {
		return WideLanes
	}
	return 1
}

// LaneFailed notes that a further lane to a partner was opened but did not work.
func (l *Links) LaneFailed(id topology.PeerID, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met(id).oneLane = now + oneLaneFor
}

// Offer is the offer of codecs for an exchange with a partner, for a trainer whose step
// takes so long. If the link has a new decision, Offer returns it.
func (l *Links) Offer(id topology.PeerID, step time.Duration) (Offer, *Decision) {
	if o, ok := l.offers[fixed]; ok {
		return o, nil
	}
	d := l.decide(id, step)
	if d.changed {
		return l.offers[d.codec], &d
	}
	return l.offers[d.codec], nil
}

// decide chooses the codec for the link to a partner. An unmeasured link gets the
// middle one.
func (l *Links) decide(id topology.PeerID, step time.Duration) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step == 0 {
		l.step = max(step, 0)
	} else if step > 0 {
		l.step = time.Duration(drawn(float64(l.step), float64(step)))
	}
	k, ok := l.partners.Peek(id)
	if !ok || k.link.Exchanges == 0 || l.step <= 0 {
		return Decision{codec: choices()[unmeasured]}
	}
	return k.link.choose(demand{values: values(l.config.Layers), step: l.step, deadline: l.config.Deadline, budget: l.config.Budget})
}

// OneWay returns an error if a codec cannot be used to send gradients, because it needs a model near
// the sender's at the receiver.
func (l *Links) OneWay() error {
	for _, o := range l.offers {
		for _, id := range o.IDs {
			if codec, _ := coding.ByID(id); codec.Lattice != (coding.Lattice{}) {
				return fmt.Errorf("Exchange.Codec: %s needs models that are near each other, and the algorithm sends gradients: want raw, bf16, fp16 or int8", codec.Name)
			}
		}
	}
	return nil
}

// Rounds tells whether a codec rounds.
func (l *Links) Rounds() bool {
	for _, o := range l.offers {
		if o.Rounds() {
			return true
		}
	}
	return false
}

// Measured are the links that exchanges of this peer have measured, those used last
// first.
func (l *Links) Measured() (measured []Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.partners.Values() // the newest last
	for i := range known {
		if k := known[len(known)-1-i]; k.link.Exchanges > 0 {
			measured = append(measured, k.link)
		}
	}
	return measured
}

// Quarantine puts a peer that broke the protocol into quarantine now, and returns the period.
func (l *Links) Quarantine(id topology.PeerID, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, _ := l.quarantined.Peek(id)
	s := old.next(now, l.first, l.most)
	if l.quarantined.Len() == maxQuarantined && !l.quarantined.Contains(id) {
		l.pardon(now)
	}
	l.quarantined.Add(id, s)
	return s.length
}

// pardon makes room for one more peer in quarantine. It drops a period that no longer counts,
// or else one of the shortest, so that made-up identities cannot push a long period out; among
// these, that of the peer that has been inactive for the longest time. The lock is held.
func (l *Links) pardon(now time.Duration) {
	var out topology.PeerID
	least := time.Duration(math.MaxInt64)
	for _, id := range l.quarantined.Keys() { // the oldest first
		s, _ := l.quarantined.Peek(id)
		if left := s.weight(now); left < least {
			out, least = id, left
		}
	}
	l.quarantined.Remove(out)
}

// Quarantined is how much longer a peer stays in quarantine; 0 if it is not.
func (l *Links) Quarantined(id topology.PeerID, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, _ := l.quarantined.Get(id)
	return max(s.until-now, 0)
}

// InQuarantine is the number of peers in quarantine.
func (l *Links) InQuarantine(now time.Duration) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.quarantined.Values() {
		if s.until > now {
			n++
		}
	}
	return n
}

// SetPeriods sets other periods of quarantine; zero leaves one as it is. Only tests over
// real sockets need it: with shorter periods a flock would readmit a liar too often.
func (l *Links) SetPeriods(first, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.most = cmp.Or(first, l.first), cmp.Or(most, l.most)
}
