package watch

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Display shows a person how the peers of a local run get on. One goroutine uses
// it.
type Display interface {
	// update shows the peers as they are.
	Update(peers []*Row)
	// line shows a line that stays.
	Line(text string)
}

// NewDisplay makes a live table on a terminal that can redraw, and plain lines elsewhere.
func NewDisplay(out io.Writer, title string) Display {
	if file, ok := out.(*os.File); ok && cli.Redraws(out) {
		size := func() (width, height int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil || width < 1 || height < 1 {
				return defaultWidth, defaultRows
			}
			return width, height
		}
		return &liveTable{out: out, title: title, size: size, color: os.Getenv("NO_COLOR") == ""}
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
	over     bool // the work was done at the last line
	ended    bool // all peers had, too
}

func (d *plainLines) Update(peers []*Row) {
	whole, training := overview(peers)
	text, over, ended := outlook(peers), whole.Progress >= 1, !slices.ContainsFunc(peers, (*Row).underWay)
	if text == "" || over && d.over && ended == d.ended {
		return
	}
	if now := time.Now(); over || training != d.training || now.Sub(d.last) >= d.every {
		d.last, d.training, d.over, d.ended = now, training, over, ended
		fmt.Fprintln(d.out, text)
	}
}

func (d *plainLines) Line(text string) { fmt.Fprintln(d.out, text) }

// outlook tells in a line how the peers as a whole get on; nothing if they have
// all ended without having trained.
func outlook(peers []*Row) string {
	whole, training := overview(peers)
	if training == 0 {
		ready, under := 0, false
		for _, p := range peers {
			under = under || p.underWay()
			if p.Phase >= PhaseReady && p.Phase <= PhaseDone {
				ready++
			}
		}
		if !under {
			return ""
		}
		return fmt.Sprintf("%d of %s ready", ready, cli.Plural(uint64(len(peers)), "peer"))
	}
	text := fmt.Sprintf("%3.0f %%  step %d  loss %s  exchanges %d  est. distance %s  peers %d",
		100*whole.Progress, whole.Step, cli.Figure(whole.Loss), whole.Exchanges, cli.Figure(whole.Distance), training)
	return text + whole.outcome(peers)
}

// outcome tells what is to come: for how long the peers will train, that some still do,
// or how many have ended with a result.
func (s Status) outcome(peers []*Row) string {
	left, ok := s.left()
	switch {
	case s.Progress < 1 && ok:
		return "  " + cli.Duration(left) + " left"
	case s.Progress >= 1 && slices.ContainsFunc(peers, (*Row).underWay):
		return "  " + othersAtWork
	case s.Progress >= 1:
		done := 0
		for _, p := range peers {
			if p.Phase == PhaseDone {
				done++
			}
		}
		return fmt.Sprintf("  %d of %s finished", done, cli.Plural(uint64(len(peers)), "peer"))
	}
	return ""
}

// overview adds up the peers that train or have: steps are sums, exchanges those
// of all that ever trained, loss and distance means, progress that of the peer which has come farthest.
func overview(peers []*Row) (whole Status, training int) {
	var loss, distance cli.Mean
	for _, p := range peers {
		whole.Initiated += p.Status.Initiated // by the dead too, with the living
		if p.Status.Elapsed == 0 || p.Phase == PhaseLost || p.Phase == PhaseFailed {
			continue
		}
		training++
		whole.Step += p.Status.Step
		if p.Status.Progress > whole.Progress {
			whole.Progress, whole.Begun = p.Status.Progress, p.Status.Begun
		}
		whole.Elapsed = max(whole.Elapsed, p.Status.Elapsed)
		loss.Add(p.Status.Loss)
		distance.Add(p.Status.Distance)
	}
	whole.Exchanges = whole.Initiated
	whole.Loss, whole.Distance = loss.Value(), distance.Value()
	return whole, training
}

// Row is what the flock knows of one peer.
type Row struct {
	ID     string
	Phase  phase
	Status Status
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
