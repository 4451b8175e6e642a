package read

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// written is a file of a name and content in a folder of the test's own.
func written(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, c Config, paths ...string) *Table {
	t.Helper()
	r, err := Open(t.Context(), paths, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all is the rows of a table: each a text of its key and its values, "-" for a missing one.
func all(source table.Source) (rows []string, err error) {
	for b, err := range source(context.Background()) {
		if err != nil {
			return rows, err
		}
		for row := range b.Rows {
			line := []string{fmt.Sprint(b.Key(row))}
			for i := range b.Columns {
				line = append(line, value(&b.Columns[i], row))
			}
			rows = append(rows, strings.Join(line, " "))
		}
	}
	return rows, nil
}

func value(c *table.Column, row int) string {
	switch {
	case c.Kind == table.Number && math.IsNaN(c.Numbers[row]), c.Kind == table.Category && c.Codes[row] == table.Missing:
		return "-"
	case c.Kind == table.Number:
		return fmt.Sprint(c.Numbers[row])
	}
	return fmt.Sprintf("%q", c.Values[c.Codes[row]])
}

func mustAll(t testing.TB, source table.Source) []string {
	t.Helper()
	rows, err := all(source)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// refused checks that an error names all of what it should.
func refused(t testing.TB, err error, names ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that names %q", names)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %q", err, name)
		}
	}
}
