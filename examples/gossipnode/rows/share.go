// Package rows brings rows of tables to a model, for fit and for peers that train on tables: it decides which member
// has which rows, reads the flags about them, and stores how they were prepared. Begin with Share.
package rows

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// Source has the files of a table and their rows. Several peers of one process may share it.
type Source struct {
	Files *read.Table
	Rows  table.Source
	held  held
}

// maxShared bounds the memory of rows that peers of one process share.
const maxShared = 4 << 30

// maxClasses bounds the classes of a data set's labels.
const maxClasses = 256

// Open opens the files of a table. With shared, the rows stay in memory after they have been read.
func Open(ctx context.Context, t settings.Table, shared bool) (*Source, error) {
	files, err := read.Open(ctx, t.Data, t.Reading())
	if err != nil {
		return nil, cli.Config(Remedied(err))
	}
	s := &Source{Files: files, Rows: files.Rows}
	if shared {
		s.Rows = read.Shared(files.Rows, maxShared)
	}
	return s, nil
}

// Columns describes the columns' names in few characters, so that members can compare them; "" for JSON lines, each
// of which may have other names.
func (s *Source) Columns() string {
	names := s.Files.Schema().Names()
	if !s.Files.Named() {
		return ""
	}
	slices.Sort(names)
	hash := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return fmt.Sprintf("%d (%x)", len(names), hash[:4])
}

// ColumnNotes are notes on the columns for the provider of the files, with the flags to change.
func (s *Source) ColumnNotes(dropped []string) (lines []string) {
	for _, n := range s.Files.Notes() {
		way := fmt.Sprintf("--numbers %s reads numbers, and rows without one are damaged; --missing '%s' has that text mean none; --categories %s has it as it is", n.Column, n.Text, n.Column)
		if n.Point != 0 {
			way = fmt.Sprintf("--decimal %c reads them so; --categories %s has them as they are", n.Point, n.Column)
		}
		if n.Long {
			way = fmt.Sprintf("--categories %s keeps them as texts", n.Column)
		}
		if !slices.Contains(dropped, n.Column) {
			lines = append(lines, fmt.Sprintf("%v: %s", n, way))
		}
	}
	return lines
}

// LeftOutNote is a note on categories with more than most values.
func LeftOutNote(columns []string, most int) string {
	return fmt.Sprintf("columns left out, with more than %d values (--max-values): %s", most, strings.Join(columns, ", "))
}

// Share is one peer's part of the rows of a table: a table.Table. Without a Source, the peer has no rows.
type Share struct {
	*Source
	Table settings.Table
	// Number is the index of this peer among the Peers that share the rows, from 0. With Peers of 1 or less, this
	// peer has all rows.
	Number, Peers int
	Seed          uint64
	// Named are the columns that flags other than --drop name.
	Named map[string]string
}

// Schema implements table.Table.
func (s Share) Schema() *table.Schema { return s.Files.Schema() }

// Pin implements table.Table.
func (s Share) Pin(schema *table.Schema) error {
	if err := s.Files.Pin(schema); err != nil {
		return err
	}
	for _, name := range s.Table.Drop {
		if err := has(schema, "drop", name); err != nil {
			return err
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(s.Named)) {
		if err := has(schema, flag, s.Named[flag]); err != nil {
			return err
		}
	}
	return nil
}

// Rows implements table.Table: it returns this peer's rows.
func (s Share) Rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	return func(yield func(*table.Batch, error) bool) {
		source := s.Source.Rows
		if s.Peers > 1 {
			shard, err := table.ParseShard(s.Table.Shard)
			var parts []table.Filter
			if err == nil {
				parts, err = shard.Among(ctx, source, s.Peers, s.Seed)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			source = table.Filtered(source, parts[s.Number])
		}
		for b, err := range source(ctx) {
			if !yield(b, cli.Config(err)) {
				return
			}
		}
	}
}

// has returns an error if the column of a flag does not exist.
func has(schema *table.Schema, flag, column string) error {
	if schema.Find(column) >= 0 {
		return nil
	}
	return cli.Usage(cli.Faultf(flag, "%s: there is no such column%s", column, alike(column, schema)))
}

// Prepare is the first half of a task: it prepares rows, given the columns of all members.
func (s Share) Prepare(ctx context.Context, flock table.Flock, task learn.Task) (*prepare.Prepared, table.Source, error) {
	var rows table.Table = s
	if s.Source == nil {
		rows = nil
	}
	prepared, own, err := task.Prepare(ctx, flock, rows)
	if errors.Is(err, prepare.ErrNoTraining) {
		err = cli.Config(fmt.Errorf("--split %s leaves no row to train: give another, such as row:7/10, or more rows", s.Table.Split))
	}
	return prepared, own, err
}

// ForModel is Prepare for neural models, which learn classes.
func (s Share) ForModel(ctx context.Context, flock table.Flock, shared map[string]string) (*prepare.Prepared, table.Source, error) {
	task := s.Table.Task(shared)
	task.Classes = true
	task.Check = func(l *table.Labels) error {
		switch n := len(l.Classes); {
		case n == 0:
			return cli.Usage(cli.Faultf("target", "is a number, but models learn classes: give a comparison, such as 'arr_delay>15', or use gossipnode fit"))
		case n > maxClasses:
			return cli.Usage(cli.Faultf("target", "has %d classes, and models learn at most %d", n, maxClasses))
		}
		return nil
	}
	return s.Prepare(ctx, table.Scope(flock, "fit"), task)
}

// Take reads this peer's rows for an existing preparation.
func (s Share) Take(ctx context.Context, p *prepare.Prepared) (table.Source, error) {
	schema := &table.Schema{Fields: append([]table.Field(nil), s.Files.Schema().Fields...)}
	wanted := append([]table.Field(nil), p.Pipeline.Input.Fields...)
	if at := schema.Find(p.Labels.Target.Column); at >= 0 && p.Labels.Target.Op == "" && !p.Labels.Target.Classes { // classes need categories
		wanted = append(wanted, table.Field{Name: p.Labels.Target.Column, Kind: table.Category})
	}
	for _, f := range wanted {
		at := schema.Find(f.Name)
		if at < 0 {
			return nil, cli.Config(fmt.Errorf("--data has no column %q, which the rows were prepared with%s", f.Name, alike(f.Name, schema)))
		}
		schema.Fields[at].Kind = f.Kind
	}
	if err := s.Pin(schema); err != nil {
		return nil, cli.Config(err)
	}
	batches, err := table.Hold(ctx, s.Rows, s.Table.Task(nil).Memory)
	return table.InMemory(batches...), cli.Config(err)
}

// Data returns this peer's training rows, and all held-out rows in the files.
func (s Share) Data(ctx context.Context, p *prepare.Prepared, own table.Source) (*dataset.Data, error) {
	train, test, err := s.Table.Task(nil).Parts()
	if err != nil {
		return nil, err
	}
	data := &dataset.Data{Total: int(p.Rows)}
	if data.Train, err = setOf(ctx, p, table.Filtered(own, train)); err != nil {
		return nil, err
	}
	if data.HeldOut, err = s.held.of(ctx, p, table.Filtered(s.Source.Rows, test)); err != nil {
		return nil, err
	}
	for what, set := range map[string]*dataset.Set{"train": data.Train, "are held out": data.HeldOut} {
		if set.Len() == 0 {
			return nil, fmt.Errorf("this peer has no rows that %s: look at --data, --split and --shard, or give fewer --peers", what)
		}
	}
	return data, nil
}
