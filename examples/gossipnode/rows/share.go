// Package rows is rows of tables on their way to a model, as fit and the peers that train on
// tables have them: what members compare before they read, which rows are whose, and how they
// are prepared, by sums over all members. Begin with Share.
package rows

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// Source is the files of a table, and their rows, which several peers of one process may share.
type Source struct {
	Files *read.Table
	Rows  table.Source
	held  held
}

// maxShared bounds the memory of rows that peers of one process have read together.
const maxShared = 4 << 30

// maxClasses is how many classes a label of a data set can tell apart.
const maxClasses = 256

// Open looks at the files of a table. Shared holds the rows once they have been read.
func Open(t settings.Table, shared bool) (*Source, error) {
	files, err := read.Open(t.Data, t.Reading())
	if err != nil {
		return nil, cli.Config(Remedied(err))
	}
	s := &Source{Files: files, Rows: files.Rows}
	if shared {
		s.Rows = read.Shared(files.Rows, maxShared)
	}
	return s, nil
}

// Columns are the names of the columns in short, by which members see that they have the same;
// "" if the rows of JSON lines may each have others.
func (s *Source) Columns() string {
	names := s.Files.Schema().Names()
	if !s.Files.Named() {
		return ""
	}
	slices.Sort(names)
	hash := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return fmt.Sprintf("%d (%x)", len(names), hash[:4])
}

// Told is what who gives the files should know of their columns, and which flags change it.
func (s *Source) Told(dropped []string) (lines []string) {
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

// ToldLeftOut tells which categories have more values than most.
func ToldLeftOut(columns []string, most int) string {
	return fmt.Sprintf("columns left out, with more than %d values (--max-values): %s", most, strings.Join(columns, ", "))
}

// Share is the part of one peer in the rows of a table.
type Share struct {
	*Source
	Table settings.Table
	// Number is which of Peers the rows are divided among this one is, from 0; the rows are
	// all this peer's if Peers is 1 or less.
	Number, Peers int
	Seed          uint64
}

// Agree compares settings and columns with those of the other members, and reads this peer's
// rows into memory. All members call it; where one cannot go on, all end.
func (s Share) Agree(ctx context.Context, flock table.Flock, shared map[string]string) (*Agreed, error) {
	flock = table.Careful(flock)
	if err := agreeSettings(ctx, flock, shared); err != nil {
		return nil, err
	}
	schema, err := table.Agree(ctx, flock, "fit/schema", s.Files.Schema())
	if err != nil {
		return nil, err
	}
	a := &Agreed{Table: s.Table, Flock: flock, Schema: schema}
	local := s.Files.Pin(schema)
	if local == nil {
		a.Rows, local = s.load(ctx, schema)
	}
	if err := table.Ready(ctx, flock, "fit/ready", local); err != nil || !s.Table.Distinct {
		return a, err
	}
	return a, a.dropEqual(ctx)
}

// load reads this peer's rows into memory.
func (s Share) load(ctx context.Context, schema *table.Schema) (table.Source, error) {
	for _, name := range s.Table.Drop {
		if err := Has(schema, "drop", name); err != nil {
			return nil, err
		}
	}
	source := s.Rows
	if s.Peers > 1 {
		shard, err := table.ParseShard(s.Table.Shard)
		if err != nil {
			return nil, err
		}
		parts, err := shard.Among(ctx, source, s.Peers, s.Seed)
		if err != nil {
			return nil, err
		}
		source = table.Filtered(source, parts[s.Number])
	}
	batches, err := table.Hold(ctx, source, int64(cmp.Or(s.Table.Memory, settings.DefaultTableMemory))<<20)
	return table.InMemory(batches...), cli.Config(err)
}

// Has says that a flag names a column that is not there.
func Has(schema *table.Schema, flag, column string) error {
	if schema.Find(column) >= 0 {
		return nil
	}
	return cli.Usage(cli.Faultf(flag, "%s: there is no such column%s", column, alike(column, schema)))
}

// Prepare fits the preparation for neural models together with the other members, and returns
// this member's rows beside it.
func (s Share) Prepare(ctx context.Context, flock table.Flock, shared map[string]string) (*Prepared, table.Source, error) {
	a, err := s.Agree(ctx, flock, shared)
	if err != nil {
		return nil, nil, err
	}
	if err := a.LearnTarget(ctx, true); err != nil {
		return nil, nil, err
	}
	switch n := len(a.Labels.Classes); {
	case n == 0:
		return nil, nil, cli.Usage(cli.Faultf("target", "is a number, but models learn classes: give a comparison, such as 'arr_delay>15', or use gossipnode fit"))
	case n > maxClasses:
		return nil, nil, cli.Usage(cli.Faultf("target", "has %d classes, and models learn at most %d", n, maxClasses))
	}
	train, _, err := s.Table.Parts()
	if err != nil {
		return nil, nil, err
	}
	training, err := a.Take(ctx, a.Rows, train)
	if err != nil {
		return nil, nil, err
	}
	count, peers, err := a.Trains(ctx, training)
	if err != nil {
		return nil, nil, err
	}
	if err := a.LimitValues(ctx, training); err != nil {
		return nil, nil, err
	}
	p := &Prepared{Labels: a.Labels, Rows: int64(count[0]), Peers: peers}
	if p.Pipeline, err = a.Fit(ctx, flock, "fit/prepare", Numbers, training); err != nil {
		return nil, nil, err
	}
	return p, a.Rows, nil
}

// Take reads this peer's rows for what was prepared already.
func (s Share) Take(ctx context.Context, p *Prepared) (table.Source, error) {
	schema := &table.Schema{Fields: append([]table.Field(nil), s.Files.Schema().Fields...)}
	wanted := append([]table.Field(nil), p.Pipeline.Input.Fields...)
	if at := schema.Find(p.Labels.Target.Column); at >= 0 && p.Labels.Target.Op == "" && !p.Labels.Target.Classes { // classes are of categories
		wanted = append(wanted, table.Field{Name: p.Labels.Target.Column, Kind: table.Category})
	}
	for _, f := range wanted {
		at := schema.Find(f.Name)
		if at < 0 {
			return nil, cli.Config(fmt.Errorf("--data has no column %q, which the rows were prepared with%s", f.Name, alike(f.Name, schema)))
		}
		schema.Fields[at].Kind = f.Kind
	}
	if err := s.Files.Pin(schema); err != nil {
		return nil, cli.Config(err)
	}
	return s.load(ctx, schema)
}

// Data are this peer's rows that train, and all that are held out in the files.
func (s Share) Data(ctx context.Context, p *Prepared, own table.Source) (*dataset.Data, error) {
	train, test, err := s.Table.Parts()
	if err != nil {
		return nil, err
	}
	data := &dataset.Data{Total: int(p.Rows)}
	if data.Train, err = p.set(ctx, table.Filtered(own, train)); err != nil {
		return nil, err
	}
	if data.HeldOut, err = s.held.of(ctx, p, table.Filtered(s.Rows, test)); err != nil {
		return nil, err
	}
	for what, set := range map[string]*dataset.Set{"train": data.Train, "are held out": data.HeldOut} {
		if set.Len() == 0 {
			return nil, fmt.Errorf("this peer has no rows that %s: look at --data, --split and --shard, or give fewer --peers", what)
		}
	}
	return data, nil
}
