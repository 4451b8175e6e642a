package table

import (
	"context"
	"errors"
	"fmt"
)

// ErrTooLarge: a source has more bytes than Hold may take.
var ErrTooLarge = errors.New("the rows take too much memory")

// Hold reads a source into memory. It fails with ErrTooLarge as soon as the rows take more than
// limit bytes: a small compressed file may need more memory than any machine has.
func Hold(ctx context.Context, source Source, limit int64) ([]*Batch, error) {
	var held []*Batch
	size, last := int64(0), &Batch{}
	for b, err := range source(ctx) {
		if err != nil {
			return nil, err
		}
		if size += added(b, last); size > limit {
			row := b.First
			if b.Rows > 0 { // a filter may leave none, and all texts
				row = b.Key(b.Rows - 1)
			}
			return nil, fmt.Errorf("%w: those up to row %d more than %d MiB", ErrTooLarge, row, limit>>20)
		}
		last, held = b, append(held, b)
	}
	return held, nil
}

// textHeader is the memory of a text beside its bytes.
const textHeader = 16

// added is the memory of a batch in addition to the previous one, with which it may share
// the texts of its categories.
func added(b, last *Batch) int64 {
	n := int64(8 * len(b.Keys))
	for i := range b.Columns {
		c := &b.Columns[i]
		n += int64(8*len(c.Numbers) + 4*len(c.Codes))
		texts := c.Values
		if i < len(last.Columns) {
			if before := last.Columns[i].Values; len(before) > 0 && len(texts) >= len(before) && texts[len(before)-1] == before[len(before)-1] {
				texts = texts[len(before):]
			}
		}
		for _, text := range texts {
			n += int64(textHeader + len(text))
		}
	}
	return n
}
