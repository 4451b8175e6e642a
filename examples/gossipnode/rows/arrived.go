package rows

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/arrivals"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// ReadArrived reads a file of rows that has come, all of it, as others were prepared. Of a text that is not packed, the last line
// must have an end. It returns how many rows could not be read, or have no target.
func ReadArrived(ctx context.Context, t settings.Table, p *prepare.Prepared, path string) (set *dataset.Set, leftOut int, err error) {
	if err := finished(t, path); err != nil {
		return nil, 0, err
	}
	t.Data = []string{path}
	source, err := Open(ctx, t, false)
	if err != nil {
		return nil, 0, err
	}
	share := Share{Source: source, Table: t}
	own, err := share.Take(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	if set, err = setOf(ctx, p, own); err != nil {
		return nil, 0, err
	}
	return set, int(source.Files.Damaged().Count), nil
}

// Readable reads a file that the run is to begin with once, as its columns are not known yet.
func Readable(ctx context.Context, t settings.Table, path string) error {
	t.Data = []string{path}
	err := finished(t, path)
	if err != nil {
		return err
	}
	source, err := Open(ctx, t, false)
	if err != nil {
		return err
	}
	for _, err := range source.Rows(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// finished fails if a file of text, not packed, does not end with a line break.
func finished(t settings.Table, path string) error {
	if !slices.ContainsFunc(endings[t.Format], func(end string) bool { return strings.HasSuffix(strings.ToLower(path), end) }) || t.Format == "parquet" {
		return nil // packed files and Parquet have an end of their own
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	last := make([]byte, 1)
	info, err := in.Stat()
	if err == nil && info.Size() > 0 {
		_, err = in.ReadAt(last, info.Size()-1)
	}
	if err == nil && last[0] != '\n' {
		return arrivals.ErrUnfinished
	}
	return err
}

// endings are those of the names of files in each format.
var endings = map[string][]string{"csv": {".csv"}, "tsv": {".tsv", ".tab"}, "jsonl": {".jsonl", ".ndjson"}, "parquet": {".parquet"}}

// IsArrived tells whether a name is that of a file of rows in a format.
func IsArrived(format, name string) bool {
	kind := strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		kind = strings.TrimSuffix(kind, packed)
	}
	return slices.ContainsFunc(endings[format], func(end string) bool { return strings.HasSuffix(kind, end) })
}
