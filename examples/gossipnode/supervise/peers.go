// Package supervise keeps the peers of one command on this machine: it starts the first, and the
// others when that can be joined; shows how they get on; asks them to leave, and kills those that do
// not. What they are to do, and what comes of it, is the command's.
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
	// leaveBound is how long peers that were asked to leave may take before they
	// are killed: an exchange in flight, a checkpoint, the goodbye.
	leaveBound = 15 * time.Second
	// holdBound is how long peers that are ready wait for those that are not. For
	// the others to come they have waited before, in gather; this is about what the
	// first step waits for, at most three seconds and a copy of a model.
	holdBound = 9 * time.Second
	// displayEvery is the time between two looks at the peers.
	displayEvery = 200 * time.Millisecond
	// maxEvents is how many events may wait.
	maxEvents = 64
)

// Config is what a command has to say about its peers.
type Config struct {
	// Launch starts a peer, which joins others at these addresses. Its events, the last of which is
	// its end, go to events.
	Launch func(number int, join []string, events chan<- Event) (*Member, error)
	// Join is where the first peer joins others; the rest join them and the first.
	Join []string
	// AtOnce: the others need not wait until the first can be joined.
	AtOnce bool
	// LeaveWithin is how long peers may take to leave, if that is more than some seconds.
	LeaveWithin time.Duration
	// Stays: the first is not waited for once it is done, but for in Stay; it shows its dashboard.
	Stays bool
	// Line is the text that a person sees for a report; it may be empty.
	Line    func(number int, r *watch.Report) string
	Display *watch.Display
}

// Peers are those of a command, as seen from the outside. One goroutine, that of Run, owns
// them.
type Peers struct {
	Config
	Rows []*watch.Row
	// Begun: the peers may train. They begin together, or those that come first
	// would do the work of those that come last; hold ends the waiting.
	Begun bool
	// Fault is the first of a peer's own, or cli.ErrInterrupted if that came before.
	Fault error
	// Unsaved is of the first peer whose last checkpoint could not be saved.
	Unsaved error

	members []*Member // nil of those that have ended, or not begun
	events  chan Event
	hold    <-chan time.Time
	joined  bool // the others have been started
	leaving bool
	grace   <-chan time.Time // ends when peers that were asked to leave are killed
	echo    bool             // the fault is another peer's, which is yet to tell it
}

// ErrAllKilled: there is no peer to have a result from, and no fault of a peer's own.
var ErrAllKilled = errors.New("no peer has finished: all were killed")

// New is so many peers, none of them started.
func New(c Config, peers int) *Peers {
	p := &Peers{Config: c, members: make([]*Member, peers), events: make(chan Event, maxEvents)}
	for range peers {
		p.Rows = append(p.Rows, &watch.Row{})
	}
	return p
}

// UntilSignal is a context that a first signal ends. At a second one kill is closed, or this
// process ends at once if the peers are part of it.
func UntilSignal(inProcess bool) (ctx context.Context, kill <-chan struct{}, release func()) {
	second := make(chan struct{})
	onSecond := func() { close(second) }
	if inProcess {
		onSecond = func() { os.Exit(cli.ExitFailed) }
	}
	ctx, release = cli.UntilSignal(context.Background(), onSecond)
	return ctx, second, release
}

// Run starts the peers and watches them until the last has ended. When ctx ends
// they are asked to leave; when kill is closed they are killed.
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

// First is the first peer, if it has not ended.
func (p *Peers) First() *Member { return p.members[0] }

// Stay lets the first peer show its dashboard until ctx ends, if it is to.
func (p *Peers) Stay(ctx context.Context, kill <-chan struct{}) {
	if p.alive() > 0 {
		p.Display.Line("the dashboard stays until Ctrl-C")
		p.watch(ctx, kill, func() bool { return p.alive() == 0 })
	}
}

// watch takes in what happens to the peers until they are done.
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

// beginIfReady lets the peers train if none is on its way, or if they do already.
func (p *Peers) beginIfReady() {
	onTheWay := func(r *watch.Row) bool { return r.Phase < watch.PhaseReady }
	if !p.leaving && (p.Begun || !slices.ContainsFunc(p.Rows, onTheWay)) {
		p.begin()
	}
}

// begin lets those peers train that are ready; the others need not wait then.
func (p *Peers) begin() {
	p.Begun, p.hold = true, nil
	for number, m := range p.members {
		if row := p.Rows[number]; row.Phase == watch.PhaseReady && m != nil {
			m.Begin()
			row.Phase = watch.PhaseTraining
		}
	}
}

// leave asks all peers to leave, and starts no more.
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

// handle takes in one event.
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

// Of begins what a peer says, if there are others.
func (p *Peers) Of(number int) string {
	if len(p.Rows) == 1 {
		return ""
	}
	return fmt.Sprintf("peer %d: ", number)
}

// receive takes in a peer's report.
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
		if r.Share != nil { // it has served others since it told how it gets on
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

// ended takes in the end of a peer. One that was killed is lost to the others,
// who go on; so is one that somebody else asked to leave.
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

// fail notes a fault of a peer's own. Before the training, when the others wait
// for it, it ends the run; later the others go on. Echo tells
// that the fault is another peer's, which is let tell it.
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

// note keeps the first fault; an echo gives way to what it is the echo of.
func (p *Peers) note(fault error, echo bool) {
	if p.Fault == nil || p.echo && !echo {
		p.Fault, p.echo = fault, echo
	}
}
