package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/sumnet"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Sums says with whom a peer sums. It may differ between peers: the largest of both numbers
// count.
type Sums struct {
	// AtLeast is how many members a sum needs. More than half of those that there can be
	// lets only one side of a divided network have one. Default: 1, and 2 while Network.Join
	// names members of whom none has ever answered: 1 has to be asked for there.
	AtLeast int
	// Timeout is for how long a sum waits for members that are here and have not called
	// it, since the last came. What not more than half of them ask for counts for at most 10 minutes.
	// Default: 1 minute.
	Timeout time.Duration
}

// DefaultTimeout is Sums.Timeout where none is given.
const DefaultTimeout = time.Minute

// MaxSum is the most numbers in a sum.
const MaxSum = sums.MaxLength

// Why a sum fails, to be tested with errors.Is. Nothing has been summed for this peer then.
var (
	// ErrMismatch: another member brings another operation or length under the same name.
	ErrMismatch = sums.ErrMismatch
	// ErrTooFew: fewer than Sums.AtLeast took part within Sums.Timeout, or the others held it up; the
	// text names them.
	ErrTooFew = sums.ErrTooFew
	// ErrNotFinite: a number of the sum is NaN or infinite, because a member brought such a number or
	// finite ones overflow. All that take part have this error, and the text names who brought it,
	// where a partner has seen it.
	ErrNotFinite = sums.ErrNotFinite
	// ErrSumOver: the others have made the sum without this peer: it came after their
	// patience, or has used a name twice.
	ErrSumOver = sums.ErrOver
)

func (s Sums) validate() error {
	if s.AtLeast < 0 || s.AtLeast > math.MaxInt32 || s.Timeout < 0 || s.Timeout > maxTimeout {
		return fmt.Errorf("Sums: AtLeast %d and Patience %s: want neither negative, and a patience of at most %s", s.AtLeast, s.Timeout, maxTimeout)
	}
	return nil
}

// maxTimeout is what fits its field on the wire.
const maxTimeout = math.MaxUint32 * time.Millisecond

// summing is a node's part of sums.
type summing struct {
	with    Sums
	arrival *arrival.Arrival
	net     *sumnet.Net
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
