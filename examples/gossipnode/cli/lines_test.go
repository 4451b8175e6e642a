package cli

import (
	"slices"
	"strings"
	"testing"
)

// TestLineWriter shows that lines come whole however they are written, and that
// endless ones are cut.
func TestLineWriter(t *testing.T) {
	var lines []string
	w := &LineWriter{Take: func(line string) { lines = append(lines, line) }}
	for _, text := range []string{"one\ntw", "o\r\n\nthr", "ee", "\n", "four"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d, error %v", n, len(text), err)
		}
	}
	w.Flush()
	if want := []string{"one", "two", "three", "four"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	lines = nil
	for range 3 {
		_, _ = w.Write([]byte(strings.Repeat("x", maxLine/2)))
	}
	_, _ = w.Write([]byte("\n"))
	if len(lines) != 1 || len(lines[0]) != maxLine {
		t.Errorf("%d lines", len(lines))
	}
}

// TestPrintable: nothing of a peer's text steers a terminal, which obeys U+009B as it does ESC [.
func TestPrintable(t *testing.T) {
	if got := Printable("a\tb\x1b[2J\u009b2J\u0085\x7f\r\n\x9bé"); got != "a\tb[2J2J\ufffdé" {
		t.Errorf("%q", got)
	}
}
