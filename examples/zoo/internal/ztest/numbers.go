package ztest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Series is a named line of a golden file of numbers.
type Series struct {
	Name   string
	Values []float64
}

// Numbers compares series with a file in testdata, each number within a tolerance,
// or rewrites the file.
func Numbers(t *testing.T, name string, got []Series, tolerance float64) {
	t.Helper()
	if *update {
		var text strings.Builder
		for _, s := range got {
			fmt.Fprintf(&text, "%s:", s.Name)
			for _, v := range s.Values {
				fmt.Fprintf(&text, " %.7f", v)
			}
			text.WriteByte('\n')
		}
		Golden(t, name, text.String())
		return
	}
	path := filepath.Join("testdata", name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != len(got) {
		t.Fatalf("%s has %d lines, want %d", path, len(lines), len(got))
	}
	for i, s := range got {
		s.compare(t, path, lines[i], tolerance)
	}
}

// compare checks one line of a file.
func (s Series) compare(t *testing.T, path, line string, tolerance float64) {
	t.Helper()
	name, rest, _ := strings.Cut(line, ":")
	fields := strings.Fields(rest)
	if name != s.Name || len(fields) != len(s.Values) {
		t.Fatalf("%s: %q of %d numbers, want %q of %d", path, name, len(fields), s.Name, len(s.Values))
	}
	worst := 0.0
	for i, field := range fields {
		var want float64
		if _, err := fmt.Sscan(field, &want); err != nil {
			t.Fatalf("%s: %s, number %d: %v", path, name, i, err)
		}
		off := math.Abs(s.Values[i] - want)
		if worst = max(worst, off); !(off <= tolerance) {
			t.Errorf("%s: %s, number %d is %v, want %v within %v", path, name, i, s.Values[i], want, tolerance)
			return
		}
	}
	t.Logf("%s: %s is within %.2g", path, name, worst)
}
