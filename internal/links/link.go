package links

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/topology"
)

// If the link decides on the codec, it gets the finest one that leaves the link free most
// of the time: an exchange may take as long as comfortSteps local steps. A link on which it
// would take longer gets the next coarser codec, which removes the most distance per time
// and per byte. The coarsest removes less than it gains in speed; it is for links on which
// exchanges would otherwise not end in time. For the first choice a budget counts as a link
// of that rate.
const (
	comfortSteps = 16
	// timelyShare is the share of its deadline that an exchange may be expected to take.
	timelyShare = 0.5
	// margin is how far beyond such a bound a link must be for its codec to change, so that
	// a link near the bound keeps its codec.
	margin = 1.25
	// failing is the share of retransmitted blocks from which on a finer code is worth its
	// bytes; it stays in use until the share is below mended.
	failing = 0.05
	mended  = failing / 2
	// rounds is how often an accepted exchange waits for a round trip, whatever it moves:
	// for the first difference, and for the partner to close.
	rounds = 2
	// linkSmoothing is the weight of a new sample.
	linkSmoothing = 0.3
)

// unmeasured is the choice for a link without a measurement.
const unmeasured = 1

// choices are the codecs by link, from fast to very slow.
func choices() [3]coding.ID {
	return [...]coding.ID{coding.Lattice8to4, coding.Lattice6to4, coding.Lattice4to1}
}

// Link is what was measured of the link to one partner.
type Link struct {
	Partner       topology.PeerID
	Rate          float64       // bytes a second, of the busier direction
	Round         time.Duration // from a question to its answer
	Retransmitted float64       // share of blocks sent again
	Exchanges     uint64        // measured

	bytes   float64       // of the busier direction of an exchange
	waits   time.Duration // of an exchange, whatever it moves
	speed   int           // index of choices for the time that an exchange takes
	choice  int           // the codec in use: from speed and finer
	finer   bool          // so many blocks fail that the next finer codec is worth its bytes
	decided bool          // the choice is by what was measured
}

// Sample is what one exchange over a link has shown.
type Sample struct {
	Bytes         uint64 // of the busier direction
	Took          time.Duration
	Agreed        time.Duration // of this, until the partner had accepted
	Round         time.Duration // from a question to its answer
	Retransmitted float64       // share of blocks that were sent again
}

// waits is for how long nothing moved. It is at most all but a sixteenth of the time, since
// a shorter rest says little about the rate, which is then a lower bound.
func (s Sample) waits() time.Duration { return min(s.Agreed+rounds*s.Round, s.Took-s.Took/16) }

// rate is the bytes a second that the link carried while it did not wait.
func (s Sample) rate() float64 { return float64(s.Bytes) / (s.Took - s.waits()).Seconds() }

// saw takes a sample.
func (k *Link) saw(s Sample) {
	s.Round, s.Agreed = max(s.Round, time.Microsecond), max(s.Agreed, time.Microsecond)
	if k.Exchanges == 0 {
		k.Rate, k.Round, k.waits, k.Retransmitted = s.rate(), s.Round, s.waits(), s.Retransmitted
		k.speed, k.choice = unmeasured, unmeasured
	}
	k.Rate = drawn(k.Rate, s.rate())
	k.Round = time.Duration(drawn(float64(k.Round), float64(s.Round)))
	k.waits = time.Duration(drawn(float64(k.waits), float64(s.waits())))
	k.Retransmitted += linkSmoothing * (s.Retransmitted - k.Retransmitted)
	k.bytes = float64(s.Bytes)
	k.Exchanges++
}

// The windows of one connection do not fill a link that is both fast and long
// (docs/design/008). Such a link gets several connections, if an exchange is long enough
// for that to matter.
const (
	// WideLanes is the number of lanes over such a link.
	WideLanes = 4
	// wideFlight is the least number of bytes in flight on a wide link, and wideBytes the
	// least number that an exchange over it moves in a direction.
	wideFlight = 256 << 10
	wideBytes  = 4 << 20
)

// wide tells whether several connections carry more over the link than one does.
func (k *Link) wide() bool {
	return k.Rate*k.Round.Seconds() >= wideFlight && k.bytes >= wideBytes
}

// drawn moves a mean of a positive quantity towards a sample, on a logarithmic scale: so a
// link that has become a hundred times slower shows as soon as one that has become a
// hundred times faster.
func drawn(mean, sample float64) float64 { return mean * math.Pow(sample/mean, linkSmoothing) }

// demand is what an exchange needs from a link.
type demand struct {
	values   int
	step     time.Duration // from one of the trainer's steps to the next
	deadline time.Duration // of an exchange
	budget   float64       // bytes a second, 0 if there is none
}

// Decision is the codec chosen for a link, and why.
type Decision struct {
	Link     Link
	Before   string        // the codec until now
	Expected time.Duration // what an exchange with the finest codec would take
	Step     time.Duration // of the trainer

	codec   coding.ID
	changed bool // the codec is new, or the first by measurement
}

// choose chooses the codec.
func (k *Link) choose(d demand) Decision {
	before, decided := *k, k.decided
	rate := k.Rate
	if d.budget > 0 {
		rate = min(rate, d.budget)
	}
	expected := k.expected(0, d.values, rate)
	late := func(choice int) float64 {
		return float64(k.expected(choice, d.values, k.Rate)) / (timelyShare * float64(d.deadline))
	}
	k.decide([...]float64{max(float64(expected)/float64(d.step)/comfortSteps, late(0)), late(1)})
	k.decided = true
	return Decision{
		Link: *k, Before: before.Codec(), Expected: expected, Step: d.step,
		codec: choices()[k.choice], changed: k.choice != before.choice || !decided,
	}
}

// Codec is the name of the link's choice.
func (k *Link) Codec() string {
	codec, _ := coding.ByID(choices()[k.choice])
	return codec.Name
}

// expected is what an exchange of so many values would take, coded as one of the choices,
// where the link carries so many bytes a second.
func (k *Link) expected(choice, values int, rate float64) time.Duration {
	codec, _ := coding.ByID(choices()[choice])
	bytes := float64(values) * float64(codec.Lattice.CodeBits()) / 8
	const longest = float64(math.MaxInt32) // seconds
	return k.waits + time.Duration(min(bytes/rate, longest)*float64(time.Second))
}

// decide makes the choice from the loads of the two finer codecs; a load is the demand on
// the link over what is allowed.
func (k *Link) decide(loads [2]float64) {
	for k.speed < len(loads) && loads[k.speed] > margin {
		k.speed++
	}
	for k.speed > 0 && loads[k.speed-1] < 1/margin {
		k.speed--
	}
	if k.finer {
		k.finer = k.Retransmitted > mended
	} else {
		k.finer = k.Retransmitted > failing
	}
	k.choice = k.speed
	if k.finer {
		k.choice = max(k.speed-1, 0)
	}
}
