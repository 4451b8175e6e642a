package read

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/peer/decoded"
	"github.com/seed-97356399/murmuration/peer/table"
)

// recipe identifies what is decoded: its kind, the files, the settings, and the columns if they are known.
func (c Config) recipe(what string, files []file, schema *table.Schema) decoded.Recipe {
	r := decoded.Recipe{}
	for _, f := range files {
		r.Files = append(r.Files, f.path)
	}
	c.Schema, c.Decoded = nil, nil
	r.Settings = fmt.Sprintf("%s %#v %#v", what, c, schema)
	return r
}

// inferOnce is infer, but only one of several jobs does the work.
func inferOnce(ctx context.Context, f file, c Config) (schema *table.Schema, notes []Note, err error) {
	type columns struct {
		Schema *table.Schema
		Notes  []Note
	}
	of, err := decoded.Value(ctx, c.Decoded, c.recipe("columns", []file{f}, nil), func() (of columns, err error) {
		of.Schema, of.Notes, err = infer(f, c)
		return of, err
	})
	return of.Schema, of.Notes, err
}

// checkOnce is checkHeads, but only one of several jobs does the work.
func checkOnce(ctx context.Context, files []file, s *table.Schema, c Config) error {
	_, err := decoded.Bytes(ctx, c.Decoded, c.recipe("heads", files, s), func() ([]byte, error) {
		return nil, checkHeads(files, s, c)
	})
	return err
}

// kept is an entry of a file of decoded rows. The last has no batch: it holds the damaged rows and Long, for Table.note.
type kept struct {
	Batch *table.Batch
	// More says for each column whether its Values continue those of the previous batch, which are not repeated.
	More    []bool
	Damaged Damaged
	Long    []string
}

// keep decodes all rows and writes them to a file.
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

// replay yields the batches of a file, and returns their number. Done is false if the file is damaged or ends too early.
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
			if k.More[i] { // earlier batches share the beginning of this array
				c.Values = append(last[i], c.Values...)
			}
			last[i] = c.Values
		}
		if !yield(k.Batch, nil) {
			return batches, true
		}
	}
}
