// Package supervise runs the peers of one command on this machine. It starts the first peer, and the others when it
// can be joined; shows their progress; asks them to leave; and kills those that do not leave. The command defines the
// work of the peers and uses the results.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

const (
	// leaveBound is how long peers may take to leave before they are killed: to end an exchange, write a checkpoint
	// and say goodbye.
	leaveBound = 15 * time.Second
	// holdBound is how long peers that are ready wait for the others. They have waited for these to join already;
	// this time is for what comes before the first step, at most three seconds and the copy of a model.
	holdBound = 9 * time.Second
	// displayEvery is the time between two updates of the display.
	displayEvery = 200 * time.Millisecond
	// maxEvents bounds the events that wait.
	maxEvents = 64
)

// Config is the command's part.
type Config struct {
	// Launch starts a peer, which joins others at the addresses join. It sends events to events; the last one is the
	// peer's end.
	Launch func(number int, join []string, events chan<- Event) (*Member, error)
	// Join are the addresses that the first peer joins; the others join these and the first peer.
	Join []string
	// AtOnce starts the other peers before the first one can be joined.
	AtOnce bool
	// LeaveWithin is how long peers may take to leave, if that is longer than leaveBound.
	LeaveWithin time.Duration
	// Stays: Run does not wait for the first peer after its result, since it still shows its dashboard; Stay does.
	Stays bool
	// Line is the text for a report that a person sees; it may be "".
	Line    func(number int, r *watch.Report) string
	Display *watch.Display
}

// Peers are the peers of a command. One goroutine, that of Run, owns them.
type Peers struct {
	Config
	Rows []*watch.Row
	// Begun: the peers may train. They begin together, since otherwise the first ones would do the work of the last
	// ones; hold ends the waiting.
	Begun bool
	// Fault is the first error of a peer itself, or cli.ErrInterrupted if that came first.
	Fault error
	// Unsaved is an error of the first peer whose last checkpoint could not be saved.
	Unsaved error

	members []*Member // nil before its start and after its end
	events  chan Event
	hold    <-chan time.Time
	joined  bool // the other peers have been started
	leaving bool
	grace   <-chan time.Time // at its end, peers that were asked to leave are killed
	echo    bool             // Fault repeats another peer's error, which that peer has not reported yet
}

// ErrAllKilled: all peers were killed, so there is no result and no error of a peer.
var ErrAllKilled = errors.New("no peer has finished: all were killed")

// New makes peers peers, none of which is started.
func New(c Config, peers int) *Peers {
	p := &Peers{Config: c, members: make([]*Member, peers), events: make(chan Event, maxEvents)}
	for range peers {
		p.Rows = append(p.Rows, &watch.Row{})
	}
	return p
}

// UntilSignal returns a context that ends at the first signal. A second signal closes kill, or ends this process at
// once if the peers are part of it.
func UntilSignal(inProcess bool) (ctx context.Context, kill <-chan struct{}, release func()) {
	second := make(chan struct{})
	onSecond := func() { close(second) }
	if inProcess {
		onSecond = func() { os.Exit(cli.ExitFailed) }
	}
	ctx, release = cli.UntilSignal(context.Background(), onSecond)
	return ctx, second, release
}

// Run starts the peers and watches them until the last one has ended. When ctx ends, they are asked to leave; when
// kill is closed, they are killed.
func (p *Peers) Run(ctx context.Context, kill <-chan struct{}) {
	p.launch(0, p.Join)
	if p.AtOnce {
		p.launchOthers(nil)
	}
	p.watch(ctx, kill, func() bool {
		first := p.Stays && p.members[0] != nil && p.Rows[0].Phase == watch.PhaseDone
		return p.alive() == 0 || p.alive() == 1 && first
	})
	p.Display.Update(p.Rows)
}

// First is the first peer; nil if it has ended.
func (p *Peers) First() *Member { return p.members[0] }

// Stay lets the first peer show its dashboard until ctx ends, if Stays.
func (p *Peers) Stay(ctx context.Context, kill <-chan struct{}) {
	if p.alive() > 0 {
		p.Display.Line("the dashboard stays until Ctrl-C")
		p.watch(ctx, kill, func() bool { return p.alive() == 0 })
	}
}

// watch handles the events of the peers until done.
func (p *Peers) watch(ctx context.Context, kill <-chan struct{}, done func() bool) {
	ticker := time.NewTicker(displayEvery)
	defer ticker.Stop()
	interrupted := ctx.Done()
	for !done() {
		select {
		case e := <-p.events:
			p.handle(e)
		case <-ticker.C:
			p.Display.Update(p.Rows)
		case <-interrupted:
			interrupted = nil
			p.note(cli.ErrInterrupted, false)
			p.Display.Line("stopping: the peers leave in good order; interrupt again to kill them")
			p.leave()
		case <-p.hold:
			p.begin()
		case <-p.grace:
			p.kill()
		case <-kill:
			kill = nil
			p.kill()
		}
	}
}

func (p *Peers) alive() (n int) {
	for _, m := range p.members {
		if m != nil {
			n++
		}
	}
	return n
}

func (p *Peers) launchOthers(join []string) {
	p.joined = true
	for number := 1; number < len(p.Rows); number++ {
		p.launch(number, join)
	}
}

func (p *Peers) launch(number int, join []string) {
	if p.leaving {
		return
	}
	member, err := p.Launch(number, join, p.events)
	if err != nil {
		p.fail(number, err.Error(), cli.ExitFailed, false)
		p.leave()
		return
	}
	p.members[number], p.Rows[number].Phase = member, watch.PhaseStarting
}

// beginIfReady lets the peers train if no peer is still on its way, or if they train already.
func (p *Peers) beginIfReady() {
	onTheWay := func(r *watch.Row) bool { return r.Phase < watch.PhaseReady }
	if !p.leaving && (p.Begun || !slices.ContainsFunc(p.Rows, onTheWay)) {
		p.begin()
	}
}

// begin lets the ready peers train; others begin when they are ready.
func (p *Peers) begin() {
	p.Begun, p.hold = true, nil
	for number, m := range p.members {
		if row := p.Rows[number]; row.Phase == watch.PhaseReady && m != nil {
			m.Begin()
			row.Phase = watch.PhaseTraining
		}
	}
}

// leave asks all peers to leave, and starts no further ones.
func (p *Peers) leave() {
	if p.leaving {
		return
	}
	p.leaving = true
	p.grace = time.After(max(p.LeaveWithin, leaveBound))
	for _, m := range p.members {
		if m != nil {
			m.Leave()
		}
	}
}

func (p *Peers) kill() {
	p.leaving = true
	for _, m := range p.members {
		if m != nil && m.Kill != nil {
			m.Kill()
		}
	}
}

// handle handles one event.
func (p *Peers) handle(e Event) {
	switch {
	case e.Report != nil:
		p.receive(e.Number, e.Report)
	case e.End != nil:
		p.ended(e.Number, e.End)
	default:
		p.Display.Line(p.Of(e.Number) + e.Line)
	}
}

// Of is the beginning of a peer's message, if there are several peers.
func (p *Peers) Of(number int) string {
	if len(p.Rows) == 1 {
		return ""
	}
	return fmt.Sprintf("peer %d: ", number)
}

// receive handles a peer's report.
func (p *Peers) receive(number int, r *watch.Report) {
	row := p.Rows[number]
	if r.Unsaved != "" && p.Unsaved == nil {
		p.Unsaved = cli.Coded(fmt.Errorf("%s%s", p.Of(number), r.Unsaved), cli.ExitFailed)
	}
	switch r.Kind {
	case watch.ReportStarted:
		row.ID, row.Phase = r.Peer, watch.PhaseJoining
		p.Display.Line(p.Line(number, r))
		if number == 0 && !p.joined {
			p.launchOthers(append(r.Addresses, p.Join...))
		}
	case watch.ReportNews:
		p.Display.Line(p.Line(number, r))
	case watch.ReportReady:
		row.Phase = watch.PhaseReady
		if p.hold == nil && !p.Begun {
			p.hold = time.After(holdBound)
		}
		p.beginIfReady()
	case watch.ReportProgress:
		if r.Status != nil {
			row.Status = *r.Status
		}
	case watch.ReportResult:
		row.Done, row.Phase = r, watch.PhaseDone
		if r.Share != nil { // it has served others since its last report of progress
			row.Status.Exchanges, row.Status.Initiated = r.Share.Result.Exchanges, r.Share.Initiated
		}
	case watch.ReportFailed:
		switch {
		case !r.Interrupted:
			p.fail(number, r.Failure, r.Code, r.Echo)
		case p.leaving:
			row.Phase = watch.PhaseLeft
		default:
			row.Phase = watch.PhaseLost
		}
	}
}

// ended handles the end of a peer. If it was killed, or another user asked it to leave, it is lost, and the others
// continue.
func (p *Peers) ended(number int, e *End) {
	p.members[number] = nil
	row := p.Rows[number]
	switch {
	case row.Phase == watch.PhaseDone || row.Phase == watch.PhaseLeft || row.Phase == watch.PhaseFailed:
	case row.Phase == watch.PhaseLost || e.Killed:
		row.Phase = watch.PhaseLost
		if !p.leaving {
			p.Display.Line(fmt.Sprintf("peer %d is lost; the others go on", number))
		}
	default:
		p.fail(number, fmt.Sprintf("ended without a result: %v", e.Err), cli.ExitFailed, false)
	}
	p.beginIfReady()
}

// fail records an error of a peer. Before training, when the others wait for it, it ends the run; later the others
// continue. echo tells that the error repeats another peer's, which that peer reports itself.
func (p *Peers) fail(number int, failure string, code int, echo bool) {
	fault := cli.Coded(fmt.Errorf("%s%s", p.Of(number), failure), code)
	p.note(fault, echo)
	p.Rows[number].Phase = watch.PhaseFailed
	switch {
	case p.Begun:
		p.Display.Line(fault.Error() + "; the others go on")
	case !echo:
		p.leave()
	}
}

// note keeps the first error; the original error replaces its echo.
func (p *Peers) note(fault error, echo bool) {
	if p.Fault == nil || p.echo && !echo {
		p.Fault, p.echo = fault, echo
	}
}
