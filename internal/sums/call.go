package sums

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Op is what is made of what the participants bring.
type Op uint8

// The operations. All participants of a sum have to name the same.
const (
	// Add adds numbers up, place by place.
	Add Op = iota
	// Max is the largest, place by place.
	Max
	// Gather is what each has brought, in the order of the participants.
	Gather
	// Moved adds up, place by place, numbers that the caller holds and moves itself, by Chunks: models and
	// gradients, which partners in training see anyway.
	Moved
	ops
)

func (o Op) String() string {
	if o < ops {
		return [...]string{"sum", "maximum", "gathering", "sum of what is moved"}[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// private tells whether nobody is to hear a participant's numbers alone.
func (o Op) private() bool { return o == Add || o == Max }

// Reasons why a sum fails, to be found with errors.Is.
var (
	// ErrMismatch: another member names another operation or length.
	ErrMismatch = errors.New("members bring what cannot be summed")
	// ErrTooFew: not as many took part in time as the sum needs.
	ErrTooFew = errors.New("too few members take part")
	// ErrOver: the others have made the sum without this member.
	ErrOver = errors.New("the sum was made without this member")
	// ErrUnreachable: others of the sum cannot send to this member, though it is one.
	ErrUnreachable = errors.New("others of the sum cannot reach this member")
	// ErrNotFinite: a number of the result is NaN or infinite. All participants see that alike.
	ErrNotFinite = errors.New("not finite")
)

// faults are the codes of the reasons.
var faults = []error{nil, ErrMismatch, ErrTooFew, ErrOver, ErrUnreachable, ErrNotFinite}

// Call is what a caller brings.
type Call struct {
	// Name tells sums apart, of 1 to wire.MaxSumName bytes; each is used once.
	Name string
	Op   Op
	// Vector is for Add and Max, Data for Gather. They are read until the call has ended.
	Vector []float64
	Data   []byte
	// Least is how many have to take part, Patience for how long those are waited for that
	// are members and have not come.
	Least   int
	Timeout time.Duration
	// Length goes with Moved: how many numbers there are. So does Value: all hear the least that participants bring.
	Length int
	Value  float64
}

// length is what participants have to agree on.
func (c *Call) length() uint64 {
	return uint64(len(c.Vector) + c.Length)
}

// Outcome is what a machine wants done: one of its fields is set, beside To.
type Outcome struct {
	To      ID          // to be told
	Message *wire.Sum   // a word
	Share   *wire.Share // or a share
	Chunk   *Chunk      // or to be handed a chunk
	Moving  *Moving     // or to make ready what is moved in an attempt; nothing of an earlier one counts any more
	Result  *Result     // or a call has ended
}

// Result is how a call ends. It belongs to whoever called.
type Result struct {
	Name    string
	Vector  []float64 // of Add and Max
	Blocks  [][]byte  // of Gather
	Peers   int       // that took part
	Attempt uint64    // of Moved
	Value   float64   // of Moved
	Err     error
}

// Fact is something that people may want to know of a sum.
type Fact struct {
	What string
	Sum  string
	Who  []ID // it is about
	Why  string
}

// What facts are about.
const (
	Waits  = "a sum waits for members"
	Voided = "an attempt at a sum was given up"
	Thrown = "a sum goes on without a member that others cannot sum with"
	Apart  = "a sum with one member alone, who hears this one's numbers, waits for the others to have no part"
)

// reason is the error of a fault's code, with what was said of it.
func reason(code uint8, name, detail string) error {
	if code == 0 || int(code) >= len(faults) {
		return fmt.Errorf("sum %q: %s", name, detail)
	}
	return fmt.Errorf("sum %q: %w: %s", name, faults[code], detail)
}

// codeOf is the code of a reason.
func codeOf(err error) uint8 { return uint8(slices.Index(faults, err)) }

// ended is how a sum ended.
type ended struct {
	attempt uint64 // 0 if there is no result here
	failed  bool   // for all: who coordinates says so
	why     uint8
	detail  string
	value   float64
}

// answer is what a participant is told that comes when a sum is over.
func (e ended) answer(status *wire.Sum) *wire.Sum {
	switch {
	case e.attempt == 0:
		return &wire.Sum{Kind: wire.SumFault, Name: status.Name, Op: e.why, Attempt: status.Attempt, Detail: e.detail}
	case status.Attempt == e.attempt && Stage(status.Stage) != Waiting: // all had it: that one only has its place was said before
		return &wire.Sum{Kind: wire.SumCommit, Name: status.Name, Attempt: e.attempt, Term: status.Term, Value: e.value, Detail: e.detail}
	}
	why := "it came too late, or has used a name twice"
	if status.Attempt > 0 {
		why = "it had a place, and was not heard of any more, as a process that stood still or was cut off: the others went on"
	}
	return &wire.Sum{Kind: wire.SumFault, Name: status.Name, Op: codeOf(ErrOver), Attempt: status.Attempt, Detail: why}
}

// shorts are the ends of ids, which tell members apart.
func shorts(ids []ID) string {
	const most = 3
	var names []string
	for _, id := range ids[:min(len(ids), most)] {
		names = append(names, id.Short())
	}
	if len(ids) > most {
		names = append(names, "…")
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// ID is the name of a member.
type ID = topology.PeerID
