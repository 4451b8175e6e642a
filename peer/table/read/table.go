package read

import (
	"context"
	"iter"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Config says how files are read. Its zero value reads what their names say, and infers what
// the columns are.
type Config struct {
	// Format is "csv", "tsv", "jsonl" or "parquet" for files whose names do not say.
	Format string
	// Schema pins the columns' kinds; nil infers them from the first InferRows rows.
	Schema *table.Schema
	// Missing are the texts that stand for a missing value; nil is DefaultMissing. A
	// number that is NaN, and null in JSON and Parquet, are always missing.
	Missing []string
	// Tolerance is the share of rows that may be damaged; 0 is DefaultTolerance, less than
	// 0 none. MinTolerated rows are always tolerated unless it is less than 0.
	Tolerance float64
	// BatchRows is the number of rows of a batch; 0 is DefaultBatchRows.
	BatchRows int
}

// Table is files with the same columns, read as one table. It holds no file open; several
// goroutines may go over its rows at the same time, each with its own pass.
type Table struct{}

// Open looks at the files and their first rows. A path is a file, a folder (all files in it
// that are named as tables, of one format) or a pattern as filepath.Glob takes it; files come
// in the order of their paths.
func Open(paths []string, c Config) (*Table, error) { return nil, errNotYet }

// Schema is the columns as they are read: pinned, or inferred.
func (t *Table) Schema() *table.Schema { return nil }

// Pin reads with another schema from now on, as table.Agree has returned it: the same columns,
// perhaps of other kinds and in another order. Columns that differ are a *table.SchemaError.
func (t *Table) Pin(s *table.Schema) error { return errNotYet }

// Rows is a table.Source: batches of rows in bounded memory, from the first file to the last,
// decoded anew in each pass. A row's key counts all rows, damaged ones too, from 0; no
// header, no blank line.
func (t *Table) Rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	return func(yield func(*table.Batch, error) bool) { yield(nil, errNotYet) }
}

// Damaged is what was set aside by the pass that has come farthest.
func (t *Table) Damaged() Damaged { return Damaged{} }

// Damaged counts the rows that could not be read, and tells the first of them.
type Damaged struct {
	// Rows were read or set aside; Count of them were set aside.
	Rows, Count int64
	// First are the first MaxKept of them.
	First []Damage
}

// Damage is a row that could not be read.
type Damage struct {
	File   string
	Line   int64  // in the file, from 1; for Parquet the row
	Row    int64  // its key
	Column string // "" if it is the row as a whole
	Reason string
	Text   string // the start of the row or of the value
}

// Shared goes over a source once and gives its batches, held in memory, to all who ask: N
// peers of one process decode each row once. A source of more than limit bytes is not held:
// each then decodes it on its own.
func Shared(source table.Source, limit int64) table.Source { return source }
