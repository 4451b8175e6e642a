// Package rows is rows of tables on their way to a model, as fit and the peers that train on
// tables have them: what members compare before they read, which rows are whose, and how they
// are prepared, by sums over all members. Begin with Share.
package rows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// Source is the files of a table, and their rows, which several peers of one process may share.
type Source struct {
	Files *read.Table
	Rows  table.Source
}

// maxShared bounds the memory of rows that peers of one process have read together.
const maxShared = 4 << 30

// Open looks at the files of a table. Shared holds the rows once they have been read.
func Open(t settings.Table, shared bool) (*Source, error) {
	files, err := read.Open(t.Data, read.Config{Format: t.Format, Kinds: t.Kinds(), Tolerance: t.Tolerance})
	if err != nil {
		return nil, cli.Config(err)
	}
	s := &Source{Files: files, Rows: files.Rows}
	if shared {
		s.Rows = read.Shared(files.Rows, maxShared)
	}
	return s, nil
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
	var batches []*table.Batch
	for b, err := range source(ctx) {
		if err != nil {
			return nil, cli.Config(err)
		}
		batches = append(batches, b)
	}
	return table.InMemory(batches...), nil
}

// Has says that a flag names a column that is not there.
func Has(schema *table.Schema, flag, column string) error {
	if schema.Find(column) >= 0 {
		return nil
	}
	return cli.Usage(cli.Faultf(flag, "%s: there is no such column%s", column, alike(column, schema)))
}

// alike is a hint at the column that was meant.
func alike(name string, schema *table.Schema) string {
	if near, ok := cli.Nearest(name, schema.Names()); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// agreeSettings refuses members that are to do something else.
func agreeSettings(ctx context.Context, flock table.Flock, mine map[string]string) error {
	data, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	all, err := flock.Gather(ctx, "fit/settings", data)
	if err != nil {
		return err
	}
	var first map[string]string
	for i, data := range all {
		var theirs map[string]string
		if err := json.Unmarshal(data, &theirs); err != nil {
			return fmt.Errorf("the settings of member %d of %d: %w", i+1, len(all), err)
		}
		if first == nil {
			first = theirs
		}
		for _, flag := range slices.Sorted(maps.Keys(first)) {
			if first[flag] != theirs[flag] {
				return fmt.Errorf("--%s is %q at one member and %q at another (%d of %d): give all the same", flag, first[flag], theirs[flag], i+1, len(all))
			}
		}
	}
	return nil
}

// Remedied adds to an error of the library which flag to change.
func Remedied(err error) error {
	var (
		schema *table.SchemaError
		damage *read.DamageError
	)
	remedy := ""
	switch {
	case errors.As(err, &damage):
		remedy = "see --tolerance"
	case errors.As(err, &schema):
		remedy = "give all members --data of the same columns, and the same --categories and --numbers where kinds differ"
	case errors.Is(err, learn.ErrOneClass):
		remedy = "change --target"
	case errors.Is(err, learn.ErrUserShared):
		remedy = "give --shard by=COLUMN, the column of --user"
	case errors.Is(err, learn.ErrNoRows):
		remedy = "look at --data, --target and --split"
	}
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}
