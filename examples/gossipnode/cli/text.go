package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// List joins names as in a sentence.
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Plural is a number with a noun, in singular or plural.
func Plural(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Size is a number of bytes with a unit.
func Size(bytes uint64) string {
	const step = 1000
	value, units := float64(bytes), []string{"B", "kB", "MB", "GB", "TB"}
	for len(units) > 1 && value >= step {
		value, units = value/step, units[1:]
	}
	return fmt.Sprintf("%.3g %s", value, units[0])
}

// Print prints figures for a person, or only as JSON if asJSON.
func Print(figures fmt.Stringer, asJSON bool, std Streams) error {
	text := std.Out
	if asJSON {
		text = std.Err
	}
	_, err := io.WriteString(text, figures.String())
	if err == nil && asJSON {
		err = json.NewEncoder(std.Out).Encode(figures)
	}
	if err != nil {
		return fmt.Errorf("printing the figures: %w", err)
	}
	return nil
}

// Streams are the standard streams of one execution. Results go to Out, everything else to Err; In is read only to
// detect the end of a parent.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Redraws tells whether out is a terminal on which lines can be redrawn.
func Redraws(out io.Writer) bool { return IsTerminal(out) && os.Getenv("TERM") != "dumb" }

// IsTerminal tells whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Percent is a share in percent; it may be unknown.
func Percent(n Number) string {
	if math.IsNaN(float64(n)) {
		return "unknown"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n))
}

// Duration is a remaining time in few characters.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()+0.5))
	}
	return d.Round(time.Second).String()
}

// Figure is a number in few characters.
func Figure(n Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return fmt.Sprintf("%.4f", float64(n))
}

// Cut shortens a line to a width, since a line that wraps spoils the redrawing.
func Cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width || width < 1 {
		return line
	}
	return string([]rune(line)[:width])
}

// Printable removes control characters, those of C1 too, which terminals obey in UTF-8: a peer's log must not control the terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// maxLine bounds a line of a peer's output, and maxReport one of its standard output: the result of a search has all its trials. The
// rest of a longer line is dropped.
const maxLine, maxReport = 64 << 10, 64 << 20

// LineWriter calls a function for each line written to it.
type LineWriter struct {
	Take func(string)
	Most int // bytes of a line. Default: 65536
	rest bytes.Buffer
}

// Write implements io.Writer and never fails.
func (w *LineWriter) Write(text []byte) (int, error) {
	for part := range bytes.Lines(text) {
		w.rest.Write(part[:min(len(part), max(0, cmp.Or(w.Most, maxLine)-w.rest.Len()))])
		if part[len(part)-1] == '\n' {
			w.Flush()
		}
	}
	return len(text), nil
}

// Flush passes on a last line without an end.
func (w *LineWriter) Flush() {
	if line := strings.TrimRight(w.rest.String(), "\r\n"); line != "" {
		w.Take(line)
	}
	w.rest.Reset()
}
