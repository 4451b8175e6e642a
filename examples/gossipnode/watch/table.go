package watch

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	defaultWidth = 80
	defaultRows  = 24
	barWidth     = 40
	barDone      = "#"

	// Control sequences (ECMA-48).
	clearBelow = "\x1b[J"
	cursorUp   = "\x1b[%dA"
	bold       = "\x1b[1m"
	green      = "\x1b[32m"
	plain      = "\x1b[0m"
)

// liveTable keeps a table up to date at the bottom of a terminal.
type liveTable struct {
	out   io.Writer
	title string
	size  func() (width, height int)
	color bool

	peers []*Row
	shown []int // the widths of the lines on the screen, to be drawn over
}

func (t *liveTable) Update(peers []*Row) {
	t.peers = peers
	t.draw("")
}

// Line puts a line above the table. It may wrap: nothing is drawn over it.
func (t *liveTable) Line(text string) { t.draw(cli.Printable(text) + "\n") }

// draw replaces the table on the screen, with above, which stays, before it. All
// of it is one write, so that the screen does not flicker.
func (t *liveTable) draw(above string) {
	var text strings.Builder
	width, height := t.size()
	if up := rowsOf(t.shown, width); up > 0 {
		fmt.Fprintf(&text, cursorUp, min(up, max(height-1, 1)))
		text.WriteString("\r" + clearBelow)
	}
	text.WriteString(above)
	t.shown = t.shown[:0]
	if t.peers != nil {
		for i, line := range tableLines(t.title, t.peers, width, height) {
			t.shown = append(t.shown, utf8.RuneCountInString(line))
			text.WriteString(t.paint(i, line) + "\n")
		}
	}
	_, _ = io.WriteString(t.out, text.String())
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

// columns are those of a table: peer, id, role, step, loss, exchanges (those that it served
// too), and the distance of its model from the mean of all, as the last exchanges let
// estimate.
type columns struct {
	gap    string
	widths [7]int // negative to begin at the left
	heads  []string
	digits int // of figures
}

// columnsFor are the widest that a terminal has room for: first the id is cut
// short, then everything is.
func columnsFor(width int) columns {
	heads := []string{"peer", "id", "role", "step", "loss", "exchanges", "est.dist"}
	switch {
	case width >= 66:
		return columns{"  ", [...]int{4, -8, -9, 8, 8, 9, 8}, heads, 4}
	case width >= 62:
		return columns{"  ", [...]int{4, -4, -9, 8, 8, 9, 8}, heads, 4}
	}
	heads[5], heads[6] = "exch", "~dist"
	return columns{" ", [...]int{4, -4, -9, 7, 6, 6, 6}, heads, 3}
}

// line puts texts into the columns.
func (c columns) line(texts ...string) string {
	for i, width := range c.widths {
		texts[i] = fmt.Sprintf("%*s", width, texts[i])
	}
	return strings.TrimRight(strings.Join(texts, c.gap), " ")
}

// row is the line of one peer. Its role gives way to what is more important: that
// it does not train.
func (c columns) row(number int, p *Row) string {
	role, id := p.Phase.String(), cli.Cut(seam.PeerID(p.ID).Short(), -c.widths[1])
	if p.Phase == PhaseTraining {
		role = p.Status.Role
	}
	s, peer := p.Status, strconv.Itoa(number)
	if s.Elapsed == 0 {
		return c.line(peer, id, role, "", "", "", "")
	}
	return c.line(peer, id, role, strconv.FormatUint(s.Step, 10), c.figure(s.Loss), strconv.FormatUint(s.Exchanges, 10), c.figure(s.Distance))
}

// figure is a number with as many digits as there is room for.
func (c columns) figure(n cli.Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'f', c.digits, 64)
}

// headLine is the line of the table that names the columns.
const headLine = 1

// tableLines is the table: no line wider than width, and one row less than height,
// for the cursor. Peers that there is no room for are counted.
func tableLines(title string, peers []*Row, width, height int) []string {
	const others = 4 // the title, the head, the foot and the cursor's row
	c, shown := columnsFor(width), len(peers)
	if room := max(height-others, 2); shown > room {
		shown = room - 1
	}
	lines := []string{cli.Printable(title), c.line(c.heads...)}
	for number, p := range peers[:shown] {
		lines = append(lines, c.row(number, p))
	}
	if more := len(peers) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	lines = append(lines, foot(peers, width))
	for i := range lines {
		lines[i] = cli.Cut(lines[i], width)
	}
	return lines[:min(len(lines), max(height-1, 1))]
}

// foot is the last line: a bar of the progress, if there is room, and what is to
// come.
func foot(peers []*Row, width int) string {
	whole, training := overview(peers)
	if training == 0 {
		return outlook(peers)
	}
	text := fmt.Sprintf(" %3.0f %%", 100*whole.Progress) + whole.outcome(peers)
	if barWidth+len(text) > width {
		return strings.TrimSpace(text)
	}
	filled := int(whole.Progress*barWidth + 0.5)
	return strings.Repeat(barDone, filled) + strings.Repeat(".", barWidth-filled) + text
}

// paint colors the line of the table with this index. What it adds takes no room
// on the screen.
func (t *liveTable) paint(index int, line string) string {
	switch {
	case !t.color:
		return line
	case index == headLine:
		return bold + line + plain
	case strings.HasPrefix(line, barDone):
		rest := strings.TrimLeft(line, barDone)
		return green + line[:len(line)-len(rest)] + plain + rest
	}
	return line
}
