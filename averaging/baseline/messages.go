package baseline

import "github.com/seed-97356399/murmuration/internal/collective"

// messageStatus tells the coordinator the sender's state; each machine defines View and Value.
const messageStatus uint8 = 1

// Kinds of messages, beside those of sums. A message is repeated until it is answered, so
// any may be lost.
const (
	// messageWho asks who coordinates; Round is the version of the sender's parameters.
	messageWho uint8 = iota + 16
	// messageLead answers: the coordinator is the peer with mark View, at version Round. If
	// that is the receiver, which has parameters of that version, it is to coordinate.
	messageLead
	// messageNone answers: the sender knows no coordinator, and has parameters of version
	// Round. Value is the kind of the message that it answers; for a status, which only
	// coordinators get, it says that the sender is none itself.
	messageNone
	// messageParting says that the run is over for the sender, which no longer takes part.
	messageParting
	// messageEnd tells a member that the coordinator makes no further round.
	messageEnd
	// messageSpeed tells the coordinator the sender's speed: Value samples a second.
	messageSpeed
	// messageBatch gives the receiver Value samples for a step.
	messageBatch
	// messageSamples announces a push: Value is the number of samples of the gradient.
	messageSamples
	// messageAt tells a neighbour that the sender is in Round; Value is 1 if their
	// exchange of that round is over.
	messageAt
	// messageVersion tells a worker the version, Round, of the parameters that it gets next.
	messageVersion
)

// farewells is how often a peer announces that the run is over for it.
const farewells = 3

func message(kind uint8, round uint64, value float64) collective.Message {
	return collective.Message{Kind: kind, Round: round, Value: value}
}
