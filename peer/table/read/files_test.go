package read

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/seed-97356399/murmuration/peer/table"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zstandard(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

// folderOf writes files into a folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	path := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// Files, a folder or a pattern are one table; keys go on from one file to the next, columns are
// found by their names.
func TestSeveralFiles(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"1.csv":      "a,b\n1,x\n",
		"2.csv.gz":   gzipped(t, "b,a\ny,2\nz\n"),
		"3.CSV.zst":  zstandard(t, "a,b\n3,z\n"),
		"README":     "no table",
		".4.csv":     "hidden",
		"sub.folder": "",
	})
	want := []string{`0 1 "x"`, `1 2 "y"`, `3 3 "z"`}
	for _, paths := range [][]string{
		{folder},
		{filepath.Join(folder, "[1-3].*")},
		{filepath.Join(folder, "1.csv"), filepath.Join(folder, "2.csv.gz"), filepath.Join(folder, "3.*")},
	} {
		r := opened(t, Config{}, paths...)
		same(t, mustAll(t, r.Rows), want...)
		if d := r.Damaged(); d.Count != 1 || filepath.Base(d.First[0].File) != "2.csv.gz" || d.First[0].Line != 3 || d.First[0].Row != 2 {
			t.Errorf("damaged: %+v", d)
		}
		if len(r.Files()) != 3 {
			t.Errorf("files: %v", r.Files())
		}
	}
}

func TestFilesAreRefused(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"good.csv":     "a,b\n1,x\n",
		"more.csv":     "a,b,c\n1,x,2\n",
		"torn.gz":      "",
		"torn.csv.gz":  gzipped(t, "a,b\n"+strings.Repeat("1,x\n", 5000))[:60],
		"torn.csv.zst": zstandard(t, "a,b\n"+strings.Repeat("1,x\n", 5000))[:20],
		"plain.csv.gz": "a,b\n1,x\n",
		"x.dat":        "a,b\n1,x\n",
		"x.jsonl":      `{"a":1}`,
	})
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct {
		name  string
		paths []string
		c     Config
		names []string
	}{
		{"nothing", nil, Config{}, []string{"no file"}},
		{"no such file", []string{at("absent.csv")}, Config{}, []string{"absent.csv"}},
		{"no such folder's pattern", []string{at("absent*")}, Config{}, []string{"absent*"}},
		{"a name that says nothing", []string{at("x.dat")}, Config{}, []string{"x.dat", "name the format"}},
		{"no such format", []string{at("x.dat")}, Config{Format: "xls"}, []string{`"xls"`}},
		{"other columns", []string{at("good.csv"), at("more.csv")}, Config{}, []string{"more.csv", `column "c" is one more`}},
		{"a column less than the schema", []string{at("good.csv")}, Config{Schema: &table.Schema{Fields: []table.Field{{Name: "a"}, {Name: "d"}}}}, []string{"good.csv", `column "d" is missing`, `column "b" is one more`}},
		{"torn gzip", []string{at("torn.csv.gz")}, Config{}, []string{"torn.csv.gz", "unexpected EOF"}},
		{"torn zstd", []string{at("torn.csv.zst")}, Config{}, []string{"torn.csv.zst", "unexpected EOF"}},
		{"no gzip", []string{at("plain.csv.gz")}, Config{}, []string{"plain.csv.gz", "no gzip file"}},
		{"several formats", []string{folder}, Config{}, []string{"several formats"}},
		{"an empty folder", []string{t.TempDir()}, Config{}, []string{"no file named as a table"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.Context(), c.paths, c.c)
			refused(t, err, c.names...)
		})
	}
	r := opened(t, Config{Format: "csv"}, at("x.dat"))
	same(t, mustAll(t, r.Rows), `0 1 "x"`)
}

// What the flock agreed on is read, whatever was inferred.
func TestPin(t *testing.T) {
	r := opened(t, Config{}, written(t, "x.csv", "a,b\n1,2\n"))
	if err := r.Pin(&table.Schema{Fields: []table.Field{{Name: "b", Kind: table.Category}, {Name: "a"}}}); err != nil {
		t.Fatal(err)
	}
	same(t, mustAll(t, r.Rows), `0 "2" 1`)
	r = opened(t, Config{Kinds: map[string]table.Kind{"b": table.Category}}, written(t, "x.csv", "a,b\n1,2\n"))
	same(t, mustAll(t, r.Rows), `0 1 "2"`)
	_, err := Open(t.Context(), []string{r.Files()[0]}, Config{Kinds: map[string]table.Kind{"d": table.Category}})
	refused(t, err, "x.csv", `"d"`, "a, b")

	r = opened(t, Config{}, written(t, "x.csv", "a,b\n1,2\n"))
	err = r.Pin(&table.Schema{Fields: []table.Field{{Name: "b"}}})
	refused(t, err, "x.csv", `column "a" is one more`)
	same(t, mustAll(t, r.Rows), `0 1 2`)
}

// Memory does not grow with the file: what a batch held is its owner's, and batches are of the
// size asked for.
func TestBatches(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1,x\n", 250)
	r := opened(t, Config{BatchRows: 100}, written(t, "x.csv", text))
	var sizes []int
	var held []*table.Batch
	for b, err := range r.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		sizes, held = append(sizes, b.Rows), append(held, b)
	}
	if len(sizes) != 3 || sizes[2] != 50 || held[1].First != 100 || held[0].Columns[0].Numbers[99] != 1 || held[0].Keys != nil {
		t.Errorf("batches of %v", sizes)
	}
	var wide strings.Builder // texts of half a MiB
	wide.WriteString("a\n")
	for i := range 70 {
		wide.WriteString(strings.Repeat("x", MaxRecord/2) + string(rune('0'+i)) + "\n")
	}
	most := 0
	for b, err := range opened(t, Config{}, written(t, "x.csv", wide.String())).Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, b.Rows)
	}
	if most > 2*maxBatchText/MaxRecord+1 {
		t.Errorf("a batch has %d rows of half a MiB", most)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for b, err := range r.Rows(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v, %v", b, err)
		}
	}
	for range r.Rows(context.Background()) {
		break
	}
}

// The memory of a pass does not follow the size of the file, however many texts it has: no batch
// is held once the next is asked for, and the texts that batches have in common are bounded.
func TestMemoryIsBounded(t *testing.T) {
	text := bytes.NewBufferString("a,b,c\n")
	const rows = 3 * maxValues
	for i := range rows {
		fmt.Fprintf(text, "%d,%d,name of row %d\n", i, i%7, i)
	}
	r := opened(t, Config{}, written(t, "x.csv.zst", zstandard(t, text.String())))
	var batches []weak.Pointer[table.Batch]
	n, most, texts := 0, 0, 0
	for b, err := range r.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.Rows
		texts = max(texts, len(b.Columns[2].Values))
		if batches = append(batches, weak.Make(b)); len(batches)%16 == 0 {
			runtime.GC()
			live := slices.DeleteFunc(slices.Clone(batches), func(w weak.Pointer[table.Batch]) bool { return w.Value() == nil })
			most = max(most, len(live))
		}
	}
	const atOnce = 4 // the one in hand, and some that a register still knows
	if n != rows || most > atOnce || texts > maxValues+DefaultBatchRows {
		t.Errorf("of %d rows, %d batches are held at once and %d texts by one", n, most, texts)
	}
	large := &shared{source: r.Rows, limit: 1 << 20, turn: make(chan struct{}, 1)}
	if n := len(mustAll(t, large.rows)); n != rows || !large.large || large.held != nil {
		t.Errorf("%d rows, of which %d batches are held", n, len(large.held))
	}
}

// Peers of one process decode a table once, however many they are.
func TestShared(t *testing.T) {
	r := opened(t, Config{BatchRows: 100}, written(t, "x.csv", "a,b\n"+strings.Repeat("1,x\n", 1000)))
	var mutex sync.Mutex
	passes := 0
	source := func(ctx context.Context) iter.Seq2[*table.Batch, error] {
		mutex.Lock()
		passes++
		mutex.Unlock()
		return r.Rows(ctx)
	}
	for _, c := range []struct {
		limit  int64
		passes int
	}{{1 << 20, 1}, {100, 17}} { // what does not fit is tried once, then decoded by each
		passes = 0
		shared := Shared(func(ctx context.Context) iter.Seq2[*table.Batch, error] { return source(ctx) }, c.limit)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 2 {
					rows := 0
					for b, err := range shared(context.Background()) {
						if err != nil {
							t.Error(err)
						}
						rows += b.Rows
					}
					if rows != 1000 {
						t.Errorf("%d rows", rows)
					}
				}
			})
		}
		all.Wait()
		if passes != c.passes {
			t.Errorf("limit %d: %d passes, not %d", c.limit, passes, c.passes)
		}
	}

	// One that is called off holds nothing, and the next reads all.
	shared := Shared(r.Rows, 1<<20)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := all(func(context.Context) iter.Seq2[*table.Batch, error] { return shared(ended) }); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	if rows := mustAll(t, shared); len(rows) != 1000 {
		t.Errorf("%d rows", len(rows))
	}
}
