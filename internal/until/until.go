// Package until decides when a model is good enough to end its run, by what members tell of their models on held-out
// data, and by time. Each member judges the median of what they told last. One that finds the aim reached says so in the
// same signed message, and never takes it back; the run is over where more than half of those that train have said so.
// So all that hear each other end, for the same reason, and a member that lies has one vote and one place among the
// sorted figures (docs/design/048).
//
// Judge is pure and not safe for concurrent use: time is an argument, and its caller carries what members tell.
package until

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Reason is why a run ends. The numbers are on the wire.
type Reason uint8

// The reasons. GoesOn is none.
const (
	GoesOn Reason = iota
	Accuracy
	Loss
	Plateau
	Deadline
	reasons
)

// String is the name of the reason, empty for GoesOn and for those of later releases.
func (r Reason) String() string {
	return [math.MaxUint8 + 1]string{Accuracy: "accuracy", Loss: "loss", Plateau: "plateau", Deadline: "deadline"}[r]
}

// Aim is what ends a run, whichever is reached first; a zero field ends none.
type Aim struct {
	Accuracy float64       // the median accuracy is at least this
	Loss     float64       // the median loss is at most this
	Plateau  int           // so many evaluations in a row have brought neither median forward
	Deadline time.Duration // the run has trained for so long
}

// Said is what a member says of its model on the data that it holds out.
type Said struct {
	// Accuracy is 0 to 1, Loss finite: 0 and the largest number before the first evaluation.
	Accuracy, Loss float64
	// Trained is for how long the run has trained, as the member sees it.
	Trained time.Duration
	// Wants is why the member wants the run to end.
	Wants Reason
	// Over tells that the run is over for the member: it wants nothing more.
	Over bool
	// Heard is when it was heard, by the clock of who heard it; zero if nothing was.
	Heard time.Time
}

// nothing is what counts for a member that has said nothing.
var nothing = Said{Loss: math.MaxFloat64}

// Fields writes or reads what is said; docs/WIRE.md has the bytes.
func (s *Said) Fields(c *wire.Coder) {
	trained := uint64(max(s.Trained.Milliseconds(), 0))
	if c.Uint64(&trained); trained > math.MaxInt64/uint64(time.Millisecond) {
		c.Fault("%d ms of training", trained)
	}
	s.Trained = time.Duration(trained) * time.Millisecond
	c.Uint8((*uint8)(&s.Wants))
	c.Bool(&s.Over)
	if c.Float(&s.Accuracy); !(s.Accuracy >= 0 && s.Accuracy <= 1) {
		c.Fault("an accuracy of %v", s.Accuracy)
	}
	c.Float(&s.Loss)
}

const (
	// leastGain is by how much an accuracy must grow, or by which share a loss must fall, to have come forward: with
	// some thousand samples held out, less is chance.
	leastGain = 0.001
	// maxMembers bounds the members whose words are kept.
	maxMembers = 1024
)

// Judge judges what the members of a run tell, for one of them.
type Judge struct {
	self    topology.PeerID
	aim     Aim
	own     Said
	top     Said      // the best that this member has had
	began   time.Time // when this member began to train
	said    map[topology.PeerID]Said
	members []topology.PeerID // that train
	ended   Reason

	fresh bool // Plateau has not counted this member's last evaluation yet
	best  Said // the best medians
	stuck int  // evaluations without a better one
}

// New makes a judge for a member that begins to train now.
func New(self topology.PeerID, aim Aim, now time.Time) *Judge {
	return &Judge{self: self, aim: aim, own: nothing, top: Said{Accuracy: -1, Loss: math.Inf(1)}, began: now, said: make(map[topology.PeerID]Said), best: nothing}
}

// Evaluated takes this member's figures. NaN is as bad as can be. It tells whether they are better than all before: of a
// higher accuracy, or, if the aim has a loss and no accuracy, of a lower loss.
func (j *Judge) Evaluated(accuracy, loss float64) (best bool) {
	j.own.Accuracy, j.own.Loss, j.fresh = 0, math.MaxFloat64, true
	if accuracy > 0 {
		j.own.Accuracy = min(accuracy, 1)
	}
	if math.Abs(loss) <= math.MaxFloat64 {
		j.own.Loss = loss
	}
	best = j.own.Accuracy > j.top.Accuracy
	if j.own.Accuracy == j.top.Accuracy || j.aim.Loss > 0 && j.aim.Accuracy == 0 {
		best = j.own.Loss < j.top.Loss
	}
	if best {
		j.top = j.own
	}
	return best
}

// Says is what this member should tell all now. It counts here, as at the others, once it is told: see Heard.
func (j *Judge) Says(now time.Time) Said {
	j.own.Trained, j.own.Heard = max(now.Sub(j.start()), 0), now
	return j.own
}

// Heard takes what a member, this one included, has said last.
func (j *Judge) Heard(member topology.PeerID, said Said) {
	if _, known := j.said[member]; known || len(j.said) < maxMembers {
		j.said[member] = said
	}
}

// Look returns why the run is over for this member. Members are those that train, this one included. Over tells that the
// run is over here in any case: then this member wants nothing more, and whoever leaves keeps its vote.
func (j *Judge) Look(now time.Time, members []topology.PeerID, over bool) Reason {
	goesOn := j.ended == GoesOn && !over
	j.own.Over = over
	if goesOn || j.members == nil {
		j.members = append(j.members[:0], members...)
	}
	if goesOn {
		maps.DeleteFunc(j.said, func(id topology.PeerID, _ Said) bool { return !slices.Contains(members, id) })
		if j.own.Wants == GoesOn {
			j.own.Wants = j.reached()
		}
		if j.aim.Deadline > 0 && now.Sub(j.start()) >= j.aim.Deadline {
			j.ended = Deadline
		}
	}
	if why := j.vote(); why != GoesOn {
		j.ended = why
	}
	return j.ended
}

// Agreed tells whether all of these members have said that the run is over for them, so that no reason can change.
func (j *Judge) Agreed(members []topology.PeerID) bool {
	return !slices.ContainsFunc(members, func(id topology.PeerID) bool { return !j.said[id].Over })
}

// reached is the aim that the medians reach. Of an even number of members the worse of the two in the middle counts, so
// that neither of two members ends the run alone.
func (j *Judge) reached() Reason {
	var accuracies, losses []float64
	for _, id := range j.members {
		s, told := j.said[id]
		if !told {
			s = nothing
		}
		accuracies, losses = append(accuracies, s.Accuracy), append(losses, s.Loss)
	}
	slices.Sort(accuracies)
	slices.Sort(losses)
	accuracy, loss := accuracies[(len(accuracies)-1)/2], losses[len(losses)/2]
	if j.fresh && (loss < math.MaxFloat64 || accuracy > 0) {
		j.fresh = false
		j.stuck++
		if accuracy >= j.best.Accuracy+leastGain {
			j.best.Accuracy, j.stuck = accuracy, 0
		}
		if loss < j.best.Loss-leastGain*math.Abs(j.best.Loss) {
			j.best.Loss, j.stuck = loss, 0
		}
	}
	switch {
	case j.aim.Accuracy > 0 && accuracy >= j.aim.Accuracy:
		return Accuracy
	case j.aim.Loss > 0 && loss <= j.aim.Loss:
		return Loss
	case j.aim.Plateau > 0 && j.stuck >= j.aim.Plateau:
		return Plateau
	}
	return GoesOn
}

// vote is the most frequent reason if more than half of the members want the run to end.
func (j *Judge) vote() (most Reason) {
	var votes [reasons]int
	all := 0
	for _, s := range j.said {
		if s.Wants != GoesOn && s.Wants < reasons {
			votes[s.Wants]++
			all++
		}
	}
	for r, n := range votes {
		if n > votes[most] && 2*all > len(j.members) {
			most = Reason(r)
		}
	}
	return most
}

// start is when the run began: when this member did, or, if it came late, the median of what the others tell.
func (j *Judge) start() time.Time {
	began := []time.Time{j.began}
	for id, s := range j.said {
		if id != j.self {
			began = append(began, s.Heard.Add(-s.Trained))
		}
	}
	slices.SortFunc(began, time.Time.Compare)
	if first := began[len(began)/2]; first.Before(j.began) {
		return first
	}
	return j.began
}
