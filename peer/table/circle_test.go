package table

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"testing"
	"testing/synctest"
)

// circle is a flock in memory, of members that call one after the other in the same order.
type circle struct {
	mutex   sync.Mutex
	brought map[string][][]byte
	arrived map[string]int
	whole   map[string]chan struct{}
	members int
}

// inCircle runs a member each in a goroutine; a test fails if they wait for one another for
// ever.
func inCircle(t *testing.T, members int, member func(f Flock, i int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &circle{brought: map[string][][]byte{}, arrived: map[string]int{}, whole: map[string]chan struct{}{}, members: members}
		var all sync.WaitGroup
		for i := range members {
			all.Go(func() { member(inOrder{c, i}, i) })
		}
		all.Wait()
	})
}

// inOrder is a member's place in a circle.
type inOrder struct {
	*circle
	place int
}

func (m inOrder) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	m.mutex.Lock()
	if m.whole[name] == nil {
		m.brought[name], m.whole[name] = make([][]byte, m.members), make(chan struct{})
	}
	m.brought[name][m.place] = data
	if m.arrived[name]++; m.arrived[name] == m.members {
		close(m.whole[name])
	}
	whole, all := m.whole[name], m.brought[name]
	m.mutex.Unlock()
	<-whole
	return all, ctx.Err()
}

func (m inOrder) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	var data []byte
	for _, v := range vector {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	all, err := m.Gather(ctx, name, data)
	sum := make([]float64, len(vector))
	for _, brought := range all {
		for i := range sum {
			sum[i] += math.Float64frombits(binary.LittleEndian.Uint64(brought[8*i:]))
		}
	}
	return sum, m.members, err
}

func (m inOrder) Max(context.Context, string, []float64) ([]float64, int, error) {
	panic("not asked for here")
}

// rowsOf is a batch of a column of numbers "n" and one of categories "c", "" missing.
func rowsOf(first int64, numbers []float64, texts []string) *Batch {
	b := &Batch{Rows: len(numbers), First: first, Columns: []Column{
		{Name: "n", Kind: Number, Numbers: numbers},
		{Name: "c", Kind: Category, Values: []string{"in no row"}},
	}}
	codes := map[string]int32{}
	for _, text := range texts {
		code, ok := codes[text]
		switch {
		case text == "":
			code = Missing
		case !ok:
			code = int32(len(b.Columns[1].Values))
			codes[text] = code
			b.Columns[1].Values = append(b.Columns[1].Values, text)
		}
		b.Columns[1].Codes = append(b.Columns[1].Codes, code)
	}
	return b
}

var rowsSchema = &Schema{Fields: []Field{{Name: "n"}, {Name: "c", Kind: Category}}}
