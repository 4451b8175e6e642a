package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	defaultWidth = 80
	barWidth     = 40

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
	width func() int
	color bool

	peers  []*peerState
	height int // lines on the screen, to be drawn over
}

func (t *liveTable) update(peers []*peerState) {
	t.peers = peers
	t.draw("")
}

// line puts a line above the table.
func (t *liveTable) line(text string) { t.draw(printable(text) + "\n") }

func (t *liveTable) close() {}

// draw replaces the table on the screen, with above, which stays, before it. All
// of it is one write, so that the screen does not flicker.
func (t *liveTable) draw(above string) {
	var text strings.Builder
	if t.height > 0 {
		fmt.Fprintf(&text, cursorUp, t.height)
		text.WriteString("\r" + clearBelow)
	}
	text.WriteString(above)
	lines := tableLines(t.title, t.peers, t.width(), t.color)
	for _, line := range lines {
		text.WriteString(line + "\n")
	}
	t.height = len(lines)
	_, _ = io.WriteString(t.out, text.String())
}

// tableLines is the table, no line wider than width.
func tableLines(title string, peers []*peerState, width int, color bool) []string {
	head := fmt.Sprintf("%4s  %-8s  %-9s  %8s  %8s  %9s  %8s", "peer", "id", "role", "step", "loss", "exchanges", "distance")
	lines := []string{cut(title, width), paint(cut(head, width), bold, color)}
	for number, p := range peers {
		lines = append(lines, cut(tableRow(number, p), width))
	}
	whole, training := overview(peers)
	if training == 0 {
		return append(lines, cut(outlook(peers), width))
	}
	filled := int(whole.Progress*barWidth + 0.5)
	bar := paint(strings.Repeat("#", filled), green, color) + strings.Repeat(".", barWidth-filled)
	foot := fmt.Sprintf(" %3.0f %%", 100*whole.Progress)
	if left, ok := whole.left(); ok && whole.Progress < 1 {
		foot += "  " + duration(left) + " left"
	}
	if barWidth+len(foot) > width {
		return append(lines, cut(strings.TrimSpace(foot), width))
	}
	return append(lines, bar+foot)
}

// tableRow is the line of one peer. Its role gives way to what is more
// important: that it does not train.
func tableRow(number int, p *peerState) string {
	role := p.phase.String()
	if p.phase == phaseTraining {
		role = p.status.Role
	}
	if p.status.Elapsed == 0 {
		return fmt.Sprintf("%4d  %-8s  %-9s", number, short(p.id), role)
	}
	return fmt.Sprintf("%4d  %-8s  %-9s  %8d  %8s  %9d  %8s", number, short(p.id), role,
		p.status.Step, figure(p.status.Loss), p.status.Exchanges, figure(p.status.Distance))
}

func paint(text, with string, color bool) string {
	if !color {
		return text
	}
	return with + text + plain
}

// cut shortens a line to a width: one that wraps would spoil the redrawing.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width || width < 1 {
		return line
	}
	return string([]rune(line)[:width])
}

// printable drops control characters: what a peer logs must not steer the
// terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
