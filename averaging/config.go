package averaging

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// DefaultDeadline is that of Config.Deadline.
const DefaultDeadline = 30 * time.Second

const defaultRetryAfter = 5 * time.Second

// Config sets up an ADPSGD machine. Self and Rand are required; the zero values
// of the others are useful.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Pace says when the peer initiates exchanges.
	Pace Pace
	// MaxInbound is how many exchanges the peer serves at once, up to MaxOverlap; the more
	// at once, the smaller the weight of each. Default: 1.
	MaxInbound int
	// Deadline bounds an exchange from proposal to end. Default: DefaultDeadline.
	Deadline time.Duration
	// RetryAfter is how long a partner that failed is passed over. Each further failure
	// doubles that, up to four times RetryAfter, until an exchange succeeds or the partner
	// leaves the view. Others are asked before a partner that has kept an exchange waiting
	// for up to 8 times RetryAfter, and before a silent one for up to 64 times. Default: 5 s.
	RetryAfter time.Duration
	// Rand gives the random start of the partner cycle. The machine owns it.
	Rand *rand.Rand
}

// Pace says when a peer initiates exchanges. The zero value lets the measured link and
// step times decide.
type Pace struct {
	// Every is H, the number of local steps between two exchanges. 0 means: as many as keep
	// communication hidden behind computation, and its processor time below a twentieth of
	// the trainer's; at most 256.
	Every int
	// Burst, if above 1, makes the peer initiate so many exchanges one after the other, every
	// Burst·H steps, in the place of one every H: of 2^Burst peers whose bursts come at about the
	// same time all models are then nearly the mean.
	Burst int
	// Drift, if above 0, makes the peer initiate an exchange once its model has moved,
	// since the last exchange, farther than Drift times the length of a step (adaptive
	// communication, Ho et al., 2018), and at least once in 256 steps. Every is then
	// ignored.
	Drift float64
	// BytesPerHour, if above 0, bounds the bytes of the exchanges that the peer initiates,
	// both directions together: H is raised as far as needed, even beyond 256 and Every.
	BytesPerHour float64
	// Consensus adapts H to the distance between the models, to keep it small early and
	// late in the run (Kong et al., 2021). It needs events with Stride, Progress and
	// Distance.
	Consensus bool
	// Partial lets an exchange end after the time of H steps with the slices that the link has
	// taken until then, those that have waited and moved most first, and leaves the rest to
	// the next ones (partial exchanges as in Ako, Watcharapichat et al., 2016): on a slow
	// link, exchanges stay as frequent as Every says. No slice waits for more than 32
	// exchanges. If Every is 0, only processor time decides H. Drift has no H and excludes it.
	Partial bool
	// BySpeed sets H to Every times the peer's relative speed, between a quarter of Every
	// and four times Every (dynamic local updates), so that peers of unequal speed exchange
	// equally often. It needs events with Speed. If Every is 0, H follows the speed anyway.
	BySpeed bool
}

func (c Config) validate() error {
	var faults []error
	if c.Self == "" {
		faults = append(faults, errors.New("Self is empty"))
	}
	if c.Rand == nil {
		faults = append(faults, errors.New("Rand is nil: give a seeded source"))
	}
	faults = append(faults, c.Pace.faults()...)
	if c.MaxInbound < 0 || c.MaxInbound > MaxOverlap {
		faults = append(faults, fmt.Errorf("MaxInbound is %d: want 0 (one) to %d, beyond which exchanges at once diverge", c.MaxInbound, MaxOverlap))
	}
	if c.Deadline < 0 || c.RetryAfter < 0 {
		faults = append(faults, fmt.Errorf("Deadline %s and RetryAfter %s: neither may be negative", c.Deadline, c.RetryAfter))
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	c.MaxInbound = max(c.MaxInbound, 1)
	c.Deadline = cmp.Or(c.Deadline, DefaultDeadline)
	c.RetryAfter = cmp.Or(c.RetryAfter, defaultRetryAfter)
	return c
}

// burst is the number of exchanges in a burst.
func (p Pace) burst() int { return max(p.Burst, 1) }

// Validate reports all faults of the pace.
func (p Pace) Validate() error { return errors.Join(p.faults()...) }

func (p Pace) faults() (faults []error) {
	if p.Every < 0 || p.Burst < 0 || p.Burst > maxBurst {
		faults = append(faults, fmt.Errorf("Every is %d and Burst %d: neither may be negative, and a burst has at most %d exchanges", p.Every, p.Burst, maxBurst))
	}
	if p.Partial && p.Drift > 0 {
		faults = append(faults, errors.New("Partial with Drift: partial exchanges take the time of H steps, and Drift has no H; set Every"))
	}
	if !(p.Drift >= 0 && p.Drift <= math.MaxFloat64 && p.BytesPerHour >= 0 && p.BytesPerHour <= math.MaxFloat64) {
		faults = append(faults, fmt.Errorf("Drift is %v and BytesPerHour %v: want 0, which is none, or more", p.Drift, p.BytesPerHour))
	}
	return faults
}
