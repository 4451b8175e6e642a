package watch

import (
	"io"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// runDisplay shows a person at a terminal the run as one peer sees it: a table of the
// peers below, what is logged above it, where it stays. Any goroutine may log.
type runDisplay struct {
	mu    sync.Mutex
	show  Display
	own   Row
	shown []*Row
}

// NewRun gives a peer that a person watches its log and its reporter: a live table
// on a terminal, lines elsewhere.
func NewRun(title string, newLog func(io.Writer) *zap.Logger, out io.Writer) (log *zap.Logger, tell Reporter, everybody bool) {
	table := newLiveTable(out, title)
	if table == nil {
		return newLog(out), textReporter(out, printEvery), false
	}
	d := &runDisplay{show: table}
	return newLog(&cli.LineWriter{Take: d.Line}), d.tell, true
}

func (d *runDisplay) Line(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.show.Line(text)
}

// tell takes the peer's reports.
func (d *runDisplay) tell(r Report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Kind {
	case ReportStarted:
		textReporter(&cli.LineWriter{Take: d.show.Line}, printEvery)(r)
		d.own.ID, d.own.Phase = r.Peer, PhaseJoining
	case ReportReady:
		d.own.Phase = PhaseTraining
	case ReportProgress:
		d.own.Status, d.own.Phase = *r.Status, PhaseTraining
	}
	d.shown = append([]*Row{&d.own}, r.Others...)
	d.show.Update(d.shown)
}
