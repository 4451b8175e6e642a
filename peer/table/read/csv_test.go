package read

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/peer/table"
)

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		name, text string
		schema     string
		rows       []string
	}{
		{"plain", "a,b\n1,x\n2.5,y\n", "number category", []string{`0 1 "x"`, `1 2.5 "y"`}},
		{"Windows line ends and a byte order mark", "\xEF\xBB\xBFa,b\r\n1,x\r\n", "number category", []string{`0 1 "x"`}},
		{"no line end at the end", "a,b\n1,x", "number category", []string{`0 1 "x"`}},
		{"missing", "a,b\n,NA\nNaN,null\n1, x\n", "number category", []string{`0 - -`, `1 - -`, `2 1 " x"`}},
		{"quotes", "a,b\n\"1\",\"x \"\"y\"\", z\"\n", "number category", []string{`0 1 "x \"y\", z"`}},
		{"a quoted line end", "a,b\n1,\"x\ny\"\r\n2,z\n", "number category", []string{`0 1 "x\ny"`, `1 2 "z"`}},
		{"blank lines are no rows", "\na,b\n\n1,x\n\n2,y\n\n", "number category", []string{`0 1 "x"`, `1 2 "y"`}},
		{"numbers", "a,b\n-1e3, +5\n1234567890123456789,.5\n", "number number", []string{`0 -1000 5`, `1 1.2345678901234568e+18 0.5`}},
		{"one text makes a category", "a,b\n1,1\n2,0x10\n", "number category", []string{`0 1 "1"`, `1 2 "0x10"`}},
		{"row names of other programs", ",b\n1,x\n", "number category", []string{`0 1 "x"`}},
		{"only names", "a,b\n", "number number", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := opened(t, Config{}, written(t, "x.csv", c.text))
			var kinds []string
			for _, f := range r.Schema().Fields {
				kinds = append(kinds, f.Kind.String())
			}
			same(t, kinds, strings.Fields(c.schema)...)
			same(t, mustAll(t, r.Rows), c.rows...)
			if d := r.Damaged(); d.Count != 0 || d.Rows != int64(len(c.rows)) {
				t.Errorf("damaged: %+v", d)
			}
		})
	}
}

func TestTSV(t *testing.T) {
	r := opened(t, Config{}, written(t, "x.tsv", "a\tb\n1\tx,y\n\t\n"))
	same(t, mustAll(t, r.Rows), `0 1 "x,y"`, `1 - -`)
}

// A damaged row is set aside and told, with those around it whole; keys count it.
func TestDamagedRowsAreSetAside(t *testing.T) {
	head := "a,b\n1,x\n"
	for _, c := range []struct {
		name, text string
		rows       []string
		damage     Damage
	}{
		{"a column more", head + "2,y,z\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Reason: "3 fields, not 2", Text: "2,y,z"}},
		{"a column less", head + "2\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Reason: "1 fields, not 2", Text: "2"}},
		{"a torn last line", head + "3,w\n2", []string{`0 1 "x"`, `1 3 "w"`}, Damage{Line: 4, Row: 2, Reason: "the last line is cut off: 1 fields, not 2", Text: "2"}},
		{"a quote that is not closed", head + "2,\"y\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Reason: "a quote is not closed", Text: `2,"y`}},
		{"a bare quote", head + "2,y\"z\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Reason: "a quote within a field that has none around it", Text: `2,y"z`}},
		{"text behind a quote", head + "2,\"y\"z\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Reason: "text behind a closing quote", Text: `2,"y"z`}},
		{"a text among numbers", head + "two,y\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Column: "a", Reason: "not a number", Text: "two"}},
		{"an infinite number", head + "1e999,y\n3,w\n", []string{`0 1 "x"`, `2 3 "w"`}, Damage{Line: 3, Row: 1, Column: "a", Reason: "an infinite number", Text: "1e999"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, "x.csv", c.text)
			pinned := &table.Schema{Fields: []table.Field{{Name: "a"}, {Name: "b", Kind: table.Category}}}
			r := opened(t, Config{Schema: pinned}, path)
			same(t, mustAll(t, r.Rows), c.rows...)
			d := r.Damaged()
			c.damage.File = path
			if d.Count != 1 || len(d.First) != 1 || d.First[0] != c.damage {
				t.Errorf("got %+v, want %+v", d, c.damage)
			}
			var told bytes.Buffer
			if _, err := d.WriteTo(&told); err != nil || !strings.Contains(told.String(), c.damage.Reason) {
				t.Errorf("written: %q, %v", told.String(), err)
			}

			if text := d.String(); !strings.Contains(text, "set aside: 1 of ") || !strings.Contains(text, fmt.Sprintf("%s line %d", path, c.damage.Line)) {
				t.Errorf("told: %q", text)
			}

			r = opened(t, Config{Schema: pinned, Tolerance: -1}, path)
			_, err := all(r.Rows)
			var damaged *DamageError
			if !errors.As(err, &damaged) || damaged.Count != 1 {
				t.Fatalf("with no tolerance: %v", err)
			}
			refused(t, err, path, fmt.Sprintf("line %d", c.damage.Line), c.damage.Reason, c.damage.Column)
		})
	}
}

// A quote in a record of many lines costs one line, not the rest of the file.
func TestQuoteLeftOpenInALongFile(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,b\n")
	for i := range 200_000 {
		if i == 1000 {
			text.WriteString("7,\"open\n")
			continue
		}
		fmt.Fprintf(&text, "%d,x\n", i)
	}
	r := opened(t, Config{}, written(t, "x.csv", text.String()))
	n := 0
	for b, err := range r.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.Rows
	}
	if d := r.Damaged(); n != 199_999 || d.Count != 1 || d.First[0].Line != 1002 {
		t.Errorf("%d rows, damaged %+v", n, d)
	}
}

func TestTolerance(t *testing.T) {
	text := func(rows, damaged int) string {
		var b strings.Builder
		b.WriteString("a,b\n")
		for i := range rows {
			if i >= rows-damaged {
				b.WriteString("only one\n")
			} else {
				b.WriteString("1,2\n")
			}
		}
		return b.String()
	}
	for _, c := range []struct {
		rows, damaged int
		tolerance     float64
		ok            bool
	}{
		{1000, MinTolerated, 0, true},
		{1000, MinTolerated + 1, 0, false},
		{20_000, 20, 0, true},
		{20_000, 21, 0, false},
		{1000, 100, 0.2, true},
		{100, 1, -1, false},
		{5, 5, 0, false}, // no whole row is left
	} {
		r := opened(t, Config{Tolerance: c.tolerance}, written(t, "x.csv", text(c.rows, c.damaged)))
		rows, err := all(r.Rows)
		if (err == nil) != c.ok || c.ok && len(rows) != c.rows-c.damaged {
			t.Errorf("%+v: %d rows, %v", c, len(rows), err)
		}
		if err != nil {
			refused(t, err, "line", "fields")
		}
	}
}

func TestCSVIsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, wants string }{
		{"empty", "", "empty"},
		{"the same name twice", "a,b,a\n1,2,3\n", `column "a" is there twice`},
		{"another separator", "a;b\n1;2\n", `one column, "a;b": fields of this format are separated by ','`},
		{"UTF-16 without a mark", "a\x00,\x00\n\x00", "UTF-16"},
		{"no names", "5.1,3.5,setosa\n4.9,3.0,setosa\n", "line 1 has numbers where the names of the columns should be (5.1, for one)"},
		{"no names, a text first", "setosa,5.1,3.5\nsetosa,4.9,3.0\n", "names of the columns should be (5.1, for one)"},
		{"no names, of equal numbers", "1,1,setosa\n", `column "1" is there twice: is the line of the columns' names missing?`},
		{"names with a quote", "a,\"b\n1,2\n", "line 1, the names of the columns"},
		{"Parquet inside", "PAR1,a\n", "parquet inside"},
		{"gzip inside", "\x1f\x8b\x08,a\n", "gzip inside"},
		{"a long line", "a,b\n1," + strings.Repeat("x", MaxRecord+1<<19), "line 2 is longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, "x.csv", c.text)
			_, err := Open(t.Context(), []string{path}, Config{})
			refused(t, err, path, c.wants)
		})
	}
}

// What encoding/csv writes is read back whole, and what it can read is read alike.
func FuzzCSV(f *testing.F) {
	f.Add("a", "b\nc", "\"d\"", "")
	f.Add("1,2", "\r\n", "\"", " x")
	f.Add("é", "\t", "a\"b", "NA")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		want := [][]string{{a, b}, {c, d}, {d, a}}
		if err := w.WriteAll(want); err != nil {
			t.Fatal(err)
		}
		l, err := newLines(bytes.NewReader(text.Bytes()))
		if bytes.HasPrefix(text.Bytes(), []byte("\xEF\xBB\xBF")) {
			t.Skip("a byte order mark")
		}
		if err != nil {
			t.Fatal(err)
		}
		r := &records{lines: l, comma: ','}
		for i := range want {
			rec, err := r.next()
			if errors.Is(err, ErrEncoding) && !utf8.Valid(text.Bytes()) {
				return
			}
			if err != nil || rec.bad != "" || len(rec.fields) != 2 {
				t.Fatalf("record %d of %q: %+v, %v", i, text.String(), rec, err)
			}
			for j, field := range rec.fields {
				if string(field) != want[i][j] {
					t.Fatalf("record %d field %d of %q: %q", i, j, text.String(), field)
				}
			}
		}
	})
}

// Any text comes to an end, and what encoding/csv can read is read alike, but for the line
// ends within quotes, which stay as they are.
func FuzzCSVText(f *testing.F) {
	f.Add("a,b\n1,\"x\ny\"\n")
	f.Add("a,b\r\n\"\",\"\"\"\"\r\n\"")
	f.Add("a\rb,\"c\"\r")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := newLines(strings.NewReader(text))
		if err != nil || strings.HasPrefix(text, "\xEF\xBB\xBF") {
			return
		}
		oracle := csv.NewReader(strings.NewReader(text))
		oracle.FieldsPerRecord = -1
		want, broken := oracle.ReadAll()
		r := &records{lines: l, comma: ','}
		at := int64(0)
		for n := 0; ; n++ {
			rec, err := r.next()
			if err == io.EOF {
				if broken == nil && n != len(want) {
					t.Fatalf("%q: %d records, not %d", text, n, len(want))
				}
				return
			}
			if errors.Is(err, ErrEncoding) && !utf8.ValidString(text) {
				return
			}
			if err != nil || rec.line <= at {
				t.Fatalf("%q: line %d after %d, %v", text, rec.line, at, err)
			}
			at = rec.line
			if broken != nil {
				continue
			}
			if rec.bad != "" || n >= len(want) || len(rec.fields) != len(want[n]) {
				t.Fatalf("%q: record %d: %+v", text, n, rec)
			}
			for i, field := range rec.fields {
				if got := strings.ReplaceAll(string(field), "\r\n", "\n"); got != want[n][i] {
					t.Fatalf("%q: record %d field %d: %q, not %q", text, n, i, got, want[n][i])
				}
			}
		}
	})
}
