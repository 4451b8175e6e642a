package rows

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// Spread exchanges this peer's training rows for a random sample of all members' training rows, if --share-rows is
// set: prepared rows then leave their members.
func (s Share) Spread(ctx context.Context, flock table.Flock, own *dataset.Set) (*dataset.Set, error) {
	if s.Table.ShareRows == 0 {
		return own, nil
	}
	shared, err := prepare.Share(ctx, table.Scope(flock, "fit/share"), batchOf(own), prepare.Sharing{Rows: s.Table.ShareRows, Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	return setOfBatch(shared, own.Classes())
}

// batchOf returns the rows of a set as columns; the last column is the class.
func batchOf(set *dataset.Set) *table.Batch {
	b := &table.Batch{Rows: set.Len(), Columns: make([]table.Column, set.Inputs()+1)}
	for j := range b.Columns {
		b.Columns[j] = table.Column{Name: fmt.Sprint(j), Numbers: make([]float64, set.Len())}
	}
	var one dataset.Batch
	for i := range set.Len() {
		set.Fill(&one, i, i+1)
		for j, x := range one.X {
			b.Columns[j].Numbers[i] = float64(x)
		}
		b.Columns[set.Inputs()].Numbers[i] = float64(set.Label(i))
	}
	return b
}

// setOfBatch is the inverse of batchOf.
func setOfBatch(b *table.Batch, classes int) (*dataset.Set, error) {
	inputs := len(b.Columns) - 1
	numbers, labels := make(tensor.Vector, b.Rows*inputs), make([]uint8, b.Rows)
	for i := range b.Rows {
		for j := range inputs {
			numbers[i*inputs+j] = float32(b.Columns[j].Numbers[i])
		}
		labels[i] = uint8(b.Columns[inputs].Numbers[i])
	}
	return dataset.NewRows(numbers, labels, inputs, classes)
}
