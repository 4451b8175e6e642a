package read

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	pages "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Letters that one byte stands for are told, by line, rather than made one and the same; named
// their encoding, they are what they are in UTF-8.
func TestNotUTF8IsRefused(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"x.csv", "n,city\n1,Köln\n2,\"Kämpen\nam See\"\n3,Küln\n"},
		{"x.csv", "n,größe\n1,Köln\n"},
		{"x.tsv", "n\tcity\n1\tKöln\n2\tKüln"},
		{"x.jsonl", "{\"n\":1,\"city\":\"Koln\"}\n{\"n\":2,\"city\":\"Küln\"}\n"},
	} {
		want := mustAll(t, opened(t, Config{}, written(t, c.name, c.text)).Rows)
		latin, err := charmap.Windows1252.NewEncoder().String(c.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), []string{written(t, c.name, latin)}, Config{})
		line := 1 + strings.Count(latin[:strings.IndexFunc(latin, func(r rune) bool { return r == '\uFFFD' })], "\n")
		if refused(t, err, fmt.Sprintf("line %d, byte 0x", line), "windows-1252"); !errors.Is(err, ErrEncoding) {
			t.Error(err)
		}
		same(t, mustAll(t, opened(t, Config{Encoding: "Windows-1252"}, written(t, c.name, latin)).Rows), want...)
		if c.name == "x.jsonl" {
			continue
		}
		for _, e := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
			wide, _ := unicode.UTF16(e, unicode.UseBOM).NewEncoder().String(c.text)
			same(t, mustAll(t, opened(t, Config{}, written(t, c.name, wide)).Rows), want...)
		}
	}
	_, err := Open(t.Context(), []string{written(t, "x.csv", "a\n1\n")}, Config{Encoding: "ebcdic"})
	refused(t, err, `"ebcdic"`, "windows-1252")
}

// Beyond the rows that kinds are inferred from, too; a last letter that is cut off is a torn line.
func TestNotUTF8Later(t *testing.T) {
	r := opened(t, Config{}, written(t, "x.csv", "n,city\n"+strings.Repeat("1,a\n", InferRows)+"2,K\xf6ln\n"))
	_, err := all(r.Rows)
	refused(t, err, fmt.Sprintf("line %d, byte 0xf6", InferRows+2))
	r = opened(t, Config{}, written(t, "x.csv", "n,city\n1,a\n2,Z\xc3"))
	same(t, mustAll(t, r.Rows), `0 1 "a"`)
	if d := r.Damaged(); d.Count != 1 || d.First[0].Line != 3 || d.First[0].Reason != "a text that is not UTF-8" {
		t.Errorf("%+v", d)
	}
}

// What is no letter in the encoding in which a text is read makes its row damaged where it is looked at: such
// texts would be one and the same.
func TestNoLetterOfTheEncoding(t *testing.T) {
	for _, c := range []struct {
		encoding, text string
	}{
		{"windows-1252", "n,city,note\n1,K\xf6ln,\x81\n2,\"K\x81ln\nam See\",b\n3,K\x8dln,c\n4,b,d\n"},
		{"iso-8859-15", "n,city,note\n1,K\xf6ln,\x93\n2,\"K\x93ln\nam See\",b\n3,K\x94ln,c\n4,b,d\n"}, // quotes of windows-1252
		{"utf-16le", "n,city,note\n1,K\xf6ln,\xd8\n2,\"K\xd8ln\nam See\",b\n3,K\xdcln,c\n4,b,d\n"},
		{"windows-1252", "{\"n\":1,\"city\":\"K\xf6ln\",\"note\":\"\x81\"}\n{\"n\":2,\"city\":\"K\x81\"}\n{\"n\":3,\"city\":\"K\x8d\"}\n{\"n\":4,\"city\":\"b\"}\n"},
	} {
		name, lines, text := "x.csv", []int64{3, 5}, c.text
		if strings.HasPrefix(text, "{") {
			name, lines = "x.jsonl", []int64{2, 3}
		}
		if c.encoding == "utf-16le" { // half of a letter
			wide := ""
			for i := range len(text) {
				if b := text[i : i+1]; b == "\xd8" || b == "\xdc" {
					wide += "\x00" + b
				} else {
					wide += b + "\x00"
				}
			}
			text = wide
		}
		schema := &table.Schema{Fields: []table.Field{{Name: "n"}, {Name: "city", Kind: table.Category}}}
		r := opened(t, Config{Encoding: c.encoding, Schema: schema, Others: true, Tolerance: 0.9}, written(t, name, text))
		same(t, mustAll(t, r.Rows), `0 1 "Köln"`, `3 4 "b"`)
		d := r.Damaged()
		if d.Count != 2 || d.First[0].Line != lines[0] || d.First[1].Line != lines[1] || d.First[0].Column != "city" || d.First[1].Reason != "a letter that its encoding does not have" {
			t.Errorf("%s: %+v", c.encoding, d)
		}
	}
	// In UTF-8 it is what somebody has written.
	same(t, mustAll(t, opened(t, Config{}, written(t, "x.csv", "city\n\uFFFD\na\n")).Rows), "0 \"\uFFFD\"", `1 "a"`)
}

// In Parquet, of which the texts may be anything, such rows are damaged.
func TestParquetNotUTF8(t *testing.T) {
	leaf := func(name string, physical parquet.Type) schema.Node {
		return schema.MustPrimitive(schema.NewPrimitiveNode(name, parquet.Repetitions.Required, physical, -1, -1))
	}
	root := schema.MustGroup(schema.NewGroupNode("root", parquet.Repetitions.Required, schema.FieldList{
		leaf("city", parquet.Types.ByteArray), leaf("id", parquet.Types.Int64),
	}, -1))
	var out strings.Builder
	w := pages.NewParquetWriter(&out, root)
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	column, err := group.NextColumn()
	if err == nil {
		_, err = column.(*pages.ByteArrayColumnChunkWriter).WriteBatch([]parquet.ByteArray{[]byte("a"), []byte("K\xf6ln"), []byte("b")}, nil, nil)
	}
	if err == nil {
		err = column.Close()
	}
	if err == nil {
		column, err = group.NextColumn()
	}
	if err == nil {
		_, err = column.(*pages.Int64ColumnChunkWriter).WriteBatch([]int64{1, 2, 1<<53 + 1}, nil, nil)
	}
	if err = errors.Join(err, column.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	path := written(t, "x.parquet", out.String())
	r := opened(t, Config{}, path)
	same(t, mustAll(t, r.Rows), `0 "a" 1`, `2 "b" 9.007199254740992e+15`)
	if d := r.Damaged(); d.Count != 1 || d.First[0].Column != "city" || d.First[0].Line != 2 {
		t.Errorf("%+v", d)
	}
	if n := r.Notes(); len(n) != 1 || !n[0].Long || n[0].Column != "id" {
		t.Errorf("%v", n)
	}
	only := opened(t, Config{Others: true, Schema: &table.Schema{Fields: []table.Field{{Name: "id"}}}}, path)
	if rows := mustAll(t, only.Rows); len(rows) != 3 {
		t.Errorf("a column that is not looked at: %q", rows)
	}
}

// Fields and numbers as half of Europe writes them.
func TestSeparatorAndPoint(t *testing.T) {
	path := written(t, "x.csv", "a;b\n1,5;x,y\n-,25;z\n1.5;w\n")
	_, err := Open(t.Context(), []string{path}, Config{})
	if !errors.Is(err, ErrSeparator) {
		t.Error(err)
	}
	r := opened(t, Config{Separator: ';', Point: ',', Kinds: map[string]table.Kind{"a": table.Number}}, path)
	same(t, mustAll(t, r.Rows), `0 1.5 "x,y"`, `1 -0.25 "z"`)
	if d := r.Damaged(); d.Count != 1 || d.First[0].Line != 4 {
		t.Errorf("%+v", d)
	}
	for _, c := range []Config{{Separator: '"'}, {Point: ';'}, {Separator: ',', Point: ','}, {Separator: 0xe4}} {
		if _, err := Open(t.Context(), []string{path}, c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	_, err = Open(t.Context(), []string{written(t, "x.jsonl", "{\"a\":1}\n")}, Config{Point: ','})
	refused(t, err, "another separator")
	_, err = Open(t.Context(), []string{path}, Config{Point: ','})
	refused(t, err, "another separator")
}

// A slip among numbers makes a column one of categories, which is told with its line.
func TestNotes(t *testing.T) {
	text := "price,kind,id\n" + strings.Repeat("1,1,1\n", 30) + "-,x,9007199254740993\n" + strings.Repeat("2,x,3\n", 5)
	r := opened(t, Config{}, written(t, "x.csv", text))
	mustAll(t, r.Rows)
	mustAll(t, r.Rows)
	notes := r.Notes()
	if len(notes) != 2 || notes[0].Line != 32 || notes[0].Text != "-" || notes[0].Numbers != 35 || notes[0].Values != 36 || !notes[1].Long || notes[1].Column != "id" {
		t.Fatalf("%v", notes)
	}
	if got := notes[0].String(); !strings.Contains(got, `x.csv has "-", though 35 of the first 36 values are numbers`) {
		t.Error(got)
	}
}

// Numbers with another decimal point make a category, which is told with that point.
func TestNotesOfAnotherPoint(t *testing.T) {
	for _, text := range []string{"a,b\n" + strings.Repeat("\"1,500\",x\n", 5), "{\"a\":\"1,5\"}\n"} { // Point is of other files
		name := map[bool]string{true: "x.csv", false: "x.jsonl"}[text[0] == 'a']
		if notes := opened(t, Config{}, written(t, name, text)).Notes(); len(notes) != 0 {
			t.Errorf("%s: %v", name, notes)
		}
	}
	for _, c := range []struct {
		config Config
		text   string
		point  byte // 0: no note
	}{
		{Config{Separator: ';'}, "a;b\n" + strings.Repeat("1,5;x,y\n", 5) + "2;1,2,3\n", ','},
		{Config{Separator: ';', Point: ','}, "a;b\n" + strings.Repeat("1.5;04.08.2024\n", 5), '.'},
		{Config{Separator: ';'}, "a;b\n" + strings.Repeat("1,5;x\nsmall;x\n", 5), 0},
	} {
		notes := opened(t, c.config, written(t, "x.csv", c.text)).Notes()
		if c.point == 0 {
			if len(notes) != 0 {
				t.Errorf("%v", notes)
			}
			continue
		}
		if len(notes) != 1 || notes[0].Column != "a" || notes[0].Line != 2 || notes[0].Point != c.point || notes[0].Numbers != notes[0].Values {
			t.Fatalf("%v", notes)
		}
		if got := notes[0].String(); !strings.Contains(got, fmt.Sprintf("though with a decimal %q", c.point)) {
			t.Error(got)
		}
	}
}

// Whole numbers may be names, of years or of columns; and names that are numbers are, where
// others are none.
func TestNumbersAsNames(t *testing.T) {
	for _, text := range []string{"0,1,2\n1,2,3\n", "2010,2011\n5,6\n", "protein,1100.5\n1,2\n", "1.5,2.5\na,b\n"} {
		opened(t, Config{}, written(t, "x.csv", text))
	}
}

// Columns beside those of the schema are not looked at, whatever is in them.
func TestOthers(t *testing.T) {
	only := Config{Others: true, Tolerance: -1, Schema: &table.Schema{Fields: []table.Field{{Name: "b"}}}}
	for name, text := range map[string]string{
		"x.csv": "a,b,c\nx,1,y\nz,2,w\n", "x.jsonl": "{\"a\":[],\"b\":1}\n{\"b\":2,\"c\":\"x\"}\n",
	} {
		if name == "x.jsonl" {
			text = strings.Replace(text, "[]", "1e999", 1)
		}
		same(t, mustAll(t, opened(t, only, written(t, name, text)).Rows), "0 1", "1 2")
	}
	_, err := Open(t.Context(), []string{written(t, "x.csv", "a,c\n1,2\n")}, only)
	refused(t, err, `column "b" is missing`)
	if strings.Contains(err.Error(), "one more") {
		t.Error(err)
	}
}

// What unpacks to more than is to be held is an error at once, and a row of very many columns
// takes no more than it needs.
func TestHoldIsBounded(t *testing.T) {
	batches := 0
	endless := func(context.Context) iter.Seq2[*table.Batch, error] {
		return func(yield func(*table.Batch, error) bool) {
			b := &table.Batch{Rows: 1000, Columns: []table.Column{{Name: "a", Numbers: make([]float64, 1000)}}}
			for ok := true; ok; ok = yield(b, nil) {
				batches++
			}
		}
	}
	if _, err := table.Hold(t.Context(), endless, 1<<20); !errors.Is(err, table.ErrTooLarge) || batches > 132 {
		t.Errorf("%d batches: %v", batches, err)
	}
	names := make([]string, MaxColumns)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	r := opened(t, Config{}, written(t, "x.csv", strings.Join(names, ",")+"\n"+strings.Repeat(strings.Repeat(",", MaxColumns-1)+"\n", 65)))
	var sizes []int
	for b, err := range r.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, b.Rows)
	}
	if !slices.Equal(sizes, []int{64, 1}) {
		t.Errorf("batches of %d rows", sizes)
	}
}
