package table

import (
	"context"
	"fmt"
	"slices"
)

const maxNames = 1 << 16 // that Together remembers, to detect a name that is used twice

// Together runs a flock of n members in this process, for tests and other uses without a network. It calls do on
// a goroutine for each member, with its flock and its number from 0, and returns when all calls have returned.
//
// A member that returns has left, and the others go on without it. To let a member fail at some sum, wrap its Flock.
// A call ends with its context; its data still counts if the others come before its member calls again or returns.
// If members make different calls, or use a name twice, all get an error from then on. Sums are added in the order
// of the numbers. A member makes one call at a time, and the data of all members is kept during it.
func Together(n int, do func(flock Flock, member int)) {
	calls, waiting, names, fault := make(chan *call), make([]*call, max(n, 0)), map[string]bool{}, error(nil)
	for i := range n {
		go func() {
			bring := oneOf(func(c *call) { c.member = i; calls <- c })
			defer bring(&call{})
			do(bring, i)
		}()
	}
	for here := n; here > 0; {
		c := <-calls
		if waiting[c.member] = c; c.over == nil {
			waiting[c.member] = nil
			here--
		}
		came := slices.DeleteFunc(slices.Clone(waiting), func(c *call) bool { return c == nil })
		for _, other := range came {
			if fault == nil && c.over != nil && (c.what != other.what || names[c.name]) {
				fault = fmt.Errorf("member %d calls %s, member %d %s: all call the same, each name once", c.member, c.what, other.member, other.what)
			}
		}
		if len(came) >= here || fault != nil {
			for _, c := range came {
				c.came, names[c.name] = came, true
				c.over <- fault
			}
			clear(waiting)
		}
		if len(names) >= maxNames {
			clear(names)
		}
	}
}

// call is the data of one member, and, when over, that of all members that came.
type call struct {
	member     int
	name, what string
	vector     []float64
	data       []byte
	over       chan error // nil for a member that has returned
	came       []*call
}

type oneOf func(*call)

func (bring oneOf) meet(ctx context.Context, c call) ([]*call, error) {
	c.over = make(chan error, 1) // buffered, since the call may have ended with its context
	if ctx.Err() == nil {
		bring(&c)
	}
	select {
	case err := <-c.over:
		return c.came, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (bring oneOf) fold(ctx context.Context, name, op string, vector []float64, of func(a, b float64) float64) ([]float64, int, error) {
	came, err := bring.meet(ctx, call{name: name, what: fmt.Sprintf("%s %q of %d numbers", op, name, len(vector)), vector: slices.Clone(vector)})
	if err != nil {
		return nil, 0, err
	}
	total := slices.Clone(came[0].vector)
	for _, other := range came[1:] {
		for i, x := range other.vector {
			total[i] = of(total[i], x)
		}
	}
	return total, len(came), nil
}

func (bring oneOf) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return bring.fold(ctx, name, "Sum", vector, func(a, b float64) float64 { return a + b })
}

func (bring oneOf) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return bring.fold(ctx, name, "Max", vector, func(a, b float64) float64 { return max(a, b) })
}

func (bring oneOf) Gather(ctx context.Context, name string, data []byte) (all [][]byte, err error) {
	came, err := bring.meet(ctx, call{name: name, what: fmt.Sprintf("Gather %q", name), data: slices.Clone(data)})
	for _, c := range came {
		all = append(all, slices.Clone(c.data))
	}
	return all, err
}
