package read

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/peer/decoded"
	"github.com/seed-97356399/murmuration/peer/table"
)

// recipe is that of what is read of files, with these columns, if they are known.
func (c Config) recipe(what string, files []file, schema *table.Schema) decoded.Recipe {
	r := decoded.Recipe{}
	for _, f := range files {
		r.Files = append(r.Files, f.path)
	}
	c.Schema, c.Decoded = nil, nil
	r.Settings = fmt.Sprintf("%s %#v %#v", what, c, schema)
	return r
}

// inferOnce is infer, of which one job of several that ask does the work.
func inferOnce(f file, c Config) (schema *table.Schema, notes []Note, err error) {
	told, err := decoded.Bytes(context.Background(), c.Decoded, c.recipe("columns", []file{f}, nil), func() ([]byte, error) {
		if schema, notes, err = infer(f, c); err != nil {
			return nil, err
		}
		return json.Marshal([]any{schema, notes})
	})
	if err == nil {
		err = json.Unmarshal(told, &[]any{&schema, &notes})
	}
	return schema, notes, err
}

// checkOnce checks files likewise.
func checkOnce(files []file, s *table.Schema, c Config) error {
	_, err := decoded.Bytes(context.Background(), c.Decoded, c.recipe("heads", files, s), func() ([]byte, error) {
		for _, f := range files {
			if err := f.check(s, c); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return err
}

// kept is a batch as a file of decoded rows has it. One without a batch is the last, and tells what there was beside them.
type kept struct {
	Batch *table.Batch
	// More says, for each column, that its Values follow those of the batch before, which are not repeated.
	More    []bool
	Damaged Damaged
	Long    []string
}

// keep decodes all rows into a file.
func (t *Table) keep(ctx context.Context, schema *table.Schema, w io.Writer) (fault error) {
	out, last := gob.NewEncoder(w), make([][]string, len(schema.Fields))
	p := t.decode(ctx, schema, func(b *table.Batch, err error) bool {
		if fault = err; err == nil {
			k := kept{Batch: &table.Batch{Columns: slices.Clone(b.Columns), Rows: b.Rows, First: b.First, Keys: b.Keys}, More: make([]bool, len(last))}
			for i := range last {
				c, n := &k.Batch.Columns[i], len(last[i])
				if k.More[i] = len(c.Values) >= n && slices.Equal(c.Values[:n], last[i]); k.More[i] {
					last[i], c.Values = c.Values, c.Values[n:]
				} else {
					last[i] = c.Values
				}
			}
			fault = out.Encode(k)
		}
		return fault == nil
	})
	if fault == nil {
		fault = out.Encode(kept{Damaged: p.damaged, Long: p.long()})
	}
	return fault
}

// replay hands on what a file has, and tells how many batches; done is false if the file ended before the consumer did.
func (t *Table) replay(from io.Reader, schema *table.Schema, yield func(*table.Batch, error) bool) (batches int, done bool) {
	in, last := gob.NewDecoder(from), make([][]string, len(schema.Fields))
	for ; ; batches++ {
		var k kept
		if err := in.Decode(&k); err != nil || k.Batch != nil && (len(k.Batch.Columns) != len(last) || len(k.More) != len(last)) {
			return batches, false
		}
		if k.Batch == nil {
			t.note(k.Damaged, k.Long)
			return batches, true
		}
		for i := range last {
			c := &k.Batch.Columns[i]
			if k.More[i] { // batches before keep their part of the same array
				c.Values = append(last[i], c.Values...)
			}
			last[i] = c.Values
		}
		if !yield(k.Batch, nil) {
			return batches, true
		}
	}
}
