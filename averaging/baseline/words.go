package baseline

import (
	"hash/fnv"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Kinds of words. What is told is told again until it is answered, so any of them may
// be lost.
const (
	// wordWho asks who leads. View is the speaker's lineage, 0 if it has none.
	wordWho uint8 = iota + 1
	// wordLead answers: Round and View are the leader's round and lineage as far as the
	// speaker knows them, Value packs how many follow and the mark of the leader.
	wordLead
	// wordNone answers: the speaker knows no leader.
	wordNone
	// wordParting says that the run is over for the speaker.
	wordParting
	// wordStatus tells the leader where the speaker is: Round its round, View its
	// lineage, Value packs an attempt and a phase.
	wordStatus
	// wordSpeed tells the leader of Value samples a second.
	wordSpeed
	// wordHeard answers what calls for nothing else.
	wordHeard
	// wordPlace gives a member of the ring its place for the attempt Round: View and Value
	// pack it.
	wordPlace
	// wordRegroup breaks the attempt Round off.
	wordRegroup
	// wordCommit says that all have the sum of the attempt Round. Value is the progress of
	// the run at which the step is to be made, or -1 less that if the optimizers are to
	// forget the past first.
	wordCommit
	// wordBroken tells the leader that the attempt Round has broken off, with the member
	// whose mark is View.
	wordBroken
	// wordAgain asks for what was refused in the attempt Round since it came early.
	wordAgain
	// wordBatch gives the listener Value samples for a step.
	wordBatch
	// wordSamples announces a push: Value is how many samples the gradient is of.
	wordSamples
	// wordAt tells a neighbour that the speaker waits at the barrier of Round; Value is 1
	// if their exchange of that round is over.
	wordAt
	// wordGone tells a neighbour that the run is over for the speaker.
	wordGone
)

// mark is a short name of a peer, for words.
func mark(id topology.PeerID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) // never fails
	return h.Sum64() % markLimit
}

// markLimit keeps a mark beside a number of members in a float64, which holds integers
// of 53 bits.
const markLimit = 1 << markBits

// packed puts two numbers into a word's Value: low is below 1<<bits, high fits in what
// remains of 53 bits.
func packed(high, low uint64, bits uint) float64 { return float64(high<<bits | low) }

// unpacked gives the two numbers of a Value back; what makes no sense gives zeros.
func unpacked(value float64, bits uint) (high, low uint64) {
	if !(value >= 0 && value < 1<<53) {
		return 0, 0
	}
	v := uint64(value)
	return v >> bits, v & (1<<bits - 1)
}

// Bits of the lower number in what words pack.
const (
	leadBits   = markBits // a mark, under a number of followers
	statusBits = 4        // a phase, under an attempt
)

// agreed is the Value of a commit.
func agreed(progress float64, forget bool) float64 {
	if forget {
		return -1 - progress
	}
	return progress
}

func word(kind uint8, round, view uint64, value float64) averaging.Word {
	return averaging.Word{Kind: kind, Round: round, View: view, Value: value}
}
