package read

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/decoded"
	"github.com/seed-97356399/murmuration/peer/table"
)

// settledFile is a file that changed long ago.
func settledFile(t *testing.T, name, content string) string {
	t.Helper()
	path, long := written(t, name, content), time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	return path
}

// told is all that a table tells, a line a batch.
func told(t *testing.T, r *Table, most int) (lines []string) {
	t.Helper()
	for b, err := range r.Rows(t.Context()) {
		if err != nil {
			return append(lines, err.Error())
		}
		lines = append(lines, fmt.Sprintf("%v %d %d %v", b.Keys, b.First, b.Rows, b.Columns))
		if len(lines) == most {
			break
		}
	}
	d := r.Damaged()
	d.tolerance = 0
	return append(lines, fmt.Sprint(r.Schema(), d, r.Notes()))
}

// many is a CSV of categories that are too many for one dictionary, with damaged rows, a note and integers that are long.
func many(rows int) string {
	var text strings.Builder
	text.WriteString("number,few,many,long,mostly\n")
	for i := range rows {
		switch {
		case i%10_000 == 77:
			text.WriteString("torn\n")
		case i == 5:
			text.WriteString("NA,,x,9007199254740993,none\n")
		default:
			fmt.Fprintf(&text, "%d.5,%d,v%d,%d,%d\n", i, i%3, i, i, i)
		}
	}
	return text.String()
}

// TestKeptRows: what a folder of decoded rows gives is what is decoded, and the file is not looked at any more, unless its rows
// are too damaged to be kept.
func TestKeptRows(t *testing.T) {
	for name, content := range map[string]string{
		"many.csv":    many(80_000),
		"few.jsonl":   strings.Repeat(`{"a":1,"b":"x"}`+"\n"+`{"a":null,"b":"y"}`+"\n", 3000),
		"damaged.csv": "a,b\n" + strings.Repeat("1\n", 100),
		"empty.csv":   "a,b\n",
	} {
		path, config := settledFile(t, name, content), Config{}
		if name == "many.csv" {
			config.Kinds = map[string]table.Kind{"few": table.Category}
		}
		want, some := told(t, opened(t, config, path), 1000), told(t, opened(t, config, path), 3)
		config.Decoded = &decoded.Folder{Dir: filepath.Join(t.TempDir(), "decoded")}
		same := func(job string, got, want []string) {
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d lines, not %d: the last %.300q, not %.300q", name, job, len(got), len(want), got[len(got)-1], want[len(want)-1])
			}
		}
		same("the first job", told(t, opened(t, config, path), 1000), want)
		touched := touches(t, filepath.Dir(path))
		same("the second", told(t, opened(t, config, path), 1000), want)
		got := told(t, opened(t, config, path), 3)
		same("one that ends early", got[:len(got)-1], some[:len(some)-1]) // what damaged rows it has met may differ
		if files := touched(); len(files) > 0 && name != "damaged.csv" {
			t.Errorf("%s: later jobs have opened %q", name, files)
		}
	}
}

// TestKeptRowsThatEnd: where a file of decoded rows ends before it should, the rest is decoded.
func TestKeptRowsThatEnd(t *testing.T) {
	path := settledFile(t, "x.csv", "a,b\n"+strings.Repeat("1,x\n2,y\n", 500))
	plain, r := opened(t, Config{BatchRows: 100}, path), opened(t, Config{BatchRows: 100}, path)
	want := told(t, plain, 1000)
	folder := &decoded.Folder{Dir: filepath.Join(t.TempDir(), "decoded")}
	r.config.Decoded = folder
	file, err := folder.Open(t.Context(), r.config.recipe("rows", r.files, r.schema), func(w io.Writer) error {
		out := gob.NewEncoder(w)
		batches := 0
		for b, err := range plain.Rows(t.Context()) {
			if err = errors.Join(err, out.Encode(kept{Batch: b, More: make([]bool, 2)})); err != nil {
				return err
			}
			if batches++; batches == 3 {
				break
			}
		}
		return out.Encode(kept{Batch: &table.Batch{Rows: 5}}) // without columns
	})
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if got := told(t, r, 1000); !slices.Equal(got, want) {
		t.Errorf("%d lines, not %d: %q", len(got), len(want), got)
	}
}
