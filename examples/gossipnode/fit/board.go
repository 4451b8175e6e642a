package fit

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// board shows a person how the peers get on: a table that is drawn over on a terminal, and a
// line now and then elsewhere.
type board struct {
	out   io.Writer
	live  bool
	begun time.Time
	drawn int // lines of the table on the screen
	last  time.Time
}

// lineEvery is the time between two lines where the table cannot be drawn over.
const lineEvery = 5 * time.Second

func newBoard(out io.Writer) *board {
	now := time.Now()
	return &board{out: out, live: cli.Redraws(out), begun: now, last: now}
}

// draw shows the peers as they are.
func (b *board) draw(peers []*row) {
	if !b.live {
		if now := time.Now(); now.Sub(b.last) >= lineEvery {
			b.last = now
			most := peers[0]
			for _, p := range peers {
				if p.last.Sums > most.last.Sums {
					most = p
				}
			}
			fmt.Fprintf(b.out, "%.0f s: %s, %s\n", now.Sub(b.begun).Seconds(), cli.Plural(uint64(most.last.Sums), "sum"), cli.Printable(most.at()))
		}
		return
	}
	text := b.clear() + fmt.Sprintf("%-6s %8s  %s\n", "peer", "sums", "at")
	for number, p := range peers {
		text += fmt.Sprintf("%-6d %8d  %s\n", number, p.last.Sums, cli.Cut(cli.Printable(p.at()), 60))
	}
	b.drawn = len(peers) + 1
	fmt.Fprint(b.out, text)
}

// at tells in a word or two what a peer is about.
func (p *row) at() string {
	switch {
	case p.lost:
		return "lost"
	case p.result != nil:
		return "done"
	case p.last.Kind == reportFailed:
		return "failed"
	case p.last.Doing == "":
		return "reading, or waiting for others"
	}
	return p.last.Doing
}

// clear takes the table off the screen.
func (b *board) clear() string {
	if b.drawn == 0 {
		return ""
	}
	lines := b.drawn
	b.drawn = 0
	return strings.Repeat("\x1b[A\x1b[2K", lines)
}

// line shows a line that stays.
func (b *board) line(text string) {
	if text != "" {
		fmt.Fprint(b.out, b.clear()+cli.Printable(text)+"\n")
	}
}

// end shows the table for the last time.
func (b *board) end(peers []*row) {
	if b.live {
		b.draw(peers)
	}
}
