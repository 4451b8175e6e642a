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

// View is what a Display shows of peers.
type View interface {
	// Head names the columns of a table on a terminal of this width, Row is the line of a peer
	// in it, Foot the last line, if there is one.
	Head(width int) string
	Row(number int, p *Row, width int) string
	Foot(peers []*Row, width int) string
	// Outlook is a line for a log, so long after the last one; nothing if there is none to tell
	// yet.
	Outlook(peers []*Row, since time.Duration) string
}

// Display shows a person how peers get on: by a table that it keeps up to date at the bottom of
// a terminal, and by a line now and then elsewhere. One goroutine uses it.
type Display struct {
	out   io.Writer
	title string
	view  View
	size  func() (width, height int) // of the terminal; nil where nothing can be drawn over
	color bool

	peers []*Row
	shown []int     // the widths of the lines on the screen, to be drawn over
	last  time.Time // when the last line for a log was written
}

// NewDisplay makes a live table on a terminal that can redraw, and plain lines elsewhere. The title
// may be empty.
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

// Update shows the peers as they are.
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

// Line shows lines that stay, above the table. They may wrap: nothing is drawn over them. What a
// peer says must not steer the terminal.
func (d *Display) Line(text string) {
	var above strings.Builder
	for line := range strings.Lines(text) {
		above.WriteString(cli.Printable(line) + "\n")
	}
	d.draw(above.String())
}

// draw replaces the table on the screen, with above, which stays, before it. All
// of it is one write, so that the screen does not flicker.
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

// rowsOf counts the rows that lines take on a terminal which may have become
// narrower since they were written, and wraps them then.
func rowsOf(widths []int, width int) int {
	rows := 0
	for _, w := range widths {
		rows += max(1, (w+width-1)/width)
	}
	return rows
}

// table is the lines of the table: none wider than width, and one row less than height,
// for the cursor. Peers that there is no room for are counted.
func (d *Display) table(width, height int) (lines []string) {
	const others = 4 // the title, the head, the foot and the cursor's row
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

// paint colors a line of the table. What it adds takes no room on the screen.
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

// headBegins begins the line of a table that names its columns.
const headBegins = "peer "

// Row is what is known of one peer.
type Row struct {
	ID     string
	Phase  phase
	Status Status
	// Done is its report of its result, if it has one.
	Done *Report
}

func (r *Row) underWay() bool { return r.Phase < PhaseDone }

// phase is how far a peer has come.
type phase uint8

const (
	phaseWaiting  phase = iota // not started yet
	PhaseStarting              // loading its data
	PhaseJoining               // waiting for the others
	PhaseReady                 // waiting for leave to begin
	PhaseTraining
	PhaseDone
	PhaseLeft   // when asked to
	PhaseLost   // it was killed, or asked by somebody else to leave
	PhaseFailed // by its own fault
)

func (p phase) String() string {
	return [...]string{"waiting", "starting", "joining", "ready", "training", "done", "left", "lost", "failed"}[p]
}
