package stages

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Word is what a member tells all others of how far it is.
type Word struct {
	// In: it takes part in rounds. One that has just come does not know yet in which.
	In bool
	// Round is the first of which not all micro-batches of its rows are back, and Version that of its stage's parameters then.
	Round, Version uint64
}

// offset is what is to be added to a version of its stage's parameters to name the round: the same at all members of a stage.
func (w Word) offset() uint64 { return w.Round - w.Version }

// Rounds decides in which round a member is, and when that is over: when each member has back what it made in it. Members of a
// stage average their gradients then, and have parameters of the next version, by which they know the next round. One goroutine at
// a time uses it.
//
// Who comes has its parameters, and their version, from those of its stage, and which round that is from their words. It makes
// nothing in its first round, since others may not know of it yet. One whose stage has nobody else goes on in the round that is not
// over yet. In round 0 all who are there are waited for, later those who have said a word; one that keeps all waiting, while
// nothing moves, is left out until it says another. No round is over while a stage has nobody.
type Rounds struct {
	self     topology.PeerID
	stage    int
	of       int
	patience time.Duration
	others   map[topology.PeerID]*partaker

	begun   bool   // it has said something
	word    Word   // of this member
	version uint64 // of the parameters; 0 before they are known
	round   uint64
	entered bool // Enter has told this round
	over    bool // Over has told that it is

	progress uint64
	moved    time.Duration // when something last happened
}

// partaker is another member.
type partaker struct {
	stage   int
	word    Word // its last
	heard   bool
	left    bool // it is not waited for
	told    bool // it has heard last, of this member's words
	last    Word
	telling bool
	tries   int           // that failed
	again   time.Duration // when it may be told again
}

// NewRounds is for a member that has a stage, from 0, of so many. Who keeps others waiting for patience is left out.
func NewRounds(self topology.PeerID, stage, of int, patience time.Duration) *Rounds {
	return &Rounds{self: self, stage: stage, of: of, patience: patience, others: map[topology.PeerID]*partaker{}}
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
			r.others[id] = &partaker{stage: stage}
			r.moved = now
		}
	}
}

// Heard is a word of another member. It is false if that is not known yet: it may say it again.
func (r *Rounds) Heard(now time.Duration, from topology.PeerID, w Word) bool {
	o := r.others[from]
	if o == nil {
		return false
	}
	if !o.heard || o.word != w {
		o.heard, o.word, o.left, r.moved = true, w, false, now
	}
	return true
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
	makes = r.word.In || r.round == 0
	r.word = Word{In: true, Round: r.round, Version: r.version}
	return r.round, makes, true
}

// settle finds the round of the version.
func (r *Rounds) settle(now time.Duration) bool {
	var fellow *Word
	const nobody = ^uint64(0)
	unheard, first, least := false, true, nobody
	for id, o := range r.others {
		if o.left {
			continue
		}
		unheard = unheard || !o.heard
		if o.word.In {
			least = min(least, o.word.Round)
		}
		if o.stage != r.stage {
			continue
		}
		if first = first && r.self < id; o.word.In && (fellow == nil || o.word.Version > fellow.Version) {
			fellow = &o.word
		}
	}
	switch {
	case r.word.In && (fellow == nil || fellow.Version <= r.version):
		r.round = r.version + r.word.offset()
	case fellow != nil:
		r.round = r.version + fellow.offset()
	case (unheard || !r.whole()) && !r.quiet(now):
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

// initialVersion is that of the parameters with which a run begins.
const initialVersion = 1

// quiet tells whether nothing has happened for too long.
func (r *Rounds) quiet(now time.Duration) bool { return now-r.moved > r.patience }

// Rest says that this member has back what it made in the round, or has made nothing.
func (r *Rounds) Rest(now time.Duration) {
	if r.entered && r.word.Round == r.round {
		r.word.Round, r.word.Version, r.moved = r.round+1, r.version+1, now
	}
}

// Over tells, once, that the round is over.
func (r *Rounds) Over(now time.Duration) (round uint64, over bool) {
	if !r.entered || r.over || r.word.Round == r.round {
		return 0, false
	}
	waits := !r.whole()
	for _, o := range r.others {
		slow := !o.left && (o.word.In && o.word.Round <= r.round || !o.word.In && r.round == 0)
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

// Tell is whom to tell this member's word now; Told then says how that went.
func (r *Rounds) Tell(now time.Duration) (to []topology.PeerID, w Word) {
	for id, o := range r.others {
		if r.begun && !o.telling && now >= o.again && (!o.told || o.last != r.word) {
			o.telling, to = true, append(to, id)
		}
	}
	slices.Sort(to)
	return to, r.word
}

// Told says whether another member has heard a word, or why not does not matter.
func (r *Rounds) Told(now time.Duration, to topology.PeerID, w Word, heard bool) {
	o := r.others[to]
	if o == nil {
		return
	}
	if o.telling = false; heard {
		o.told, o.last, o.tries = true, w, 0
	} else {
		o.again = now + tellAgain<<min(o.tries, maxTellAgain)
		o.tries++
	}
}

// tellAgain is when a member that could not be told a word is told again, and maxTellAgain how often that time doubles.
const (
	tellAgain    = 50 * time.Millisecond
	maxTellAgain = 5
)
