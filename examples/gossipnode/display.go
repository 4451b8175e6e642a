package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/term"
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
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		width := func() int {
			columns, _, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return defaultWidth
			}
			return columns
		}
		return &liveTable{out: out, title: title, width: width, color: os.Getenv("NO_COLOR") == ""}
	}
	fmt.Fprintln(out, title)
	return &plainLines{out: out, every: printEvery}
}

// plainLines writes a line now and then, and whenever the number of peers that
// train changes, for logs and pipes.
type plainLines struct {
	out      io.Writer
	every    time.Duration
	last     time.Time
	training int
}

func (d *plainLines) update(peers []*peerState) {
	_, training := overview(peers)
	if now := time.Now(); training != d.training || now.Sub(d.last) >= d.every {
		d.last, d.training = now, training
		fmt.Fprintln(d.out, outlook(peers))
	}
}

func (d *plainLines) line(text string) { fmt.Fprintln(d.out, text) }
func (d *plainLines) close()           {}

// outlook tells in a line how the peers as a whole get on.
func outlook(peers []*peerState) string {
	whole, training := overview(peers)
	if training == 0 {
		ready := 0
		for _, p := range peers {
			if p.phase >= phaseJoining && p.phase <= phaseDone {
				ready++
			}
		}
		return fmt.Sprintf("%d of %d peers are ready", ready, len(peers))
	}
	text := fmt.Sprintf("%3.0f %%  step %d  loss %s  exchanges %d  distance %s  peers %d",
		100*whole.Progress, whole.Step, figure(whole.Loss), whole.Exchanges, figure(whole.Distance), training)
	if left, ok := whole.left(); ok && whole.Progress < 1 {
		text += "  " + duration(left) + " left"
	}
	return text
}

// overview adds up the peers that train or have: steps and exchanges are sums,
// loss and distance means, progress that of the peer which has come farthest.
func overview(peers []*peerState) (whole status, training int) {
	var loss, distance mean
	for _, p := range peers {
		if p.status.Elapsed == 0 || p.phase == phaseLost || p.phase == phaseFailed {
			continue
		}
		training++
		whole.Step += p.status.Step
		whole.Exchanges += p.status.Exchanges
		whole.Progress = max(whole.Progress, p.status.Progress)
		whole.Elapsed = max(whole.Elapsed, p.status.Elapsed)
		loss.add(p.status.Loss)
		distance.add(p.status.Distance)
	}
	whole.Exchanges = (whole.Exchanges + 1) / 2 // both sides have counted it
	whole.Loss, whole.Distance = loss.value(), distance.value()
	return whole, training
}

// mean is the mean of the numbers that are known.
type mean struct {
	sum   float64
	known int
}

func (m *mean) add(n number) {
	if !math.IsNaN(float64(n)) {
		m.sum += float64(n)
		m.known++
	}
}

// value is NaN if no number was known.
func (m *mean) value() number { return number(m.sum / float64(m.known)) }
