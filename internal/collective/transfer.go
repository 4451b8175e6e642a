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
	// Gradient is the trainer's last gradient, the mean over its samples, whose
	// weight is their number. It is there from GradientDone until the Proceed that
	// answers it.
	Gradient
	// Sum holds weighted sums of gradients, piece by piece, and beside each piece of a
	// slice the weight in it: what broke off midway leaves pieces that are whole, each
	// with its own weight.
	Sum
	// Buffers is the number of buffers.
	Buffers
)

// String names the buffer as transcripts show it.
func (b Buffer) String() string {
	return [...]string{"parameters", "gradient", "sum", "unknown buffer"}[min(b, Buffers)]
}

// Transfer says what a Send carries from one peer to another: a part of a buffer, one
// way, slice by slice. An exchange changes two models by the same differences; a
// transfer is what the rivals need that gather gradients and hand out results.
//
// Gradient is only sent into Sum, where it counts with its weight. Other pairs of
// buffers must be alike.
type Transfer struct {
	From, Into Buffer
	// Add adds to what the receiver holds; else it is replaced. Parameters are only
	// ever replaced.
	Add bool
	// Part is the one of Parts runs of about equally many values that is meant, from 0.
	// Parts is at least 1; a part may be empty where a model is very small.
	Part, Parts int
	// Round is the machine's own count: the receiving machine is shown it.
	Round uint64
}

// String prints the transfer as transcripts show it.
func (t Transfer) String() string {
	how := map[bool]string{true: "added to", false: "replacing"}[t.Add]
	return fmt.Sprintf("%s part %d of %d, %s %s, round %d", t.From, t.Part, t.Parts, how, t.Into, t.Round)
}

// Message is what one machine tells another: short, and meaningful however late it
// comes, since words may overtake each other. What its kinds and values mean is the
// machine's own business; both ends run the same algorithm.
type Message struct {
	Kind uint8
	// Round is the round that the word is about.
	Round uint64
	// View is the digest of the view that the speaker has.
	View uint64
	// Value is a number that goes with it.
	Value float64
	// Sum is what is said of a sum, and then all: the others are zero.
	Sum *wire.Sum
}

// String prints the word as transcripts show it.
func (w Message) String() string {
	if s := w.Sum; s != nil {
		return fmt.Sprintf("kind %d of sum %q, attempt %d", s.Kind, s.Name, s.Attempt)
	}
	return fmt.Sprintf("word %d of round %d: %g", w.Kind, w.Round, w.Value)
}
