package collective

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Kinds of words by which those who sum around a ring keep together. What is told is told
// again until it is answered, so any of them may be lost. Other kinds are the machines' own.
const (
	// WordStatus tells the coordinator where the speaker is: Round its last attempt, Value
	// its Stage in it. View is the machine's own business.
	WordStatus uint8 = 1
	// WordHeard answers what calls for nothing else.
	WordHeard uint8 = iota + 3
	// WordPlace gives a member of the ring its place for the attempt Round.
	WordPlace
	// WordRegroup breaks the attempt Round off.
	WordRegroup
	// WordCommit says that all have the sum of the attempt Round. Value is the machine's
	// own business.
	WordCommit
	// WordBroken tells the coordinator that the attempt Round has broken off, with the
	// member whose mark is View.
	WordBroken
	// WordAgain asks for what was refused in the attempt Round since it came early.
	WordAgain
)

const (
	// maxCharges is after how many attempts a member is left out that others cannot send to.
	maxCharges = 3
	// barredAttempts is for how many attempts.
	barredAttempts = 8
	// attemptBits keep the attempts of two coordinators apart.
	attemptBits = 8
	// maxAttempt bounds what is believed of attempts that others have been in.
	maxAttempt = 1 << 62
)

// Summer is a machine that sums.
type Summer interface {
	// Coordinator is who gives the places; "" is nobody.
	Coordinator() topology.PeerID
	// Ready tells whether this peer may take a place in an attempt.
	Ready() bool
	// Load asks for this peer's part of the sum to be put into Sum.
	Load()
	// Report tells the coordinator by a WordStatus where this peer is.
	Report()
	// Commit makes use of the sum of the last attempt, which all have.
	Commit(value float64)
	// Unable is called when this peer coordinates, and cannot send what it has summed.
	Unable()
}

// Summing is a peer's part of the sums of a flock: in the ring, and, while it coordinates,
// for the others. The coordinator gives places to those who are Present, and lets all make
// use of the sum once all have it. Whoever dies, or cannot be sent to, breaks the attempt
// off: then the coordinator begins another.
type Summing struct {
	Ringer
	Summer
	members      *Members
	Participants []Participant
	Running      bool            // an attempt is, of this coordinator
	Opened       time.Duration   // since when it waits for others to be Present
	placedBy     topology.PeerID // the coordinator of the last attempt joined
	counter      uint64          // of attempts
	unable       int             // attempts that failed since its own sum cannot be sent
	committed    uint64          // the last attempt whose sum all had
	value        float64         // what the coordinator said of that
}

// Participant is a member as its coordinator knows it.
type Participant struct {
	ID      topology.PeerID
	Where   Attendance
	Last    Word // its status outside of attempts; of no kind if that is not known
	heard   time.Duration
	charges int    // attempts that failed since it could not be sent to
	barred  uint64 // up to this attempt it is left out for that
}

// Attendance is where a coordinator knows a participant to be.
type Attendance uint8

const (
	Absent  Attendance = iota
	Present            // ready for a place
	Placed             // in the ring
	Holding            // has the sum
)

func (p *Participant) inRing() bool { return p.Where == Placed || p.Where == Holding }

// NewSumming makes the part of a machine.
func NewSumming(flights *Flights, members *Members, machine Summer) *Summing {
	s := &Summing{Ringer: Ringer{Flights: flights}, Summer: machine, members: members}
	s.owner = s
	return s
}

// Restart forgets the participants: another coordinates from now on.
func (s *Summing) Restart() {
	if s.Stage != Idle {
		s.Leave()
	}
	s.Participants, s.Running, s.Opened = nil, false, s.Now
}

// Leads tells whether this peer coordinates.
func (s *Summing) Leads() bool { return s.Coordinator() == s.Self }

// Heard handles a word of those who sum, other than a status.
func (s *Summing) Heard(from topology.PeerID, w Word) {
	switch {
	case w.Kind == WordAgain:
		s.Asked(from, w.Round)
	case w.Kind == WordBroken && s.Leads() && s.Running && w.Round == s.Attempt():
		s.accuse(from, s.members.Find(w.View))
	case from != s.Coordinator() || s.Leads():
	case w.Kind == WordPlace:
		s.placed(from, w)
	case w.Kind == WordRegroup && s.Stage != Idle && w.Round == s.Attempt():
		s.Leave()
		s.Report()
	case w.Kind == WordCommit:
		s.Agreed(w)
	}
}

// placed takes a place in the ring. The attempts of one coordinator grow: a word of an older
// one comes late. Those of another need not be beyond them, or a coordinator that numbers its
// own without bound would leave nobody to follow it.
func (s *Summing) placed(from topology.PeerID, w Word) {
	at, ok := PlaceOf(w)
	late := w.Round == s.Attempt() || w.Round < s.Attempt() && from == s.placedBy
	if !ok || late || !s.Ready() {
		return
	}
	next, previous := s.members.Find(at.Next), s.members.Find(at.Previous)
	if next != "" && previous != "" { // else they are in a view that is not here yet; it is told again
		s.placedBy = from
		s.Join(w.Round, at, next, previous)
	}
}

// Agreed takes the word that all have the sum, if this peer has.
func (s *Summing) Agreed(w Word) {
	if s.Stage == Summed && w.Round == s.Attempt() {
		s.Stage, s.committed, s.value = Idle, w.Round, w.Value
		s.Summer.Commit(w.Value)
	}
}

// hasSum implements ringOwner.
func (s *Summing) hasSum() {
	if !s.Leads() {
		s.Report()
	}
}

// gaveUp implements ringOwner.
func (s *Summing) gaveUp(suspect topology.PeerID) {
	if s.Leads() {
		s.accuse(s.Self, suspect)
		return
	}
	blamed := uint64(0)
	if suspect != "" {
		blamed = Mark(suspect)
	}
	s.Tell(s.Coordinator(), Word{Kind: WordBroken, Round: s.Attempt(), View: blamed})
	s.Leave()
	s.Report()
}

func (s *Summing) index(id topology.PeerID) int {
	return slices.IndexFunc(s.Participants, func(p Participant) bool { return p.ID == id })
}

// Participant is that of an id.
func (s *Summing) Participant(id topology.PeerID) *Participant {
	i := s.index(id)
	if i < 0 {
		i = len(s.Participants)
		s.Participants = append(s.Participants, Participant{ID: id, heard: s.Now})
	}
	return &s.Participants[i]
}

// Barred tells whether a participant is left out since others cannot send to it.
func (s *Summing) Barred(p *Participant) bool { return s.counter < p.barred }

// Attend handles the status of a participant, which takes no place any more if it is done. It
// reports true for one outside of attempts.
func (s *Summing) Attend(from topology.PeerID, w Word, done bool) bool {
	p := s.Participant(from)
	p.heard = s.Now
	s.counter = max(s.counter, min(w.Round, maxAttempt)>>attemptBits)
	current, stage, answer := w.Round == s.Attempt(), Stage(w.Value), Word{Kind: WordHeard}
	switch {
	case stage == Idle && p.inRing() && !current && !done:
		line := s.line()
		answer = PlaceIn(line, slices.Index(line, from)).Word(s.Attempt())
	case stage == Idle:
		if p.inRing() { // it has left the attempt, and the word of that was lost
			s.Regroup()
		}
		p.Where, p.Last = Absent, w
		s.Tell(from, answer)
		return true
	case s.Concluded(from, w):
		return false
	case !current || !p.inRing(): // of an attempt that was given up
		answer = Word{Kind: WordRegroup, Round: w.Round}
	case stage == Summed:
		p.Where = Holding
	}
	s.Tell(from, answer)
	return false
}

// Concluded tells a member again that all have the sum which it has, if its status is one of
// the last attempt whose sum all had.
func (s *Summing) Concluded(member topology.PeerID, status Word) bool {
	if stage := Stage(status.Value); s.committed == 0 || status.Round != s.committed || stage == Idle {
		return false
	} else if stage == Summed {
		s.Tell(member, Word{Kind: WordCommit, Round: s.committed, Value: s.value})
	}
	return true
}

// Form begins an attempt of this peer and those who are Present.
func (s *Summing) Form() {
	s.counter = max(s.counter, s.Attempt()>>attemptBits) + 1
	s.Running = true
	attempt := s.counter<<attemptBits | Mark(s.Self)&(1<<attemptBits-1)
	for i := range s.Participants {
		if p := &s.Participants[i]; p.Where == Present {
			p.Where, p.heard = Placed, s.Now
		}
	}
	line := s.line()
	for rank, id := range line { // first, so that they are ready for what comes next
		s.Tell(id, PlaceIn(line, rank).Word(attempt))
	}
	own := slices.Index(line, s.Self)
	n := len(line)
	s.placedBy = s.Self
	s.Join(attempt, PlaceIn(line, own), line[(own+1)%n], line[(own+n-1)%n])
}

// line is the ring, in the order of the members.
func (s *Summing) line() (line []topology.PeerID) {
	for _, id := range s.members.order {
		if i := s.index(id); id == s.Self || i >= 0 && s.Participants[i].inRing() {
			line = append(line, id)
		}
	}
	if !slices.Contains(line, s.Self) { // the view has lost this peer itself
		line = append(line, s.Self)
	}
	return line
}

// Complete tells whether all in the attempt have the sum.
func (s *Summing) Complete() bool {
	return s.Running && s.Stage == Summed &&
		!slices.ContainsFunc(s.Participants, func(p Participant) bool { return p.Where == Placed })
}

// Conclude lets all make use of the sum.
func (s *Summing) Conclude(value float64) {
	s.Running, s.unable = false, 0
	w := Word{Kind: WordCommit, Round: s.Attempt(), Value: value}
	for i := range s.Participants {
		p := &s.Participants[i]
		if p.Where == Holding {
			p.charges, p.Last = 0, Word{}
			s.Tell(p.ID, w)
		}
		p.Where = Absent
	}
	s.Agreed(w)
}

// Regroup breaks the attempt off. Who answers is in the next.
func (s *Summing) Regroup() {
	s.Running, s.Opened = false, s.Now
	for i := range s.Participants {
		if p := &s.Participants[i]; p.inRing() {
			p.Where, p.Last = Absent, Word{}
			s.Tell(p.ID, Word{Kind: WordRegroup, Round: s.Attempt()})
		}
	}
	s.Leave()
}

// Dismiss goes on without a participant.
func (s *Summing) Dismiss(id topology.PeerID) {
	i := s.index(id)
	if i < 0 {
		return
	}
	inRing := s.Participants[i].inRing()
	s.Participants = slices.Delete(s.Participants, i, i+1)
	if inRing && s.Running {
		s.Regroup()
	}
}

// accuse breaks the attempt off, and leaves a participant out that cannot be sent to; if that
// is the coordinator itself, the one that cannot send to it.
func (s *Summing) accuse(by, suspect topology.PeerID) {
	if suspect == s.Self {
		suspect = by
	}
	s.Regroup()
	if suspect == s.Self {
		if s.unable++; s.unable >= maxCharges {
			s.Unable()
		}
	} else if i := s.index(suspect); i >= 0 {
		p := &s.Participants[i]
		if p.charges++; p.charges >= maxCharges {
			p.charges, p.barred = 0, s.counter+barredAttempts
		}
	}
}

// Lose goes on without a peer until it speaks.
func (s *Summing) Lose(id topology.PeerID) {
	s.members.Pass(id)
	s.Lost(id)
	s.Dismiss(id)
}

// Impatient speaks again in the ring, and breaks off what takes too long. Transfers that are
// none of the ring's are the owner's.
func (s *Summing) Impatient(owners func(Transfer) bool) {
	for f := range s.Overdue {
		if owners(f.Transfer) {
			s.Dismiss(f.Peer)
		} else {
			s.GiveUp(f.Peer)
		}
	}
	s.Ringer.Impatient()
	if !s.Running || s.Now-s.Moved < s.Deadline {
		return
	}
	for _, p := range slices.Clone(s.Participants) {
		if p.Where == Placed && s.Now-p.heard >= s.Deadline {
			s.members.Pass(p.ID)
			s.Dismiss(p.ID)
		}
	}
}
