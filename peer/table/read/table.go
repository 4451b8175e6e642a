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

	"github.com/seed-97356399/murmuration/peer/table"
)

// What a zero Config stands for.
const (
	DefaultTolerance = 0.001
	// MinTolerated damaged rows are tolerated in a table of any size, so that one torn line of
	// a short file does not end a run.
	MinTolerated     = 10
	DefaultBatchRows = 4096
	// InferRows of the first file decide what the columns are.
	InferRows = 10_000
)

// Bounds of what is read.
const (
	// MaxRecord is the size of a line of text, or of a record whose quoted fields span several.
	MaxRecord = 1 << 20
	// MaxColumns of a table.
	MaxColumns = 1 << 14
	// MaxPage is the size of a page of Parquet, uncompressed. Of each column one is held, so a
	// row group may be of any size.
	MaxPage = 256 << 20
	// maxBatchText ends a batch early when its new texts are longer than this.
	maxBatchText = 32 << 20
	// maxBatchValues ends a batch of very many columns early.
	maxBatchValues = 1 << 20
)

// DefaultMissing are the texts that stand for a value that is not there. Spaces around them do
// not count.
var DefaultMissing = []string{"", "NA", "NaN", "nan", "null", "NULL", "N/A"}

// Config says how files are read. Its zero value reads what their names say, and infers what
// the columns are.
type Config struct {
	// Format is "csv", "tsv", "jsonl" or "parquet" for files whose names do not say.
	Format string
	// Schema pins the columns' kinds; nil infers them from the first InferRows rows.
	Schema *table.Schema
	// Kinds pins those of some columns, by name, and leaves the others to be inferred.
	Kinds map[string]table.Kind
	// Others says that a file may have columns that the schema does not: they are not looked at.
	Others bool
	// Encoding is that of text files; "" is UTF-8. CheckEncoding says which there are. A byte
	// order mark, of UTF-16 too, counts more.
	Encoding string
	// Separator is what stands between the fields of a CSV or TSV file, 0 is a comma or a tab.
	// Point is what stands before the fraction of a number there, 0 is '.'.
	Separator, Point byte
	// Missing are the texts of a text file that stand for a missing value; nil is
	// DefaultMissing. A number that is NaN, and null in JSON and Parquet, are always missing.
	Missing []string
	// Tolerance is the share of rows, of those read so far, that may be damaged; 0 is
	// DefaultTolerance, less than 0 none. Unless it is less than 0, MinTolerated always may.
	Tolerance float64
	// BatchRows is the number of rows of a batch; 0 is DefaultBatchRows.
	BatchRows int
}

// check looks at what tells how texts are read.
func (c Config) check() error {
	if c.Separator >= utf8.RuneSelf || c.Separator == '"' || c.Separator == '\n' || c.Separator == '\r' || c.Separator != 0 && c.Separator == c.Point {
		return fmt.Errorf("%q cannot be between the fields of a line", c.Separator)
	}
	if c.point() != '.' && c.Point != ',' {
		return fmt.Errorf("%q cannot be before the fraction of a number: want '.' or ','", c.Point)
	}
	return CheckEncoding(c.Encoding)
}

func (c Config) point() byte { return cmp.Or(c.Point, '.') }

// pin sets the kinds that are not to be inferred.
func (c Config) pin(s *table.Schema) error {
	for name, kind := range c.Kinds {
		at := s.Find(name)
		if at < 0 {
			return fmt.Errorf("a kind is given for column %q, which is not there (it has %s)", name, strings.Join(s.Names(), ", "))
		}
		s.Fields[at] = table.Field{Name: name, Kind: kind}
	}
	return nil
}

// Table is files with the same columns, read as one table. It holds no file open; several
// goroutines may go over its rows at the same time, each with its own pass.
type Table struct {
	files  []file
	config Config

	mu      sync.Mutex
	schema  *table.Schema
	damaged Damaged
	notes   []Note
}

// Open looks at the files and their first rows. A path is a file, a folder (all files in it
// that are named as tables, of one format) or a pattern as filepath.Glob takes it; files come
// in the order of paths, those of a folder or pattern in that of their names.
func Open(paths []string, c Config) (*Table, error) {
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
		if schema, t.notes, err = infer(t.files[0], c); err != nil {
			return nil, err
		}
		if err := c.pin(schema); err != nil {
			return nil, fmt.Errorf("opening %s: %w", t.files[0].path, err)
		}
	}
	return t, t.Pin(schema)
}

// Schema is the columns as they are read: pinned, or inferred.
func (t *Table) Schema() *table.Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.schema
}

// Files are the files that the table is read from, in order.
func (t *Table) Files() []string {
	paths := make([]string, len(t.files))
	for i, f := range t.files {
		paths[i] = f.path
	}
	return paths
}

// Named says whether the files themselves name all columns, as JSON lines do not.
func (t *Table) Named() bool {
	return !slices.ContainsFunc(t.files, func(f file) bool { return f.format == "jsonl" })
}

// Pin reads with another schema in passes that begin from now on, as table.Agree has returned
// it: the same columns, perhaps of other kinds and in another order. Columns that a file
// lacks, or has more, are a *table.SchemaError that names the file. JSON lines have no header,
// so a column of theirs is first missed when its rows are read.
func (t *Table) Pin(s *table.Schema) error {
	for _, f := range t.files {
		if err := f.check(s, t.config); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.schema = s
	return nil
}

// Rows is a table.Source: batches of rows in bounded memory, from the first file to the last,
// decoded anew in each pass. A row's key counts all rows, damaged ones too, from 0; no
// header, no blank line.
func (t *Table) Rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	return func(yield func(*table.Batch, error) bool) {
		p := &pass{
			builder: newBuilder(t.Schema(), t.config, t.config.BatchRows),
			damaged: Damaged{tolerance: t.config.Tolerance},
		}
		defer func() { t.note(p) }()
		for _, f := range t.files {
			if err := p.read(ctx, f, yield); err != nil {
				if !errors.Is(err, errEnough) {
					yield(nil, err)
				}
				return
			}
		}
		if p.builder.n > 0 {
			yield(p.builder.batch(), nil)
		} else if err := p.damaged.all(); err != nil {
			yield(nil, err)
		}
	}
}

// Damaged is what was set aside by the pass that has come farthest.
func (t *Table) Damaged() Damaged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damaged
}

// Notes tell what who reads should know of columns, of what has been looked at until now.
func (t *Table) Notes() []Note {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.notes)
}

func (t *Table) note(p *pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.damaged.Rows >= t.damaged.Rows {
		t.damaged = p.damaged
	}
	for i, f := range p.builder.schema.Fields {
		n := Note{Column: f.Name, Long: true}
		if p.builder.columns[i].long && !slices.Contains(t.notes, n) {
			t.notes = append(t.notes, n)
		}
	}
}

// pass goes once over the files.
type pass struct {
	builder *builder
	damaged Damaged
}

// errEnough says that the consumer wants no more.
var errEnough = errors.New("enough")

// read hands on the batches of one file; rows that fill no batch stay for the next file.
func (p *pass) read(ctx context.Context, f file, yield func(*table.Batch, error) bool) error {
	r, err := f.open(p.builder)
	if err != nil {
		return err
	}
	defer r.close()
	for {
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
		if err := ctx.Err(); err != nil {
			return err
		}
		if !yield(p.builder.batch(), nil) {
			return errEnough
		}
	}
}
