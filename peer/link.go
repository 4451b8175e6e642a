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
// which it would take longer gets the next coarser codec, which removes the most distance
// in a time and for a byte. The coarsest removes less than it gains in speed, and is for
// links on which exchanges would not end in time otherwise. A budget is a link too for
// the first choice: as fast as it allows.
const (
	comfortSteps = 16
	// timelyShare is the share of its deadline that an exchange may be expected to take.
	timelyShare = 0.5
	// margin is how far beyond such a bound a link must be for its codec to change:
	// one that is measured now on this and now on that side of it keeps what it has.
	margin = 1.25
	// failing is the share of blocks that had to be sent again from which on a finer
	// code is worth its bytes, and until it is below mended.
	failing = 0.05
	mended  = failing / 2
	// rounds is how often an exchange waits for the other side once that has accepted it,
	// whatever it moves: for the first difference, and for the partner to close.
	rounds = 2
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
	step  time.Duration // mean of the trainer's steps, one sample a proposal
}

// link is what was measured of the way to one partner.
type link struct {
	rate      float64 // bytes a second, of the busier direction
	round     time.Duration
	waits     time.Duration // of an exchange, whatever it moves
	failed    float64       // share of blocks sent again
	exchanges uint64        // measured
	seen      time.Time

	speed   int  // index of choices for the time that an exchange takes
	finer   bool // blocks fail so often that the next finer one is worth it
	choice  int  // of the two
	decided bool // the choice is by what was measured
}

// sample is what one exchange over a link has shown.
type sample struct {
	bytes  uint64 // of the busier direction
	took   time.Duration
	agreed time.Duration // of this, until the partner had accepted
	round  time.Duration // from a question to its answer
	failed float64       // share of blocks that were sent again
}

// waits is for how long nothing moved. Where that is nearly all, the rest says little,
// and a sixteenth of the time is taken for it: the rate is then a lower bound.
func (s sample) waits() time.Duration { return min(s.agreed+rounds*s.round, s.took-s.took/16) }

// rate is the bytes a second that the link carried while it did not wait.
func (s sample) rate() float64 { return float64(s.bytes) / (s.took - s.waits()).Seconds() }

// saw takes a sample of the link to a partner.
func (l *links) saw(partner seam.PeerID, s sample, now time.Time) {
	if s.took <= 0 || s.bytes == 0 {
		return
	}
	s.round, s.agreed = max(s.round, time.Microsecond), max(s.agreed, time.Microsecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[seam.PeerID]*link)
	}
	k, ok := l.known[partner]
	if !ok {
		l.makeRoom()
		k = &link{rate: s.rate(), round: s.round, waits: s.waits(), failed: s.failed, speed: unmeasured, choice: unmeasured}
		l.known[partner] = k
	}
	k.rate = drawn(k.rate, s.rate())
	k.round = time.Duration(drawn(float64(k.round), float64(s.round)))
	k.waits = time.Duration(drawn(float64(k.waits), float64(s.waits())))
	k.failed += linkSmoothing * (s.failed - k.failed)
	k.seen = now
	k.exchanges++
}

// drawn is a mean of a positive quantity, drawn towards a sample. It counts in factors:
// a link that has become a hundred times slower shows as soon as one that has become
// a hundred times faster.
func drawn(mean, sample float64) float64 { return mean * math.Pow(sample/mean, linkSmoothing) }

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

// demand is what an exchange asks of a link.
type demand struct {
	values   int
	step     time.Duration // from one of the trainer's steps to the next
	deadline time.Duration // of an exchange
	budget   float64       // bytes a second, 0 if there is none
}

// decision is the codec for a link, and why.
type decision struct {
	codec, before quant.ID
	changed       bool          // it is another than before, or the first that was measured
	expected      time.Duration // what an exchange with the finest codec would take
	step          time.Duration // of the trainer
	link          link
}

// choose decides on the codec for the link to a partner. An unmeasured link gets the
// middle one.
func (l *links) choose(partner seam.PeerID, d demand) decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step == 0 {
		l.step = max(d.step, 0)
	} else if d.step > 0 {
		l.step = time.Duration(drawn(float64(l.step), float64(d.step)))
	}
	k, ok := l.known[partner]
	if !ok || l.step <= 0 {
		return decision{codec: choices()[unmeasured], before: choices()[unmeasured]}
	}
	before := k.choice
	rate := k.rate
	if d.budget > 0 {
		rate = min(rate, d.budget)
	}
	expected := k.expected(0, d.values, rate)
	late := func(choice int) float64 {
		return float64(k.expected(choice, d.values, k.rate)) / (timelyShare * float64(d.deadline))
	}
	k.decide([...]float64{max(float64(expected)/float64(l.step)/comfortSteps, late(0)), late(1)})
	changed := k.choice != before || !k.decided
	k.decided = true
	return decision{codec: choices()[k.choice], before: choices()[before], changed: changed, expected: expected, step: l.step, link: *k}
}

// expected is what an exchange of so many values would take, coded as one of the choices,
// where the link carries so many bytes a second.
func (k *link) expected(choice, values int, rate float64) time.Duration {
	codec, _ := quant.ByID(choices()[choice])
	bytes := float64(values) * float64(codec.Lattice.CodeBits()) / 8
	const longest = float64(math.MaxInt32) // seconds
	return k.waits + time.Duration(min(bytes/rate, longest)*float64(time.Second))
}

// decide makes the choice where what each but the coarsest asks of the link is so many
// times what it may.
func (k *link) decide(loads [2]float64) {
	for k.speed < len(loads) && loads[k.speed] > margin {
		k.speed++
	}
	for k.speed > 0 && loads[k.speed-1] < 1/margin {
		k.speed--
	}
	if k.finer {
		k.finer = k.failed > mended
	} else {
		k.finer = k.failed > failing
	}
	k.choice = k.speed
	if k.finer {
		k.choice = max(k.speed-1, 0)
	}
}
