package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// display shows a person how the peers of a local run get on. One goroutine uses
// it.
type display interface {
	// update shows the peers as they are.
	update(peers []*peerState)
	// line shows a line that stays.
	line(text string)
	// close leaves the terminal as it should be.
	close()
}

// newDisplay makes a live table on a terminal, and plain lines elsewhere.
func newDisplay(out io.Writer, title string) display {
	if table := newLiveTable(out, title); table != nil {
		return table
	}
	fmt.Fprintln(out, title)
	return &plainLines{out: out, every: printEvery}
}

// newLiveTable makes a live table on a terminal that can redraw, and none elsewhere.
func newLiveTable(out io.Writer, title string) *liveTable {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		size := func() (width, height int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil || width < 1 || height < 1 {
				return defaultWidth, defaultRows
			}
			return width, height
		}
		return &liveTable{out: out, title: title, size: size, color: os.Getenv("NO_COLOR") == ""}
	}
	return nil
}

// plainLines writes a line now and then, and whenever the number of peers that
// train changes, for logs and pipes.
type plainLines struct {
	out      io.Writer
	every    time.Duration
	last     time.Time
	training int
	over     bool // the work was done at the last line
}

func (d *plainLines) update(peers []*peerState) {
	whole, training := overview(peers)
	text, over := outlook(peers), whole.Progress >= 1
	if text == "" || over && d.over {
		return
	}
	if now := time.Now(); over || training != d.training || now.Sub(d.last) >= d.every {
		d.last, d.training, d.over = now, training, over
		fmt.Fprintln(d.out, text)
	}
}

func (d *plainLines) line(text string) { fmt.Fprintln(d.out, text) }
func (d *plainLines) close()           {}

// outlook tells in a line how the peers as a whole get on; nothing if they have
// all ended without having trained.
func outlook(peers []*peerState) string {
	whole, training := overview(peers)
	if training == 0 {
		ready, under := 0, false
		for _, p := range peers {
			under = under || p.phase < phaseDone
			if p.phase >= phaseReady && p.phase <= phaseDone {
				ready++
			}
		}
		if !under {
			return ""
		}
		return fmt.Sprintf("%d of %s ready", ready, cli.Plural(uint64(len(peers)), "peer"))
	}
	text := fmt.Sprintf("%3.0f %%  step %d  loss %s  exchanges %d  distance %s  peers %d",
		100*whole.Progress, whole.Step, figure(whole.Loss), whole.Exchanges, figure(whole.Distance), training)
	return text + whole.outcome(peers)
}

// outcome tells what is to come: for how long the peers will train, or that some
// still do.
func (s status) outcome(peers []*peerState) string {
	left, ok := s.left()
	underWay := func(p *peerState) bool { return p.phase < phaseDone }
	switch {
	case s.Progress < 1 && ok:
		return "  " + duration(left) + " left"
	case s.Progress >= 1 && slices.ContainsFunc(peers, underWay):
		return "  " + othersAtWork
	}
	return ""
}

// overview adds up the peers that train or have: steps are sums, exchanges those
// of all that ever trained, loss and distance means, progress that of the peer which has come farthest.
func overview(peers []*peerState) (whole status, training int) {
	var loss, distance cli.Mean
	for _, p := range peers {
		whole.Initiated += p.status.Initiated // by the dead too, with the living
		if p.status.Elapsed == 0 || p.phase == phaseLost || p.phase == phaseFailed {
			continue
		}
		training++
		whole.Step += p.status.Step
		if p.status.Progress > whole.Progress {
			whole.Progress, whole.Begun = p.status.Progress, p.status.Begun
		}
		whole.Elapsed = max(whole.Elapsed, p.status.Elapsed)
		loss.Add(p.status.Loss)
		distance.Add(p.status.Distance)
	}
	whole.Exchanges = whole.Initiated
	whole.Loss, whole.Distance = loss.Value(), distance.Value()
	return whole, training
}
