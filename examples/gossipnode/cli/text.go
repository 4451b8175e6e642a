package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// List writes names as a sentence does.
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Plural counts things as people do.
func Plural(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Size writes a number of bytes as people do.
func Size(bytes uint64) string {
	const step = 1000
	value, units := float64(bytes), []string{"B", "kB", "MB", "GB", "TB"}
	for len(units) > 1 && value >= step {
		value, units = value/step, units[1:]
	}
	return fmt.Sprintf("%.3g %s", value, units[0])
}

// Print prints figures for a person, and as JSON if asked to: then that is all there
// is on standard output.
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

// Streams are the standard streams of one execution. Results go to Out, everything
// else to Err; In is read only to learn that a parent has gone.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Redraws tells whether what is written there goes to a terminal that can draw over it.
func Redraws(out io.Writer) bool { return IsTerminal(out) && os.Getenv("TERM") != "dumb" }

// IsTerminal tells whether a person sees what is written there.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Percent writes a share, which may be unknown.
func Percent(n Number) string {
	if math.IsNaN(float64(n)) {
		return "unknown"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n))
}

// Duration writes a time to go as people do.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()+0.5))
	}
	return d.Round(time.Second).String()
}

// Figure writes a number in few characters.
func Figure(n Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return fmt.Sprintf("%.4f", float64(n))
}

// Cut shortens a line to a width: one that wraps would spoil the redrawing.
func Cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width || width < 1 {
		return line
	}
	return string([]rune(line)[:width])
}

// Printable drops control characters: what a peer logs must not steer the
// terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

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
