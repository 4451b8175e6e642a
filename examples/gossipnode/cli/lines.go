package cli

import (
	"bytes"
	"strings"
)

// maxLine bounds a line of a peer's output; longer ones are cut.
const maxLine = 64 << 10

// LineWriter hands over what is written to it line by line.
type LineWriter struct {
	Take func(string)
	rest bytes.Buffer
}

// Write implements io.Writer and never fails.
func (w *LineWriter) Write(text []byte) (int, error) {
	for part := range bytes.Lines(text) {
		w.rest.Write(part[:min(len(part), max(0, maxLine-w.rest.Len()))])
		if part[len(part)-1] == '\n' {
			w.Flush()
		}
	}
	return len(text), nil
}

// Flush hands over a last line that has no end.
func (w *LineWriter) Flush() {
	if line := strings.TrimRight(w.rest.String(), "\r\n"); line != "" {
		w.Take(line)
	}
	w.rest.Reset()
}
