package collective

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// Buffer names a vector of a replica that exchanges and transfers work on.
type Buffer uint8

const (
	// Parameters is the model itself.
	Parameters Buffer = iota
	// Gradient is the trainer's last gradient, the mean over its samples, whose weight is
	// their number. It is valid from GradientDone until the Proceed that answers it.
	Gradient
	// Sum holds weighted sums of gradients, piece by piece, with a weight for each piece of
	// a slice: a transfer that breaks off midway leaves complete pieces, each with its own
	// weight.
	Sum
	// Buffers is the number of buffers.
	Buffers
)

// String names the buffer as transcripts show it.
func (b Buffer) String() string {
	return [...]string{"parameters", "gradient", "sum", "unknown buffer"}[min(b, Buffers)]
}

// Transfer says what a Send carries from one peer to another: a part of a buffer, one way,
// slice by slice. An exchange changes two models by the same differences; transfers are for
// rivals that gather gradients and distribute results.
//
// Gradient is only sent into Sum, where it counts with its weight. All other transfers have
// the same buffer at both ends.
type Transfer struct {
	From, Into Buffer
	// Add adds to the receiver's values; else they are replaced. Parameters are only ever
	// replaced.
	Add bool
	// Part, from 0, is one of Parts runs of about equally many values. Parts is at least 1;
	// a part may be empty where a model is very small.
	Part, Parts int
	// Round is the machine's own count: the receiving machine is shown it.
	Round uint64
}

// String prints the transfer as transcripts show it.
func (t Transfer) String() string {
	how := map[bool]string{true: "added to", false: "replacing"}[t.Add]
	return fmt.Sprintf("%s part %d of %d, %s %s, round %d", t.From, t.Part, t.Parts, how, t.Into, t.Round)
}

// Message is a short message from one machine to another. It must make sense however late
// it comes, since messages may overtake each other. The machine defines its kinds and
// values; both ends run the same algorithm.
type Message struct {
	Kind uint8
	// Round is the round of the message.
	Round uint64
	// View is the digest of the sender's view.
	View uint64
	// Value is a number.
	Value float64
	// Sum is a message of package sums; the other fields are then zero.
	Sum *wire.Sum
}

// String prints the message as transcripts show it.
func (w Message) String() string {
	if s := w.Sum; s != nil {
		return fmt.Sprintf("kind %d of sum %q, attempt %d", s.Kind, s.Name, s.Attempt)
	}
	return fmt.Sprintf("word %d of round %d: %g", w.Kind, w.Round, w.Value)
}
