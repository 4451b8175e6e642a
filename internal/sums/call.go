package sums

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Op is the operation on the participants' data.
type Op uint8

// The operations. All participants of a sum must use the same.
const (
	// Add adds numbers up, element by element.
	Add Op = iota
	// Max is the largest number, element by element.
	Max
	// Gather is the data of each participant, in their order.
	Gather
	// Moved adds up, element by element, numbers that the caller holds and transfers itself, in Chunks:
	// models and gradients, which training partners see anyway.
	Moved
	// Masked is Add in fixed point, where nobody sees any numbers but the sum of all (package mask).
	Masked
	ops
)

// shapeBit is the first bit of the shape of links by which numbers are summed, which stands above the operation.
const shapeBit = 4

// Over is the operation round a ring or over a tree of the ranks. Over a star it goes by halving and doubling as
// before, and so does Add over a tree, where one participant would see all that another brings.
func (o Op) Over(shape topology.Shape) Op {
	if shape == topology.Star || shape == topology.Tree && o == Add {
		return o
	}
	return o | Op(shape)<<shapeBit
}

func (o Op) shape() topology.Shape { return topology.Shape(o >> shapeBit) }

func (o Op) shapeless() Op { return o & (1<<shapeBit - 1) }

func (o Op) String() string {
	if o.shapeless() < ops && o.shape() <= topology.Tree {
		return [...]string{"sum", "maximum", "gathering", "sum of what is moved", "sum with masks"}[o.shapeless()] +
			[...]string{topology.Ring: " round a ring", topology.Tree: " over a tree"}[o.shape()]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// private tells whether no participant may see another's numbers alone.
func (o Op) private() bool { return o.shapeless() == Add || o == Max || o.masked() }

// moved tells whether the caller transfers the numbers itself.
func (o Op) moved() bool { return o.shapeless() == Moved }

func (o Op) masked() bool { return o.shapeless() == Masked }

// Reasons why a sum fails, to be found with errors.Is.
var (
	// ErrMismatch: another member has another operation or length.
	ErrMismatch = errors.New("members bring what cannot be summed")
	// ErrTooFew: not as many took part in time as the sum needs.
	ErrTooFew = errors.New("too few members take part")
	// ErrOver: the others have made the sum without this member.
	ErrOver = errors.New("the sum was made without this member")
	// ErrUnreachable: other participants cannot send to this participant.
	ErrUnreachable = errors.New("others of the sum cannot reach this member")
	// ErrNotFinite: a number of the result is NaN or infinite. All participants get this error.
	ErrNotFinite = errors.New("not finite")
	// ErrImprecise: masks have too few bits for the largest number and the others. All participants get this error.
	ErrImprecise = errors.New("too large a number for masks")
)

// faults are the codes of the reasons.
var faults = []error{nil, ErrMismatch, ErrTooFew, ErrOver, ErrUnreachable, ErrNotFinite}

// Call is the argument of a sum.
type Call struct {
	// Name identifies the sum: 1 to wire.MaxSumName bytes; each is used once.
	Name string
	Op   Op
	// Vector is for Add, Max and Masked, Data for Gather. They are read until the call has ended.
	Vector []float64
	Data   []byte
	// Least is how many members must take part, Timeout how long the sum waits for members
	// that have not come.
	Least   int
	Timeout time.Duration
	// Length, the number of numbers, and Value are for Moved. All participants get the least Value. Rounds tells that
	// what is moved is rounded on the way.
	Length int
	Value  float64
	Rounds bool
	// Exponent and Nonce are for Masked: the exponent of the vector, or a larger one (mask.Exponent), and a new nonce
	// for each call.
	Exponent int
	Nonce    mask.Nonce
}

// length is the length on which participants must agree: in a masked sum, how many words the numbers take.
func (c *Call) length() uint64 {
	if c.Op.masked() {
		return uint64(mask.Words(len(c.Vector)))
	}
	return uint64(len(c.Vector) + c.Length)
}

// Outcome is a request of the machine: one of its fields is set, beside To.
type Outcome struct {
	To      ID          // the receiver
	Message *wire.Sum   // a message
	Share   *wire.Share // a share
	Chunk   *Chunk      // a chunk
	Moving  *Moving     // load the numbers for a new attempt; earlier attempts no longer count
	Result  *Result     // a call has ended
}

// Result is the end of a call. It belongs to the caller.
type Result struct {
	Name    string
	Vector  []float64 // of Add, Max and Masked
	Blocks  [][]byte  // of Gather
	Peers   int       // that took part
	Attempt uint64    // of Moved
	Value   float64   // of Moved
	Err     error
}

// Fact is news about a sum for people.
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

const (
	// maxFacts bounds the facts that have not been read.
	maxFacts = 64
	maxWho   = 8 // members in one fact
)

// news are the facts of a machine that have not been read.
type news struct{ facts []Fact }

// Facts are the new facts since the last call.
func (n *news) Facts() []Fact {
	facts := n.facts
	n.facts = nil
	return facts
}

func (n *news) fact(f Fact) {
	if f.Who = f.Who[:min(len(f.Who), maxWho)]; len(n.facts) < maxFacts {
		n.facts = append(n.facts, f)
	}
}

// reason is the error of a fault's code, with its detail.
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
	failed  bool   // for all, according to the coordinator
	why     uint8
	detail  string
	value   float64
	seeds   []byte // of all participants' second masks, of a masked sum
}

// answer is the answer to a participant that comes when a sum is over.
func (e ended) answer(status *wire.Sum) *wire.Sum {
	switch {
	case e.attempt == 0:
		return &wire.Sum{Kind: wire.SumFault, Name: status.Name, Op: e.why, Attempt: status.Attempt, Detail: e.detail}
	case status.Attempt == e.attempt && Stage(status.Stage) != Waiting: // all had the result: the status was sent earlier
		return &wire.Sum{Kind: wire.SumCommit, Op: e.op(), Name: status.Name, Attempt: e.attempt, Term: status.Term, Value: e.value, Detail: e.detail, Masks: e.seeds}
	}
	why := "it came too late, or has used a name twice"
	if status.Attempt > 0 {
		why = "it had a place, and was not heard of any more, as a process that stood still or was cut off: the others went on"
	}
	return &wire.Sum{Kind: wire.SumFault, Name: status.Name, Op: codeOf(ErrOver), Attempt: status.Attempt, Detail: why}
}

// op is Masked if there are seeds, else 0.
func (e ended) op() uint8 { return uint8(min(len(e.seeds), int(Masked))) }

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
