package peer

import (
	"math"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// Where the codec is left to the link, the finest is used that leaves the link free
// most of the time: an exchange may take as long as comfortSteps local steps. A link on
// which it would take longer gets the next coarser codec, and one on which that still
// takes patientSteps the coarsest. A budget is a link too: as fast as it allows.
const (
	comfortSteps = 16
	patientSteps = 128
	// failing is the share of blocks that had to be sent again from which on a finer
	// code is worth its bytes.
	failing = 0.05
	// maxLinks bounds the partners whose links are remembered.
	maxLinks = 256
	// linkSmoothing is the weight of a new sample.
	linkSmoothing = 0.3
)

// unmeasured is the choice for a link of which nothing is known.
const unmeasured = 1

// choices are the codecs by link, from fast to very slow.
func choices() [3]quant.ID {
	return [...]quant.ID{quant.Lattice8to4, quant.Lattice6to4, quant.Lattice4to1}
}

// links remembers what the links to partners carry. The zero value is ready.
type links struct {
	mu    sync.Mutex
	known map[seam.PeerID]*link
}

// link is what was measured of the way to one partner.
type link struct {
	rate   float64 // bytes a second, of the busier direction
	round  time.Duration
	failed float64 // share of blocks sent again
	choice int     // index of choices
	seen   time.Time
}

// sample is what one exchange over a link has shown.
type sample struct {
	bytes  uint64 // of the busier direction
	took   time.Duration
	round  time.Duration // from a question to its answer
	failed float64       // share of blocks that were sent again
}

// saw takes a sample of the link to a partner.
func (l *links) saw(partner seam.PeerID, s sample, now time.Time) {
	if s.took <= 0 || s.bytes == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[seam.PeerID]*link)
	}
	k, ok := l.known[partner]
	if !ok {
		l.makeRoom()
		k = &link{rate: math.NaN(), choice: unmeasured}
		l.known[partner] = k
	}
	moving := max(s.took-s.round, s.took/8) // the first code waits for a round trip
	rate := float64(s.bytes) / moving.Seconds()
	if math.IsNaN(k.rate) {
		k.rate, k.round, k.failed = rate, s.round, s.failed
	}
	k.rate += linkSmoothing * (rate - k.rate)
	k.round += time.Duration(linkSmoothing * float64(s.round-k.round))
	k.failed += linkSmoothing * (s.failed - k.failed)
	k.seen = now
}

// makeRoom forgets the link that was not used for the longest time, if there are too
// many.
func (l *links) makeRoom() {
	if len(l.known) < maxLinks {
		return
	}
	var oldest seam.PeerID
	for id, k := range l.known {
		if o, ok := l.known[oldest]; !ok || k.seen.Before(o.seen) {
			oldest = id
		}
	}
	delete(l.known, oldest)
}

// choose returns the codec for the link to a partner, and whether it is another than
// before, for a model of so many values and
// a trainer whose step takes so long. An unmeasured link gets the middle one.
func (l *links) choose(partner seam.PeerID, values int, step time.Duration, budget float64) (id quant.ID, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.known[partner]
	if !ok {
		return choices()[unmeasured], false
	}
	before := k.choice
	k.choice = k.suits(values, step, budget)
	return choices()[k.choice], k.choice != before
}

// suits is the index of the choice for a link.
func (k *link) suits(values int, step time.Duration, budget float64) int {
	rate := k.rate
	if budget > 0 {
		rate = min(rate, budget)
	}
	finest, _ := quant.ByID(choices()[0])
	bytes := float64(values) * float64(finest.Lattice.CodeBits()) / 8
	took := k.round + time.Duration(min(bytes/rate, float64(math.MaxInt32))*float64(time.Second))
	choice := 0
	switch {
	case step <= 0:
		return unmeasured
	case took > patientSteps*step:
		choice = 2
	case took > comfortSteps*step:
		choice = 1
	}
	if choice > 0 && k.failed > failing {
		choice--
	}
	return choice
}

// chosen tells, for each codec, how many links it is the choice for now.
func (l *links) chosen() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[string]int)
	for _, k := range l.known {
		codec, _ := quant.ByID(choices()[k.choice])
		counts[codec.Name]++
	}
	return counts
}
