package merge

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Kinds of words. What is told is told again until it is answered, so any of them may be
// lost.
const (
	// wordStatus tells the coordinator where the speaker is: Round its last attempt, Value
	// its collective.Stage in it.
	wordStatus uint8 = iota + 1
	// wordHere asks whether the listener is there, and for the result if it has one.
	wordHere
	// wordRunning answers both: the run is not over for the speaker.
	wordRunning
	// wordHeard answers what calls for nothing else.
	wordHeard
	// wordPlace gives a member of the ring its place for the attempt Round.
	wordPlace
	// wordRegroup breaks the attempt Round off.
	wordRegroup
	// wordCommit says that all have the sum of the attempt Round: adopt it.
	wordCommit
	// wordBroken tells the coordinator that the attempt Round has broken off, with the
	// member whose mark is View.
	wordBroken
	// wordAgain asks for what was refused in the attempt Round since it came early.
	wordAgain
)

// flock is who may take part, and who coordinates.
type flock struct {
	m       *Machine
	order   collective.Members // the first that is there coordinates
	passed  []topology.PeerID  // lost, silent or late: not reckoned with until they speak
	running []topology.PeerID  // have said that the run is not over for them
	leader  topology.PeerID    // who coordinates
	heard   time.Duration      // when it spoke last
}

func (f *flock) pass(id topology.PeerID) {
	if !slices.Contains(f.passed, id) {
		f.passed = append(f.passed, id)
	}
}

func (f *flock) leads() bool { return f.m.stage == merging && f.leader == f.m.Self }

// viewed takes the members of a view.
func (f *flock) viewed(view *topology.View) {
	before := f.order
	f.order = collective.MembersOf(view)
	for _, id := range before {
		if !f.order.Has(id) {
			f.lost(id)
		}
	}
	f.choose()
}

// lost goes on without a peer.
func (f *flock) lost(id topology.PeerID) {
	f.pass(id)
	f.m.Lost(id)
	if f.leads() {
		f.m.dismiss(id)
	}
	f.choose()
}

// choose finds out who coordinates. To another it says at once that it is there.
func (f *flock) choose() {
	if f.m.stage != merging {
		return
	}
	first := f.m.Self
	for _, id := range f.order {
		if id == f.m.Self && f.m.unable < maxCharges || id != f.m.Self && !slices.Contains(f.passed, id) {
			first = id
			break
		}
	}
	if first == f.leader {
		return
	}
	if f.m.Stage != collective.Idle {
		f.m.Leave()
	}
	f.leader, f.heard, f.m.leadership = first, f.m.Now, leadership{m: f.m, unable: f.m.unable, opened: f.m.Now, counter: f.m.counter}
	if first != f.m.Self {
		f.report()
	}
}

// report tells the coordinator where this peer is.
func (f *flock) report() {
	f.m.Tell(f.leader, collective.Word{Kind: wordStatus, Round: f.m.Attempt(), Value: float64(f.m.Stage)})
}

// told handles a word.
func (f *flock) told(from topology.PeerID, w collective.Word) {
	if from == f.leader {
		f.heard = f.m.Now
	}
	if w.Kind == wordRunning {
		if !slices.Contains(f.running, from) {
			f.running = append(f.running, from)
		}
		return
	}
	is := func(id topology.PeerID) bool { return id == from }
	f.running = slices.DeleteFunc(f.running, is)
	if n := len(f.passed); n > 0 {
		if f.passed = slices.DeleteFunc(f.passed, is); len(f.passed) < n {
			f.choose()
		}
	}
	switch w.Kind {
	case wordStatus, wordHere:
		f.asked(from, w)
	case wordAgain:
		f.m.Asked(from, w.Round)
	case wordBroken:
		if f.leads() && f.m.began && w.Round == f.m.Attempt() {
			f.m.accuse(from, f.order.Find(w.View))
		}
	case wordCommit: // by whomever: who has that sum has what all have
		if f.m.stage == merging && f.m.Stage == collective.Summed && w.Round == f.m.Attempt() {
			f.m.adopt(w.Round)
		}
	case wordPlace:
		if from == f.leader {
			f.placed(w)
		}
	case wordRegroup:
		if from == f.leader && f.m.stage == merging && f.m.Stage != collective.Idle && w.Round == f.m.Attempt() {
			f.m.Leave()
			f.report()
		}
	}
}

// asked answers one that is done with its run and has no result, as far as it says.
func (f *flock) asked(from topology.PeerID, w collective.Word) {
	switch {
	case f.m.stage < merging:
		f.m.Tell(from, collective.Word{Kind: wordRunning})
	case f.m.stage == merged && w.Kind == wordStatus && collective.Stage(w.Value) == collective.Summed && w.Round == f.m.adopted:
		f.m.Tell(from, collective.Word{Kind: wordCommit, Round: f.m.adopted})
	case f.m.stage == merged:
		f.m.give(from)
	case w.Kind == wordStatus && f.leads():
		f.m.attend(from, w)
	case f.m.stage == merging && f.leader == from:
		f.report()
	default:
		f.m.Tell(from, collective.Word{Kind: wordHeard})
	}
}

// placed takes a place in the ring.
func (f *flock) placed(w collective.Word) {
	at, ok := collective.PlaceOf(w)
	if !ok || f.m.stage != merging || w.Round == f.m.Attempt() || f.m.taking() {
		return
	}
	next, previous := f.order.Find(at.Next), f.order.Find(at.Previous)
	if next == "" || previous == "" { // in a view that is not here yet; it is told again
		return
	}
	f.m.Join(w.Round, at, next, previous)
}
