// Package flocktest is a flock in the memory of one test, for what sums over one: as many
// members as goroutines.
package flocktest

import (
	"context"
	"fmt"
	"sync"
)

// Member is one of a flock: a table.Flock.
type Member struct {
	flock *flock
	index int
}

type flock struct {
	mu    sync.Mutex
	size  int
	calls map[string]*call
}

type call struct {
	vectors [][]float64
	blocks  [][]byte
	came    int
	all     chan struct{} // closed when all have come
	fault   error
}

// Run has each of n members do something at once, and waits for them.
func Run(n int, do func(m Member, i int)) {
	f := &flock{size: n, calls: make(map[string]*call)}
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { do(Member{f, i}, i) })
	}
	group.Wait()
}

// together waits until all members have called by a name.
func (m Member) together(ctx context.Context, name string, vector []float64, block []byte) (*call, error) {
	f := m.flock
	f.mu.Lock()
	c := f.calls[name]
	if c == nil {
		c = &call{vectors: make([][]float64, f.size), blocks: make([][]byte, f.size), all: make(chan struct{})}
		f.calls[name] = c
	}
	c.vectors[m.index], c.blocks[m.index] = append([]float64{}, vector...), append([]byte{}, block...)
	for _, other := range c.vectors {
		if other != nil && len(other) != len(vector) {
			c.fault = fmt.Errorf("%q: vectors of %d and %d numbers", name, len(vector), len(other))
		}
	}
	if c.came++; c.came == f.size {
		close(c.all)
	}
	f.mu.Unlock()
	select {
	case <-c.all:
		return c, c.fault
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m Member) fold(ctx context.Context, name string, vector []float64, of func(a, b float64) float64) ([]float64, int, error) {
	c, err := m.together(ctx, name, vector, nil)
	if err != nil {
		return nil, 0, err
	}
	total := append([]float64{}, c.vectors[0]...)
	for _, v := range c.vectors[1:] {
		for i := range total {
			total[i] = of(total[i], v[i])
		}
	}
	return total, m.flock.size, nil
}

// Sum is as table.Flock has it.
func (m Member) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return m.fold(ctx, name, vector, func(a, b float64) float64 { return a + b })
}

// Max is as table.Flock has it.
func (m Member) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return m.fold(ctx, name, vector, func(a, b float64) float64 { return max(a, b) })
}

// Gather is as table.Flock has it.
func (m Member) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	c, err := m.together(ctx, name, nil, data)
	if err != nil {
		return nil, err
	}
	return append([][]byte{}, c.blocks...), nil
}
