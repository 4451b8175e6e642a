package read

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pages "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/klauspost/compress/zstd"

	"github.com/seed-97356399/murmuration/peer/table"
)

// parquetFile writes a file with a column of each type that is read, in two row groups of the
// same three rows, of which the second is null.
func parquetFile(t testing.TB) []byte {
	t.Helper()
	leaf := func(name string, logical schema.LogicalType, physical parquet.Type, size int) schema.Node {
		n, err := schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Optional, logical, physical, size, -1)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	types := parquet.Types
	root, err := schema.NewGroupNode("root", parquet.Repetitions.Required, schema.FieldList{
		leaf("truth", nil, types.Boolean, 0),
		leaf("int", nil, types.Int32, 0),
		leaf("unsigned", schema.NewIntLogicalType(64, false), types.Int64, 0),
		leaf("decimal", schema.NewDecimalLogicalType(9, 2), types.Int32, 0),
		leaf("bytes", schema.NewDecimalLogicalType(5, 1), types.FixedLenByteArray, 3),
		leaf("date", schema.DateLogicalType{}, types.Int32, 0),
		leaf("time", schema.NewTimestampLogicalType(true, schema.TimeUnitMillis), types.Int64, 0),
		leaf("float", nil, types.Float, 0),
		leaf("double", nil, types.Double, 0),
		leaf("text", schema.StringLogicalType{}, types.ByteArray, 0),
	}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := pages.NewParquetWriter(&out, root, pages.WithWriterProps(parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))))
	for range 2 {
		group, err := w.AppendRowGroupChecked()
		if err != nil {
			t.Fatal(err)
		}
		defined := []int16{1, 0, 1}
		for range 10 {
			column, err := group.NextColumn()
			if err != nil {
				t.Fatal(err)
			}
			switch c := column.(type) {
			case *pages.BooleanColumnChunkWriter:
				_, err = c.WriteBatch([]bool{true, false}, defined, nil)
			case *pages.Int32ColumnChunkWriter:
				_, err = c.WriteBatch([]int32{-7, 12345}, defined, nil)
			case *pages.Int64ColumnChunkWriter:
				_, err = c.WriteBatch([]int64{1500, -1}, defined, nil)
			case *pages.Float32ColumnChunkWriter:
				_, err = c.WriteBatch([]float32{0.5, 2}, defined, nil)
			case *pages.Float64ColumnChunkWriter:
				_, err = c.WriteBatch([]float64{0.1, 1e300}, defined, nil)
			case *pages.ByteArrayColumnChunkWriter:
				_, err = c.WriteBatch([]parquet.ByteArray{[]byte("NA"), []byte("é")}, defined, nil)
			case *pages.FixedLenByteArrayColumnChunkWriter:
				_, err = c.WriteBatch([]parquet.FixedLenByteArray{{0xFF, 0xFF, 0xFF}, {0, 1, 0}}, defined, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := column.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := group.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestParquet(t *testing.T) {
	r := opened(t, Config{}, written(t, "x.parquet", string(parquetFile(t))))
	first := `"true" -7 1500 -0.07 -0.1 -604800 1.5 0.5 0.1 "NA"`
	last := `"false" 12345 1.8446744073709552e+19 123.45 25.6 1.066608e+09 -0.001 2 1e+300 "é"`
	null := strings.Repeat(" -", 10)
	same(t, mustAll(t, r.Rows), "0 "+first, "1"+null, "2 "+last, "3 "+first, "4"+null, "5 "+last)

	// As texts, where the schema says so.
	pinned := &table.Schema{}
	for i := range r.Schema().Fields {
		pinned.Fields = append(pinned.Fields, table.Field{Name: r.Schema().Fields[i].Name, Kind: table.Category})
	}
	if err := r.Pin(pinned); err != nil {
		t.Fatal(err)
	}
	same(t, mustAll(t, r.Rows)[:1], `0 "true" "-7" "1500" "-0.07" "-0.1" "-604800" "1.5" "0.5" "0.1" "NA"`)

	// A text in a column of numbers is damage that names the column.
	pinned.Fields[9].Kind = table.Number
	if err := r.Pin(pinned); err != nil {
		t.Fatal(err)
	}
	if rows := mustAll(t, r.Rows); len(rows) != 4 || r.Damaged().Count != 2 || r.Damaged().First[0].Column != "text" || r.Damaged().First[0].Text != "é" || r.Damaged().First[0].Line != 3 {
		t.Errorf("%d rows, %+v", len(rows), r.Damaged())
	}
}

// A Parquet file that was cut off, wherever, or of which a byte is wrong, is an error that
// names it, and never a panic.
func TestParquetThatIsDamaged(t *testing.T) {
	whole := parquetFile(t)
	path := filepath.Join(t.TempDir(), "x.parquet")
	read := func(content []byte) error {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), []string{path}, Config{})
		if err == nil {
			_, err = all(r.Rows)
		}
		return err
	}
	for size := 0; size < len(whole); size += 211 {
		refused(t, read(whole[:size]), path)
	}
	refused(t, read(whole[:len(whole)/2]), path, "cut off")
	for at := 4; at < len(whole); at += 61 {
		wrong := bytes.Clone(whole)
		wrong[at] ^= 0x55
		if err := read(wrong); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

// A page that unpacks to more than it says is an error before memory is full of it.
func TestParquetPageIsBounded(t *testing.T) {
	path := filepath.Join("testdata", "parquet", "more-than-it-says.parquet") // 16 MiB, not 800 bytes
	_, err := all(opened(t, Config{}, path).Rows)
	if refused(t, err, path, `column "a"`); !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		t.Error(err)
	}
}

// Whatever is in a file, reading it comes to an end, without a panic.
func FuzzParquet(f *testing.F) {
	whole := parquetFile(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	bounded, err := os.ReadFile(filepath.Join("testdata", "parquet", "more-than-it-says.parquet"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bounded)
	f.Fuzz(func(t *testing.T, content []byte) {
		path := written(t, "x.parquet", string(content))
		r, err := Open(t.Context(), []string{path}, Config{})
		if err == nil {
			_, err = all(r.Rows)
		}
		if err != nil {
			refused(t, err, path)
		}
	})
}

func TestFlightsFromCSVAndParquet(t *testing.T) {
	from := filepath.Join("..", "..", "..", "..", "shared", "data", "flights")
	if _, err := os.Stat(from); err != nil {
		t.Skip("no flights in " + from)
	}
	csv := opened(t, Config{}, filepath.Join(from, "flights.csv.gz"))
	columns := opened(t, Config{}, filepath.Join(from, "flights.parquet"))
	if d := csv.Schema().Differences(columns.Schema()); len(d) != 0 {
		t.Fatal(d)
	}
	if _, err := Open(t.Context(), []string{from}, Config{}); err == nil || !strings.Contains(err.Error(), "several formats") {
		t.Errorf("the folder with the same rows twice: %v", err)
	}

	whole := columns.Rows(context.Background())
	limit, rows := 50_000, 0 // the rest is like it
	var others []*table.Batch
	for b, err := range whole {
		if err != nil {
			t.Fatal(err)
		}
		if rows += b.Rows; rows < limit+b.Rows {
			others = append(others, b)
		}
	}
	if rows != 336_776 {
		t.Errorf("%d rows of Parquet", rows)
	}
	rows = 0
	for b, err := range csv.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if rows < limit {
			equal(t, b, others[rows/DefaultBatchRows])
		}
		rows += b.Rows
	}
	if rows != 336_776 || csv.Damaged().Count != 0 {
		t.Errorf("%d rows of CSV, damaged %+v", rows, csv.Damaged())
	}
}

// equal compares two batches.
func equal(t *testing.T, a, b *table.Batch) {
	t.Helper()
	if a.First != b.First || a.Rows != b.Rows || a.Keys != nil || b.Keys != nil {
		t.Fatalf("batches of %d rows from %d and %d rows from %d", a.Rows, a.First, b.Rows, b.First)
	}
	for i := range a.Columns {
		for row := range a.Rows {
			if one, other := value(&a.Columns[i], row), value(&b.Columns[i], row); one != other {
				t.Fatalf("column %q row %d: %s and %s", a.Columns[i].Name, a.First+int64(row), one, other)
			}
		}
	}
}

func TestParquetThatIsNoTable(t *testing.T) {
	list, err := schema.ListOf(schema.NewInt32Node("tags", parquet.Repetitions.Required, -1), parquet.Repetitions.Optional, -1)
	if err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewGroupNode("root", parquet.Repetitions.Required, schema.FieldList{list}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pages.NewParquetWriter(&out, root).Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), []string{written(t, "x.parquet", out.String())}, Config{})
	refused(t, err, "x.parquet", "tags", "no lists")
	_, err = Open(t.Context(), []string{written(t, "x.parquet", "a,b\n1,2\n")}, Config{})
	refused(t, err, "x.parquet", "no Parquet file")
	var other *table.SchemaError
	path := written(t, "x.parquet", string(parquetFile(t)))
	_, err = Open(t.Context(), []string{path}, Config{Schema: &table.Schema{Fields: []table.Field{{Name: "truth"}}}})
	if !errors.As(err, &other) || other.Where != path {
		t.Errorf("another schema: %v", err)
	}
}
