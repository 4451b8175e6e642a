package baseline

import "github.com/seed-97356399/murmuration/internal/collective"

// messageStatus tells the coordinator where the speaker is: View and Value are the machine's own.
const messageStatus uint8 = 1

// Kinds of words, beside those of sums. What is told is told again until it is
// answered, so any of them may be lost.
const (
	// messageWho asks who coordinates.
	messageWho uint8 = iota + 16
	// messageLead answers: it is the peer whose mark is View, at the version Round.
	messageLead
	// messageNone answers: the speaker knows no coordinator. Value is the kind of what it
	// answers: of a status, which only coordinators are told, that it is none itself.
	messageNone
	// messageParting says that the run is over for the speaker, which takes part no more.
	messageParting
	// messageEnd tells a member that the coordinator makes no round any more.
	messageEnd
	// messageSpeed tells the coordinator of Value samples a second.
	messageSpeed
	// messageBatch gives the listener Value samples for a step.
	messageBatch
	// messageSamples announces a push: Value is how many samples the gradient is of.
	messageSamples
	// messageAt tells a neighbour that the speaker waits at the barrier of Round; Value is 1
	// if their exchange of that round is over.
	messageAt
)

// farewells is how often a peer says that the run is over for it.
const farewells = 3

func message(kind uint8, round uint64, value float64) collective.Message {
	return collective.Message{Kind: kind, Round: round, Value: value}
}
