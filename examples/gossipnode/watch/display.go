package watch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	defaultWidth = 80
	defaultRows  = 24
	barDone      = "#"

	// Control sequences (ECMA-48).
	clearBelow = "\x1b[J"
	cursorUp   = "\x1b[%dA"
	bold       = "\x1b[1m"
	green      = "\x1b[32m"
	plain      = "\x1b[0m"
)

// View is the content of a Display.
type View interface {
	// Head has the names of the columns for a terminal of this width. Row is the line of a peer, Foot the last line,
	// which may be "".
	Head(width int) string
	Row(number int, p *Row, width int) string
	Foot(peers []*Row, width int) string
	// Outlook is a line for a log, since after the last one; "" if there is nothing to report.
	Outlook(peers []*Row, since time.Duration) string
}

// Display shows the progress of peers to a person: as a table at the bottom of a terminal, which it redraws, or
// elsewhere as a line from time to time. One goroutine uses it.
type Display struct {
	out   io.Writer
	title string
	view  View
	size  func() (width, height int) // of the terminal; nil if it cannot be redrawn
	color bool

	peers []*Row
	shown []int     // widths of the lines of the table on the screen
	last  time.Time // time of the last line in a log
}

// NewDisplay makes a redrawn table on a terminal, and plain lines elsewhere. title may be "".
func NewDisplay(out io.Writer, title string, view View) *Display {
	d := &Display{out: out, title: title, view: view, color: os.Getenv("NO_COLOR") == "", last: time.Now()}
	if file, ok := out.(*os.File); ok && cli.Redraws(out) {
		d.size = func() (width, height int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil || width < 1 || height < 1 {
				return defaultWidth, defaultRows
			}
			return width, height
		}
	} else if title != "" {
		d.Line(title)
	}
	return d
}

// Update shows the current state of the peers.
func (d *Display) Update(peers []*Row) {
	if d.peers = peers; d.size != nil {
		d.draw("")
		return
	}
	now := time.Now()
	if text := d.view.Outlook(peers, now.Sub(d.last)); text != "" {
		d.last = now
		d.Line(text)
	}
}

// Line shows lines that stay, above the table. They may wrap, since they are not redrawn. Control characters in a
// peer's text are removed.
func (d *Display) Line(text string) {
	var above strings.Builder
	for line := range strings.Lines(text) {
		above.WriteString(cli.Printable(line) + "\n")
	}
	d.draw(above.String())
}

// draw replaces the table on the screen, after the lines above, which stay. It writes once, so that the screen does
// not flicker.
func (d *Display) draw(above string) {
	if d.size == nil {
		_, _ = io.WriteString(d.out, above)
		return
	}
	var text strings.Builder
	width, height := d.size()
	if up := rowsOf(d.shown, width); up > 0 {
		fmt.Fprintf(&text, cursorUp, min(up, max(height-1, 1)))
		text.WriteString("\r" + clearBelow)
	}
	text.WriteString(above)
	d.shown = d.shown[:0]
	if d.peers != nil {
		for _, line := range d.table(width, height) {
			d.shown = append(d.shown, utf8.RuneCountInString(line))
			text.WriteString(d.paint(line) + "\n")
		}
	}
	_, _ = io.WriteString(d.out, text.String())
}

// rowsOf counts the screen's rows of lines: a terminal that has become narrower since wraps them.
func rowsOf(widths []int, width int) int {
	rows := 0
	for _, w := range widths {
		rows += max(1, (w+width-1)/width)
	}
	return rows
}

// table has the lines of the table: at most width wide, and one row less than height, for the cursor. Peers that do
// not fit are counted.
func (d *Display) table(width, height int) (lines []string) {
	const others = 4 // title, head, foot and the cursor's row
	shown := len(d.peers)
	if room := max(height-others, 2); shown > room {
		shown = room - 1
	}
	add := func(line string) {
		if line = cli.Cut(cli.Printable(line), width); line != "" {
			lines = append(lines, line)
		}
	}
	add(d.title)
	add(d.view.Head(width))
	for number, p := range d.peers[:shown] {
		add(d.view.Row(number, p, width))
	}
	if more := len(d.peers) - shown; more > 0 {
		add(fmt.Sprintf("and %d more", more))
	}
	add(d.view.Foot(d.peers, width))
	return lines[:min(len(lines), max(height-1, 1))]
}

// paint colours a line of the table. Colour codes take no space on the screen.
func (d *Display) paint(line string) string {
	switch {
	case !d.color:
		return line
	case strings.HasPrefix(line, headBegins):
		return bold + line + plain
	case strings.HasPrefix(line, barDone):
		rest := strings.TrimLeft(line, barDone)
		return green + line[:len(line)-len(rest)] + plain + rest
	}
	return line
}

// headBegins is the start of the line with the names of the columns.
const headBegins = "peer "

// Row is the state of one peer.
type Row struct {
	ID     string
	Phase  phase
	Status Status
	// Done is its last report, with its result; nil before.
	Done *Report
}

func (r *Row) underWay() bool { return r.Phase < PhaseDone }

// phase is the phase of a peer's life.
type phase uint8

const (
	phaseWaiting  phase = iota // not started yet
	PhaseStarting              // loading its data
	PhaseJoining               // waiting for the others
	PhaseReady                 // waiting for permission to begin
	PhaseTraining
	PhaseDone
	PhaseLeft   // ended because it was asked to
	PhaseLost   // killed, or asked to leave by another user
	PhaseFailed // ended by its own error
)

func (p phase) String() string {
	return [...]string{"waiting", "starting", "joining", "ready", "training", "done", "left", "lost", "failed"}[p]
}
