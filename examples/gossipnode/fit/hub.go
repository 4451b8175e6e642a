package fit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/peer/table"
)

// hub is the meeting point of members that are goroutines of this process. Sums are added in
// the order of the members, so that they are the same in each run.
type hub struct {
	mutex  sync.Mutex
	here   int
	bring  []any
	name   string
	result any
	met    chan struct{} // closed when all have come
}

func newHub(members int) *hub {
	return &hub{bring: make([]any, members), met: make(chan struct{})}
}

// join is the joiner of one member.
func (h *hub) join(number int) joiner {
	return func(context.Context, func(report)) (table.Flock, func() (uint64, error), error) {
		return seat{h, number}, func() (uint64, error) { return 0, nil }, nil
	}
}

// seat is one member's place at a hub.
type seat struct {
	*hub
	number int
}

// meet hands in what this member brings, and returns what combine makes of what all do.
func (s seat) meet(ctx context.Context, name string, mine any, combine func(all []any) (any, error)) (any, error) {
	h := s.hub
	h.mutex.Lock()
	if h.here > 0 && h.name != name {
		h.mutex.Unlock()
		return nil, fmt.Errorf("one member is at %s, another at %s", name, h.name)
	}
	h.name, h.bring[s.number] = name, mine
	h.here++
	met := h.met
	if h.here == len(h.bring) {
		var err error
		if h.result, err = combine(h.bring); err != nil {
			h.result = err
		}
		h.here, h.met = 0, make(chan struct{})
		close(met)
	}
	h.mutex.Unlock()
	select {
	case <-met:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	h.mutex.Lock() // the next result cannot be there before this member has come again
	defer h.mutex.Unlock()
	if err, ok := h.result.(error); ok {
		return nil, err
	}
	return h.result, nil
}

func (s seat) fold(ctx context.Context, name string, vector []float64, add func(a, b float64) float64) ([]float64, int, error) {
	folded, err := s.meet(ctx, name, vector, func(all []any) (any, error) {
		sum := slices.Clone(all[0].([]float64))
		for _, other := range all[1:] {
			v := other.([]float64)
			if len(v) != len(sum) {
				return nil, fmt.Errorf("%s: one member brings %d numbers, another %d", name, len(sum), len(v))
			}
			for i, x := range v {
				sum[i] = add(sum[i], x)
			}
		}
		return sum, nil
	})
	if err != nil {
		return nil, 0, err
	}
	return slices.Clone(folded.([]float64)), len(s.bring), nil
}

// Sum implements table.Flock.
func (s seat) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return s.fold(ctx, name, vector, func(a, b float64) float64 { return a + b })
}

// Max implements table.Flock.
func (s seat) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return s.fold(ctx, name, vector, func(a, b float64) float64 { return max(a, b) })
}

// Gather implements table.Flock.
func (s seat) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	all, err := s.meet(ctx, name, data, func(all []any) (any, error) {
		var copied [][]byte
		for _, data := range all {
			copied = append(copied, slices.Clone(data.([]byte)))
		}
		return copied, nil
	})
	if err != nil {
		return nil, err
	}
	var copied [][]byte
	for _, data := range all.([][]byte) {
		copied = append(copied, slices.Clone(data))
	}
	return copied, nil
}

var _ table.Flock = seat{}

// counted tells of the sums that a member takes part in.
type counted struct {
	table.Flock
	// seen is called when a sum begins.
	seen func(name string)
}

func (c counted) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	c.seen(name)
	return c.Flock.Sum(ctx, name, vector)
}

func (c counted) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	c.seen(name)
	return c.Flock.Max(ctx, name, vector)
}

func (c counted) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	c.seen(name)
	return c.Flock.Gather(ctx, name, data)
}
