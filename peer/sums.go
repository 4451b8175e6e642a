package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/sumnet"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// Sums says with how many members a peer sums, and how long it waits. If peers differ, the
// largest of each number counts.
type Sums struct {
	// AtLeast is how many members a sum needs. With more than half of all possible members,
	// only one side of a divided network can have a sum. Default: 1, or 2 while Network.Join
	// names members and none has ever answered; set 1 to sum alone there.
	AtLeast int
	// Timeout is how long a sum waits, after the last member has come, for members that have not
	// called it. A longer time that no more than half of them ask for counts as 10 minutes at most.
	// Default: 1 minute.
	Timeout time.Duration
	// Masked says whether Sum hides what each member brings (see there), alike at all members, or sums fail with
	// ErrMismatch. Default: in a run with a list or a key (Admission), and not in an open one, where anybody can be as
	// many members as a sum needs. new(false) is for two members, of whom each knows by the sum what the other brings,
	// and for one alone: with masks both have ErrTooFew.
	Masked *bool
	// Topology is along which links Sum moves numbers, alike at all members, or sums fail with ErrMismatch. Exponential,
	// the default, halves and doubles in 2·log n steps. A Ring takes 2(n-1), each member sends to one neighbour alone,
	// and together its two neighbours know what it brings, unless there are masks. A Tree takes 2·log n steps of whole
	// vectors, for sums with masks: without them the one above would see all that a leaf brings, so they halve and
	// double, as over a Star.
	Topology topology.Shape
}

// DefaultTimeout is the default of Sums.Timeout.
const DefaultTimeout = time.Minute

// MaxSum is the most numbers in a sum.
const MaxSum = sums.MaxLength

// Reasons why a sum fails, to be tested with errors.Is. This peer then has no sum.
var (
	// ErrMismatch: another member uses another operation or length under the same name.
	ErrMismatch = sums.ErrMismatch
	// ErrTooFew: fewer than Sums.AtLeast took part within Sums.Timeout, or the others delayed the
	// sum; the text names them.
	ErrTooFew = sums.ErrTooFew
	// ErrNotFinite: a number of the sum is NaN or infinite, because a member brought such a number or
	// because finite ones overflow. All that take part get this error. The text names the member that
	// brought the number, if a partner has seen it.
	ErrNotFinite = sums.ErrNotFinite
	// ErrImprecise: with masks, the largest number leaves too few bits for the others: see Node.Sum. All that take part
	// get this error.
	ErrImprecise = sums.ErrImprecise
	// ErrSumOver: the others have made the sum without this peer: it came after their
	// timeout, or has used a name twice.
	ErrSumOver = sums.ErrOver
)

func (s Sums) validate() (err error) {
	if s.AtLeast < 0 || s.AtLeast > math.MaxInt32 || s.Timeout < 0 || s.Timeout > maxTimeout {
		err = fmt.Errorf("Sums: AtLeast %d and Timeout %s: want neither negative, and a timeout of at most %s", s.AtLeast, s.Timeout, maxTimeout)
	}
	if !slices.Contains(topology.Shapes(), s.Topology) {
		err = errors.Join(err, fmt.Errorf("Sums.Topology is %d: want one of %v", s.Topology, topology.Shapes()))
	}
	return err
}

// maxTimeout is the most that the field on the wire can hold.
const maxTimeout = math.MaxUint32 * time.Millisecond

// summing is a node's part of sums.
type summing struct {
	with    Sums
	arrival *arrival.Arrival
	net     *sumnet.Net
}

// SumWithin is Node.Sum of numbers between -largest and largest, which all members give alike; else it fails before
// anything is told. With masks it has its precision from that, and nothing is told of anybody's largest number.
func SumWithin(ctx context.Context, n *Node, name string, vector []float64, largest float64) (sum []float64, peers int, err error) {
	for _, v := range append([]float64{largest}, vector...) {
		if !(math.Abs(v) <= min(largest, math.MaxFloat64)) { // true for NaN
			return nil, 0, fmt.Errorf("sum %q within %g: %g is not", name, largest, v)
		}
	}
	return n.sums.add(ctx, name, vector, mask.Exponent(largest))
}

// add makes a sum of numbers between -2^exponent and 2^exponent.
func (s *summing) add(ctx context.Context, name string, vector []float64, exponent int) ([]float64, int, error) {
	call := sums.Call{Name: name, Op: sums.Add, Vector: vector}
	if *s.with.Masked {
		call.Op, call.Exponent = sums.Masked, exponent
	}
	call.Op = call.Op.Over(s.with.Topology)
	return s.vector(ctx, call)
}

func (s *summing) vector(ctx context.Context, call sums.Call) ([]float64, int, error) {
	if len(call.Vector) > MaxSum {
		return nil, 0, fmt.Errorf("%s %q: %d numbers, at most %d", call.Op, call.Name, len(call.Vector), MaxSum)
	}
	if i := slices.IndexFunc(call.Vector, func(v float64) bool { return v-v != 0 }); i >= 0 { // NaN or infinite
		return nil, 0, fmt.Errorf("%s %q: number %d is %g: %w", call.Op, call.Name, i, call.Vector[i], ErrNotFinite)
	}
	done, err := s.do(ctx, call)
	return done.Vector, done.Peers, err
}

func (s *summing) do(ctx context.Context, call sums.Call) (sums.Result, error) {
	if err := wire.CheckSumName(call.Name); err != nil {
		return sums.Result{}, err
	}
	if err := s.arrival.Wait(ctx); err != nil && !errors.Is(err, transport.ErrClosed) {
		return sums.Result{}, fmt.Errorf("%s %q: %w", call.Op, call.Name, err)
	}
	call.Least, call.Timeout = s.with.AtLeast, s.with.Timeout
	alone := call.Least == 0 && !s.arrival.Reached()
	if alone {
		call.Least = 2
	}
	done, err := s.net.Do(ctx, call)
	switch {
	case errors.Is(err, transport.ErrClosed):
		err = ErrClosed
	case alone && errors.Is(err, ErrTooFew):
		err = fmt.Errorf("%w; nobody of Network.Join has answered, and to sum alone Sums.AtLeast has to be 1", err)
	}
	return done, err
}
