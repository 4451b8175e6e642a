package baseline

import "github.com/seed-97356399/murmuration/internal/collective"

// Kinds of words. What is told is told again until it is answered, so any of them may
// be lost.
const (
	// wordWho asks who coordinates.
	wordWho uint8 = iota + 1
	// wordLead answers: Round is the coordinator's round as far as the speaker knows it,
	// View the reign, and Value packs how many workers it has and its mark.
	wordLead
	// wordNone answers: the speaker knows no coordinator, and if Value is 1 is none itself
	// though the listener takes it for that.
	wordNone
	// wordParting says that the run is over for the speaker, which takes part no more.
	wordParting
	// wordStatus tells the coordinator where the speaker is: Round its round, View the
	// reign that its parameters are of, Value packs an attempt and a phase.
	wordStatus
	// wordSpeed tells the coordinator of Value samples a second.
	wordSpeed
	// wordHeard answers what calls for nothing else. View is the coordinator's reign.
	wordHeard
	// wordPlace gives a member of the ring its place for the attempt Round.
	wordPlace
	// wordRegroup breaks the attempt Round off.
	wordRegroup
	// wordCommit says that all have the sum of the attempt Round. Value is the progress of
	// the run at which the step is to be made, or -1 less that if the optimizers are to
	// forget the past first.
	wordCommit
	// wordBroken tells the coordinator that the attempt Round has broken off, with the
	// member whose mark is View.
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
	// wordEnd tells a member that the coordinator makes no round any more.
	wordEnd
)

// Bits of the lower number in what words pack.
const (
	leadBits   = 36 // a mark, under a number of workers
	statusBits = 4  // a phase, under an attempt
)

// farewells is how often a peer says that the run is over for it.
const farewells = 3

// agreed is the Value of a commit.
func agreed(progress float64, forget bool) float64 {
	if forget {
		return -1 - progress
	}
	return progress
}

func word(kind uint8, round, view uint64, value float64) collective.Word {
	return collective.Word{Kind: kind, Round: round, View: view, Value: value}
}
