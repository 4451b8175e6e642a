package peer

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// State says how a newcomer copies the model from members, and how this peer gives
// it to newcomers.
type State struct {
	// Donors is from how many members a newcomer copies at once, 1 to MaxDonors.
	// Default: DefaultDonors.
	Donors int
	// Newcomers bounds those that this peer gives its model at once; a further one
	// is refused, asks others, and has its turn after a few seconds. However many there are, they are given slices of
	// one frozen copy, which takes as much memory as the model while it is in use.
	// Default: DefaultNewcomers. Negative: this peer gives its model to nobody.
	Newcomers int
	// Rate bounds the bytes that go to all newcomers in a second. Default: no bound
	// but that while an exchange is under way newcomers get at most half of the time.
	Rate float64
	// Checkpoint tells what lies behind Config.Params if they come from a checkpoint
	// of this run. Default: nothing, they are the run's initial values.
	Checkpoint Checkpoint
}

// Checkpoint is what lies behind saved parameters, as Stats told when they were
// saved. A peer that comes back with one trains on from it if the flock has moved on
// by no more than a tenth of its work since, and copies the flock's model otherwise.
type Checkpoint struct {
	// Steps are those behind the parameters, Stats.Age.
	Steps uint64
	// FlockSteps are those of all peers together, Stats.FlockSteps.
	FlockSteps uint64
	// Own are this peer's own, Stats.Steps. If they are given, as Save does, the peer
	// goes on from them, and the flock from what its members come back with: of the
	// others, Past and Inherited tell it until they are heard of.
	Own uint64
	// Incarnation is the life that saved the checkpoint: this one is a later one.
	Incarnation uint64
	// Past are the lives of other members, at most MaxPast, and Inherited what others
	// have done beside.
	Past      []Past
	Inherited uint64
	// Peers is the most peers that were members at once. Default: those of Past, and
	// this one.
	Peers uint64
	// Orders are what the operator has said, as signed, that still counts: a flock that
	// was paused comes back paused, and a schedule that was changed stays so.
	Orders [][]byte
}

// Bounds and defaults of State.
const (
	MaxDonors        = 8
	DefaultDonors    = 3
	MaxNewcomers     = 64
	DefaultNewcomers = 4
)

func (s State) validate() error {
	var faults []error
	if s.Donors < 0 || s.Donors > MaxDonors {
		faults = append(faults, fmt.Errorf("Donors is %d: want 1 to %d, or 0 for the default", s.Donors, MaxDonors))
	}
	if s.Newcomers > MaxNewcomers {
		faults = append(faults, fmt.Errorf("Newcomers is %d: want at most %d, or 0 for the default", s.Newcomers, MaxNewcomers))
	}
	if n := len(s.Checkpoint.Past); n > MaxPast {
		faults = append(faults, fmt.Errorf("Checkpoint.Past has %d lives: want at most %d", n, MaxPast))
	}
	if n := s.Checkpoint.Incarnation; n >= seam.MaxIncarnation {
		faults = append(faults, fmt.Errorf("Checkpoint.Incarnation is %d, which no peer reaches: it is damaged; begin without the checkpoint, or with one before it", n))
	}
	if !(s.Rate >= 0) || math.IsInf(s.Rate, 0) {
		faults = append(faults, fmt.Errorf("Rate is %v: want bytes a second, or 0 for no bound", s.Rate))
	}
	return errors.Join(faults...)
}

func (s State) withDefaults() State {
	if s.Donors == 0 {
		s.Donors = DefaultDonors
	}
	if s.Newcomers == 0 {
		s.Newcomers = DefaultNewcomers
	}
	return s
}

// StateStats is what a peer has to say of copies of the model.
type StateStats struct {
	// Donors is the number of members whose slices are in the model with which this
	// peer began; 0 if it began with values of its own. Slices is the number of
	// slices, and Took the time from the first request to the last.
	Donors, Slices int
	Took           time.Duration
	// Again counts slices that were asked for again, because their donor went, was
	// slow, or lied; Liars the donors that lied.
	Again uint64
	Liars int
	// Kept tells that this peer came back with a checkpoint and trained on from it.
	Kept bool
	// Alone tells that it came to a flock that had trained, found nobody to give it
	// the flock's model, and began with values of its own.
	Alone bool

	// Newcomers is the number of copies that this peer is giving now, Given counts
	// the slices that it has given so far.
	Newcomers int
	Given     uint64
}
