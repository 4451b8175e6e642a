package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/sumtalks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// Sums says with whom a peer sums. It may differ between peers: the largest of both numbers
// count.
type Sums struct {
	// AtLeast is how many members a sum needs. More than half of those that there can be
	// lets only one side of a divided network have one. Default: 1, and 2 while Config.Join
	// names members of whom none has ever answered: 1 has to be asked for there.
	AtLeast int
	// Patience is for how long a sum waits for members that are here and have not called
	// it, since the last came. What not more than half of them ask for counts for at most 10 minutes.
	// Default: 1 minute.
	Patience time.Duration
}

// DefaultPatience is Sums.Patience where none is given.
const DefaultPatience = time.Minute

// MaxSum is the most numbers in a sum.
const MaxSum = sums.MaxLength

// Why a sum fails, to be tested with errors.Is. Nothing has been summed for this peer then.
var (
	// ErrMismatch: another member brings another operation or length under the same name.
	ErrMismatch = sums.ErrMismatch
	// ErrTooFew: fewer than Sums.AtLeast took part within Sums.Patience, or the others held it up; the
	// text names them.
	ErrTooFew = sums.ErrTooFew
	// ErrNotFinite: a number of the sum is NaN or infinite, because a member brought such a number or
	// finite ones overflow. All that take part have this error, and the text names who brought it,
	// where a neighbour has seen it.
	ErrNotFinite = sums.ErrNotFinite
	// ErrSumOver: the others have made the sum without this peer: it came after their
	// patience, or has used a name twice.
	ErrSumOver = sums.ErrOver
)

func (s Sums) validate() error {
	if s.AtLeast < 0 || s.AtLeast > math.MaxInt32 || s.Patience < 0 || s.Patience > maxPatience {
		return fmt.Errorf("Sums: AtLeast %d and Patience %s: want neither negative, and a patience of at most %s", s.AtLeast, s.Patience, maxPatience)
	}
	return nil
}

// maxPatience is what fits its field on the wire.
const maxPatience = math.MaxUint32 * time.Millisecond

// summing is a peer's part of sums.
type summing struct {
	sums *sumtalks.Talks
	with Sums
	wait func(context.Context) error // for joining
	met  func() bool                 // whether a member has ever answered, or none was to be joined
	only bool                        // there is no model
}

// errNoModel is what training fails with where there is none.
var errNoModel = errors.New("this peer has no model: it only sums. Give Config.Params to train")

// trains fails where there is no model.
func (s *summing) trains() error {
	if s.only {
		return errNoModel
	}
	return nil
}

// Sum adds up, place by place, what all members bring that call it with the same name. Each
// gets the same bytes, and their number. It needs no training, and does not disturb it; a run
// that only sums leaves Config.Params out.
//
// All that take part call the same sums; each name, of 1 to 64 bytes of text, is used once in
// a run, and vectors are of one length, at most MaxSum, of finite numbers. The vector is read
// until Sum returns, and not changed. The first sum waits for all members that this flock has,
// those after it for who took part in the one before; for longer than Sums.Patience for nobody.
//
// Each member sends at most 2.1 times what it brings, however many there are, and needs the
// memory of three vectors. Whoever dies is left out, or had been added before: all that are left
// have the same sum. After an error nothing has been summed for this peer, though what it brought
// may count at the others. A sum ends: a member that holds it up is left out after three attempts,
// each of at most a minute, a second for each member, and what its bytes take at 64 KiB/s; one that
// coordinates and brings it to no end is waited for 11 minutes, 3 for each member, and three times what the bytes
// take (docs/design/034). A hostile member can bring any numbers, and hears a part of those of the one before it
// in the ring, of one that is alone with it all: sums are for runs that admit whom they trust. Safe for
// concurrent use.
func (s *summing) Sum(ctx context.Context, name string, vector []float64) (sum []float64, peers int, err error) {
	return s.vector(ctx, sums.Call{Name: name, Op: sums.Add, Vector: vector})
}

// Max is the largest, place by place, of what all members bring: see Sum. The least has no method of
// its own: it is what Max of the negated numbers is, negated, and one vector may hold both.
func (s *summing) Max(ctx context.Context, name string, vector []float64) (largest []float64, peers int, err error) {
	return s.vector(ctx, sums.Call{Name: name, Op: sums.Max, Vector: vector})
}

// Gather hands every member what each brings, at most 64 MiB, in one order: see
// Sum. All bring at most 512 MiB together. Each member sends as much as all but one bring. What is no
// sum of numbers, as sketches and lists of names, is so merged by all alike: equal blocks in an equal
// order. What is in them nobody checks but who reads them.
func (s *summing) Gather(ctx context.Context, name string, data []byte) (all [][]byte, err error) {
	if len(data) > sums.MaxGather {
		return nil, fmt.Errorf("gathering %q: %d bytes, at most %d", name, len(data), sums.MaxGather)
	}
	done, err := s.do(ctx, sums.Call{Name: name, Op: sums.Gather, Data: data})
	return done.Blocks, err
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
	if err := s.wait(ctx); err != nil && !errors.Is(err, seam.ErrClosed) {
		return sums.Result{}, fmt.Errorf("%s %q: %w", call.Op, call.Name, err)
	}
	call.Least, call.Patience = s.with.AtLeast, s.with.Patience
	alone := call.Least == 0 && !s.met()
	if alone {
		call.Least = 2
	}
	done, err := s.sums.Do(ctx, call)
	switch {
	case errors.Is(err, seam.ErrClosed):
		err = ErrClosed
	case alone && errors.Is(err, ErrTooFew):
		err = fmt.Errorf("%w; nobody of Config.Join has answered, and to sum alone Sums.AtLeast has to be 1", err)
	}
	return done, err
}

// newSumming makes a peer's part of sums.
func newSumming(p *Peer) summing {
	c := p.config
	return summing{with: c.Sums, wait: p.arrival.Wait, met: p.arrival.Reached, sums: sumtalks.New(sumtalks.Config{
		Run: c.Run, Transport: p.transport, Stall: c.Exchange.Stall, Log: p.log,
		Members: func() []seam.PeerID { return inOrder(p) }, Here: p.flock.Here,
		Moved:     func(sent, received uint64) { p.tally.Moved(0, sent, received) },
		Malformed: func(from seam.PeerID, reason wire.Reason, err error) { p.talks.Malformed(from, reason, err) },
	})}
}

// inOrder are the members in the order in which they coordinate sums: the same at all that
// know the same. Those that cannot be dialled are the last.
func inOrder(p *Peer) []seam.PeerID {
	self := p.Self()
	late := map[seam.PeerID]bool{self: p.roster.Unreachable()}
	ids := []seam.PeerID{self}
	for _, r := range p.flock.Records() {
		if r.Peer != self {
			ids, late[r.Peer] = append(ids, r.Peer), r.Flags&seam.FlagUnreachable != 0
		}
	}
	slices.SortFunc(ids, func(a, b seam.PeerID) int {
		if late[a] != late[b] {
			if late[a] {
				return 1
			}
			return -1
		}
		return strings.Compare(string(a), string(b))
	})
	return ids
}

// nothing is the model of a run that only sums.
func nothing() *tensor.Params {
	layout, _ := tensor.NewLayout(tensor.Spec{Name: "none", Shape: []int{1}}) // one name does not fail
	return tensor.NewParams(layout)
}
