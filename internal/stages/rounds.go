package stages

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Report is what a member sends to all others: how far it is.
type Report struct {
	// In: it takes part in rounds. One that has just come does not know yet in which.
	In bool
	// Round is the first of which not all micro-batches of its rows are back, and Version that of its stage's parameters then.
	Round, Version uint64
}

// offset is what is to be added to a version of its stage's parameters to name the round: the same at all members of a stage.
func (w Report) offset() uint64 { return w.Round - w.Version }

// Rounds decides in which round a member is, and when that is over: when each member has back what it made in it. Members of a
// stage average their gradients then, and have parameters of the next version, by which they know the next round. One goroutine at
// a time uses it.
//
// Who comes has its parameters, and their version, from those of its stage, and which round that is from their reports. It makes
// nothing in its first round, since others may not know of it yet. One whose stage has nobody else goes on in the round that is not
// over yet. In round 0 all who are there are waited for, later those who have reported; one that keeps all waiting, while
// nothing moves, is left out until it reports again. No round is over while a stage has nobody.
type Rounds struct {
	self     topology.PeerID
	stage    int
	of       int
	patience time.Duration
	others   map[topology.PeerID]*participant

	begun   bool   // it has something to report
	report  Report // of this member
	version uint64 // of the parameters; 0 before they are known
	round   uint64
	entered bool // Enter has told this round
	over    bool // Over has told that it is

	progress uint64
	moved    time.Duration // when something last happened
}

// participant is another member.
type participant struct {
	stage    int
	report   Report // its last
	reported bool
	left     bool // it is not waited for
	sent     bool // it has received last, of this member's reports
	last     Report
	sending  bool
	tries    int           // that failed
	again    time.Duration // when it may be sent one again
}

// NewRounds is for a member that has a stage, from 0, of so many. Who keeps others waiting for patience is left out.
func NewRounds(self topology.PeerID, stage, of int, patience time.Duration) *Rounds {
	return &Rounds{self: self, stage: stage, of: of, patience: patience, others: map[topology.PeerID]*participant{}}
}

// Members says which others train now, and which stage each has.
func (r *Rounds) Members(now time.Duration, stageOf map[topology.PeerID]int) {
	for id, o := range r.others {
		if stage, here := stageOf[id]; !here || stage != o.stage {
			delete(r.others, id)
			r.moved = now
		}
	}
	for id, stage := range stageOf {
		if r.others[id] == nil {
			r.others[id] = &participant{stage: stage}
			r.moved = now
		}
	}
}

// Received takes the report of another member. It is false if that is not known yet: it may send it again.
func (r *Rounds) Received(now time.Duration, from topology.PeerID, report Report) bool {
	o := r.others[from]
	if o == nil {
		return false
	}
	if !o.reported || r.waits(o.report) && !r.waits(report) {
		r.moved = now // not by any other report: who sends many could keep all waiting for ever
	}
	if !o.reported || o.report != report {
		o.reported, o.report, o.left = true, report, false
	}
	return true
}

// waits tells whether one with such a report is waited for.
func (r *Rounds) waits(report Report) bool {
	return report.In && report.Round <= r.round || !report.In && r.round == 0
}

// Begin is for a gradient at parameters of a version, 0 if that is not known yet: Enter then tells the round, once that is known. It is
// false for the version of before, whose round goes on.
func (r *Rounds) Begin(now time.Duration, version uint64) (another bool) {
	r.begun = true
	if version == r.version {
		return false
	}
	r.version, r.entered, r.over, r.moved = version, false, false, now
	return true
}

// Enter tells, once, which round it is now, and whether this member makes micro-batches in it.
func (r *Rounds) Enter(now time.Duration) (round uint64, makes, entered bool) {
	if r.version == 0 || r.entered || !r.settle(now) {
		return 0, false, false
	}
	r.entered, r.moved = true, now
	makes = r.report.In || r.round == 0
	r.report = Report{In: true, Round: r.round, Version: r.version}
	return r.round, makes, true
}

// settle finds the round of the version.
func (r *Rounds) settle(now time.Duration) bool {
	const nobody = ^uint64(0)
	var fellows []Report
	var rounds []uint64
	silent, first, least := false, true, nobody
	if r.report.In {
		rounds, fellows = append(rounds, r.report.Round), append(fellows, Report{true, r.version + r.report.offset(), r.version})
	}
	for id, o := range r.others {
		if o.left {
			continue
		}
		silent = silent || !o.reported
		if first = first && (o.stage != r.stage || r.self < id); !o.report.In {
			continue
		}
		if rounds = append(rounds, o.report.Round); o.stage == r.stage {
			fellows = append(fellows, o.report)
		}
	}
	slices.Sort(rounds)
	middle := append(rounds, nobody)[len(rounds)/2]
	for _, round := range slices.Backward(rounds) {
		if middle-round <= maxBehind || round > middle {
			least = round
		}
	}
	switch {
	case len(fellows) > 0:
		r.round = r.version + believed(fellows, r.version-middle)
	case (silent || !r.whole()) && !r.quiet(now):
		return false // somebody may know better
	case r.version == initialVersion && (least <= 1 || least == nobody): // those who rest in round 0 say 1, and wait
		r.round = 0
	case !first && !r.quiet(now):
		return false // one of the stage decides
	case least != nobody:
		r.round = least
	}
	return true
}

// maxBehind is by how much who waits is behind the middle of those who tell a round; what is said to be further behind is not believed.
const maxBehind = 1

// believed is the offset that most of a stage tell. Of those that as many tell, it is the one whose round is nearest to the middle of what all
// tell, which is so far below the version, and then that of the newest parameters: one that lies moves nobody where others know better.
func believed(fellows []Report, behind uint64) uint64 {
	tell := map[uint64]int{}
	for _, f := range fellows {
		tell[f.offset()]++
	}
	far := func(f Report) uint64 { return min(f.offset()+behind, -f.offset()-behind) }
	return slices.MaxFunc(fellows, func(a, b Report) int {
		return cmp.Or(cmp.Compare(tell[a.offset()], tell[b.offset()]), cmp.Compare(far(b), far(a)), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Round, b.Round))
	}).offset()
}

// initialVersion is that of the parameters with which a run begins.
const initialVersion = 1

// quiet tells whether nothing has happened for too long.
func (r *Rounds) quiet(now time.Duration) bool { return now-r.moved > r.patience }

// Rest says that this member has back what it made in the round, or has made nothing.
func (r *Rounds) Rest(now time.Duration) {
	if r.entered && r.report.Round == r.round {
		r.report.Round, r.report.Version, r.moved = r.round+1, r.version+1, now
	}
}

// Over tells, once, that the round is over.
func (r *Rounds) Over(now time.Duration) (round uint64, over bool) {
	if !r.entered || r.over || r.report.Round == r.round {
		return 0, false
	}
	waits := !r.whole()
	for _, o := range r.others {
		slow := !o.left && r.waits(o.report)
		if slow && r.quiet(now) {
			o.left, slow = true, false
		}
		waits = waits || slow
	}
	r.over = !waits
	return r.round, r.over
}

// Tick says what the counts of micro-batches come to at this member, which move while something does. A stage without members
// moves too: what is in the others waits for it.
func (r *Rounds) Tick(now time.Duration, progress uint64) {
	if progress != r.progress || !r.whole() {
		r.progress, r.moved = progress, now
	}
}

// whole tells whether all stages have members.
func (r *Rounds) whole() bool {
	held := map[int]bool{r.stage: true}
	for _, o := range r.others {
		held[o.stage] = true
	}
	return len(held) == r.of
}

// ToSend is to whom this member's report goes now; Sent then says how that went.
func (r *Rounds) ToSend(now time.Duration) (to []topology.PeerID, report Report) {
	for id, o := range r.others {
		if r.begun && !o.sending && now >= o.again && (!o.sent || o.last != r.report) {
			o.sending, to = true, append(to, id)
		}
	}
	slices.Sort(to)
	return to, r.report
}

// Sent says whether another member has received a report.
func (r *Rounds) Sent(now time.Duration, to topology.PeerID, report Report, received bool) {
	o := r.others[to]
	if o == nil {
		return
	}
	if o.sending = false; received {
		o.sent, o.last, o.tries = true, report, 0
	} else {
		o.again = now + sendAgain<<min(o.tries, maxSendAgain)
		o.tries++
	}
}

// sendAgain is when a report that has not arrived is sent again, and maxSendAgain how often that time doubles.
const (
	sendAgain    = 50 * time.Millisecond
	maxSendAgain = 5
)
