package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/peer/decoded"
	"github.com/seed-97356399/murmuration/peer/table"
)

// Defaults of Config.
const (
	DefaultTolerance = 0.001
	// MinTolerated is how many damaged rows are tolerated in a table of any size, so that one torn line of a short
	// file does not end a run.
	MinTolerated     = 10
	DefaultBatchRows = 4096
	// InferRows is how many rows of the first file decide the kinds of the columns.
	InferRows = 10_000
)

// Bounds of what is read.
const (
	// MaxRecord bounds a line of text, or a record whose quoted fields span several lines, in bytes.
	MaxRecord = 1 << 20
	// MaxColumns bounds the columns of a table.
	MaxColumns = 1 << 14
	// MaxPage bounds a page of Parquet, uncompressed, in bytes. One page of each column is in memory at a time, so
	// row groups may be of any size.
	MaxPage = 256 << 20
	// maxBatchText ends a batch early when the new texts of a column are longer, in bytes.
	maxBatchText = 32 << 20
	// maxBatchValues ends a batch early when it has more values.
	maxBatchValues = 1 << 20
)

// DefaultMissing are the texts that stand for a missing value. Spaces around them are ignored.
var DefaultMissing = []string{"", "NA", "NaN", "nan", "null", "NULL", "N/A"}

// Config says how files are read. Its zero value derives formats from the names of files, and infers the kinds of
// columns.
type Config struct {
	// Format is "csv", "tsv", "jsonl" or "parquet", for files whose names do not show it.
	Format string
	// Schema fixes the kinds of columns; nil infers them from the first InferRows rows.
	Schema *table.Schema
	// Kinds fixes the kinds of some columns, by name; the others are inferred.
	Kinds map[string]table.Kind
	// Others allows columns that the schema does not have; they are ignored.
	Others bool
	// Encoding is the encoding of text files; "" is UTF-8. CheckEncoding lists the names. A byte order mark, also of
	// UTF-16, overrides it.
	Encoding string
	// Separator separates the fields of a CSV or TSV file; 0 is a comma for CSV and a tab for TSV. Point is the
	// decimal point there; 0 is '.'.
	Separator, Point byte
	// Missing are the texts of a text file that stand for a missing value; nil is DefaultMissing. A number that is
	// NaN, and null in JSON and Parquet, are always missing.
	Missing []string
	// Tolerance is the share of the rows read so far that may be damaged; 0 is DefaultTolerance, a negative number
	// allows none. Unless it is negative, MinTolerated rows are always allowed.
	Tolerance float64
	// BatchRows is the number of rows of a batch; 0 is DefaultBatchRows.
	BatchRows int
	// Decoded is where decoded rows are kept, so that several jobs on one machine decode them once; nil is nowhere.
	Decoded *decoded.Folder
}

// check returns an error if a setting for reading texts is invalid.
func (c Config) check() error {
	if c.Separator >= utf8.RuneSelf || c.Separator == '"' || c.Separator == '\n' || c.Separator == '\r' || c.Separator != 0 && c.Separator == c.Point {
		return fmt.Errorf("%q cannot separate the fields of a line", c.Separator)
	}
	if c.point() != '.' && c.Point != ',' {
		return fmt.Errorf("%q cannot be a decimal point: want '.' or ','", c.Point)
	}
	return CheckEncoding(c.Encoding)
}

func (c Config) point() byte { return cmp.Or(c.Point, '.') }

// pin sets the kinds that Kinds fixes.
func (c Config) pin(s *table.Schema) error {
	for name, kind := range c.Kinds {
		at := s.Find(name)
		if at < 0 {
			return fmt.Errorf("there is no column %q, whose kind is given (there are %s)", name, strings.Join(s.Names(), ", "))
		}
		s.Fields[at] = table.Field{Name: name, Kind: kind}
	}
	return nil
}

// Table is a list of files with the same columns, read as one table. It keeps no file open between passes. Several
// goroutines may read its rows at the same time, each in its own pass.
type Table struct {
	files  []file
	config Config

	mu      sync.Mutex
	schema  *table.Schema
	damaged Damaged
	notes   []Note
}

// Open finds the files and reads their first rows. A path is a file, a folder (all its files with the name of a
// table, of one format) or a pattern of filepath.Glob. Files are in the order of paths, those of a folder or pattern
// in the order of their names. With Config.Decoded, it may wait for another job that decodes, until ctx ends.
func Open(ctx context.Context, paths []string, c Config) (*Table, error) {
	c.Tolerance = cmp.Or(c.Tolerance, DefaultTolerance)
	if c.BatchRows <= 0 {
		c.BatchRows = DefaultBatchRows
	}
	if c.Missing == nil {
		c.Missing = DefaultMissing
	}
	err := c.check()
	if err != nil {
		return nil, err
	}
	t := &Table{config: c}
	if t.files, err = find(paths, c); err != nil {
		return nil, err
	}
	schema := c.Schema
	if schema == nil {
		if schema, t.notes, err = inferOnce(ctx, t.files[0], c); err != nil {
			return nil, err
		}
		if err := c.pin(schema); err != nil {
			return nil, fmt.Errorf("opening %s: %w", t.files[0].path, err)
		}
	}
	t.schema = schema
	return t, checkOnce(ctx, t.files, schema, c)
}

// Schema returns the columns with their fixed or inferred kinds.
func (t *Table) Schema() *table.Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.schema
}

// Files returns the files of the table, in order.
func (t *Table) Files() []string {
	paths := make([]string, len(t.files))
	for i, f := range t.files {
		paths[i] = f.path
	}
	return paths
}

// Named tells whether the files themselves list all columns; JSON lines do not.
func (t *Table) Named() bool {
	return !slices.ContainsFunc(t.files, func(f file) bool { return f.format == "jsonl" })
}

// Pin sets the schema of all later passes, usually to the result of table.Agree: the same columns, perhaps of other
// kinds and in another order. Missing or additional columns of a file are a *table.SchemaError that names the file.
// JSON lines have no header, so a missing column is found only when rows are read.
func (t *Table) Pin(s *table.Schema) error {
	if err := checkHeads(t.files, s, t.config); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.schema = s
	return nil
}

// Rows is a table.Source. It returns batches of rows, from the first file to the last, in bounded memory; each pass
// decodes the files anew, or once into Config.Decoded. A row's key is its number from 0, counting damaged rows but no header
// and no blank line.
func (t *Table) Rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	return func(yield func(*table.Batch, error) bool) {
		schema, given, done := t.Schema(), 0, false
		if f := t.config.Decoded; f != nil {
			file, err := f.Open(ctx, t.config.recipe("rows", t.files, schema), func(w io.Writer) error { return t.keep(ctx, schema, w) })
			if err == nil {
				defer file.Close()
				if given, done = t.replay(file, schema, yield); done {
					return
				}
			}
		}
		t.decode(ctx, schema, func(b *table.Batch, err error) bool {
			if given > 0 && err == nil {
				given--
				return true
			}
			return yield(b, err)
		})
	}
}

// decode goes once over the files, and returns what it saw beside the rows.
func (t *Table) decode(ctx context.Context, schema *table.Schema, yield func(*table.Batch, error) bool) *pass {
	p := &pass{
		builder: newBuilder(schema, t.config, t.config.BatchRows),
		damaged: Damaged{tolerance: t.config.Tolerance},
	}
	defer func() { t.note(p.damaged, p.long()) }()
	for _, f := range t.files {
		if err := p.read(ctx, f, yield); err != nil {
			if !errors.Is(err, errEnough) {
				yield(nil, err)
			}
			return p
		}
	}
	if p.builder.n > 0 {
		yield(p.builder.batch(), nil)
	} else if err := p.damaged.all(); err != nil {
		yield(nil, err)
	}
	return p
}

// Damaged returns the damaged rows of the pass that has read the most rows.
func (t *Table) Damaged() Damaged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damaged
}

// Notes returns the warnings about columns so far.
func (t *Table) Notes() []Note {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.notes)
}

func (t *Table) note(damaged Damaged, long []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if damaged.Rows >= t.damaged.Rows {
		t.damaged = damaged
	}
	for _, name := range long {
		if n := (Note{Column: name, Long: true}); !slices.Contains(t.notes, n) {
			t.notes = append(t.notes, n)
		}
	}
}

// pass reads all files once.
type pass struct {
	builder *builder
	damaged Damaged
}

// long returns the columns with integers beyond maxExact.
func (p *pass) long() (names []string) {
	for i, f := range p.builder.schema.Fields {
		if p.builder.columns[i].long {
			names = append(names, f.Name)
		}
	}
	return names
}

// errEnough: the consumer needs no more batches.
var errEnough = errors.New("enough")

// read yields the batches of one file. Rows that fill no batch stay for the next file.
func (p *pass) read(ctx context.Context, f file, yield func(*table.Batch, error) bool) error {
	r, err := f.open(p.builder)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		damage, err := r.next(p.builder)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", f.path, err)
		case damage != nil:
			damage.File, damage.Row = f.path, p.damaged.Rows
			p.damaged.Rows++
			if err := p.damaged.add(*damage); err != nil {
				return err
			}
			continue
		}
		p.builder.end(p.damaged.Rows)
		p.damaged.Rows++
		if !p.builder.full() {
			continue
		}
		if !yield(p.builder.batch(), nil) {
			return errEnough
		}
	}
}
