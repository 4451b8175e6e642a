package swim

import "golang.org/x/time/rate"

const (
	// packetsPerSecond and packetBurst bound the packets that are taken from one peer:
	// many times what memberlist sends to one. What is beyond them is dropped, as a
	// network would.
	packetsPerSecond = 100
	packetBurst      = 200
	// messagesPerSecond and messageBurst bound the messages in them, of which a packet can
	// hold 255.
	messagesPerSecond = 500
	messageBurst      = 2000
	// introductionsPerSecond and introductionBurst bound a peer's introductions until it is
	// a member: each costs the check of a signature.
	introductionsPerSecond = 2
	introductionBurst      = 16
	// syncsPerSecond and syncBurst bound the conversations that one peer may begin. It
	// begins one in fifteen seconds, and a few to join.
	syncsPerSecond = 1
	syncBurst      = 8
)

// allowance is what a peer may still send. It outlives the peer's streams.
type allowance struct {
	packets, messages, introductions, probes, syncs *rate.Limiter
}

func newAllowance() *allowance {
	return &allowance{
		packets:       rate.NewLimiter(packetsPerSecond, packetBurst),
		messages:      rate.NewLimiter(messagesPerSecond, messageBurst),
		introductions: rate.NewLimiter(introductionsPerSecond, introductionBurst),
		probes:        rate.NewLimiter(probesPerSecond, probeBurst),
		syncs:         rate.NewLimiter(syncsPerSecond, syncBurst),
	}
}
