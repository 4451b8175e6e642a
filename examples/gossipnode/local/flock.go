package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
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
	// maxEvents is how many events may wait for the flock's loop.
	maxEvents = 64
)

// flock is the peers of a local run, as seen from the outside. One goroutine,
// that of run, owns it.
type flock struct {
	settings settings.Settings
	launcher launcher
	display  watch.Display
	events   chan event
	peers    []*localPeer
	shown    []*watch.Row // the same, as the display takes them

	news  []string // what peers have told in words
	alive int
	// begun: the peers may train. They begin together, or those that come first
	// would do the work of those that come last; hold ends the waiting.
	begun   bool
	hold    <-chan time.Time
	joined  bool // the others have been started
	leaving bool
	// grace ends when peers that were asked to leave are killed.
	grace <-chan time.Time
	fault error // the first of a peer's own
	// echo: the fault is another peer's, which is yet to tell it.
	echo bool
	// unsaved is of the first peer whose last checkpoint could not be saved.
	unsaved error
}

// localPeer is what the flock knows of one peer.
type localPeer struct {
	watch.Row
	handle member
	share  *result.Share
}

func newFlock(s settings.Settings, peers int, start launcher, show watch.Display) *flock {
	f := &flock{settings: s, launcher: start, display: show, events: make(chan event, maxEvents)}
	for range peers {
		p := &localPeer{}
		f.peers, f.shown = append(f.peers, p), append(f.shown, &p.Row)
	}
	return f
}

// run starts the peers and watches them until the last has ended. When ctx ends
// they are asked to leave; when kill is closed they are killed. The result is
// that of the peers which finished, if any did; an error may come beside it.
func (f *flock) run(ctx context.Context, kill <-chan struct{}) (result.Result, error) {
	f.start()
	f.watch(ctx, kill, f.over)
	f.display.Update(f.shown)
	total, err := f.verdict(ctx)
	if first := f.peers[0]; total.Peers > 0 && first.handle != nil {
		first.handle.show(total)
	}
	return total, err
}

// over tells whether all peers have ended, but for one that only shows its dashboard.
func (f *flock) over() bool {
	first := f.peers[0]
	staying := f.settings.Stays(nil) && first.handle != nil && first.Phase == watch.PhaseDone
	return f.alive == 0 || f.alive == 1 && staying
}

// stay lets the first peer show its dashboard until ctx ends, if it is to.
func (f *flock) stay(ctx context.Context, kill <-chan struct{}) {
	if f.alive == 0 {
		return
	}
	f.display.Line("the dashboard stays until Ctrl-C")
	f.watch(ctx, kill, func() bool { return f.alive == 0 })
}

// watch takes in what happens to the peers until they are done.
func (f *flock) watch(ctx context.Context, kill <-chan struct{}, done func() bool) {
	ticker := time.NewTicker(displayEvery)
	defer ticker.Stop()
	interrupted := ctx.Done()
	for !done() {
		select {
		case e := <-f.events:
			f.handle(e)
		case <-ticker.C:
			f.display.Update(f.shown)
		case <-interrupted:
			interrupted = nil
			f.display.Line("stopping: the peers leave in good order; interrupt again to kill them")
			f.leave()
		case <-f.hold:
			f.begin()
		case <-f.grace:
			f.kill()
		case <-kill:
			kill = nil
			f.kill()
		}
	}
}

// start launches the first peer; the others follow when it can be joined. Peers
// that train alone need not wait for that.
func (f *flock) start() {
	f.launch(0, f.settings.Join)
	if f.settings.Strategy == settings.StrategyAlone {
		f.startOthers(nil)
	}
}

func (f *flock) startOthers(join []string) {
	f.joined = true
	for number := 1; number < len(f.peers); number++ {
		f.launch(number, join)
	}
}

func (f *flock) launch(number int, join []string) {
	if f.leaving {
		return
	}
	handle, err := f.launcher.launch(number, forMember(f.settings, number, len(f.peers), join), f.events)
	if err != nil {
		f.fail(number, err.Error(), cli.ExitFailed, false)
		f.leave()
		return
	}
	f.alive++
	f.peers[number].handle, f.peers[number].Phase = handle, watch.PhaseStarting
}

// beginIfReady lets the peers train if none is on its way, or if they do already.
func (f *flock) beginIfReady() {
	if f.leaving {
		return
	}
	onTheWay := func(p *localPeer) bool { return p.Phase < watch.PhaseReady }
	if f.begun || !slices.ContainsFunc(f.peers, onTheWay) {
		f.begin()
	}
}

// begin lets those peers train that are ready; the others need not wait then.
func (f *flock) begin() {
	f.begun, f.hold = true, nil
	for _, p := range f.peers {
		if p.Phase == watch.PhaseReady && p.handle != nil {
			p.handle.begin()
			p.Phase = watch.PhaseTraining
		}
	}
}

// leave asks all peers to leave, and starts no more.
func (f *flock) leave() {
	if f.leaving {
		return
	}
	f.leaving = true
	f.grace = time.After(max(f.settings.LeaveWithin, leaveBound))
	for _, p := range f.peers {
		if p.handle != nil {
			p.handle.leave()
		}
	}
}

func (f *flock) kill() {
	f.leaving = true
	for _, p := range f.peers {
		if p.handle != nil {
			p.handle.kill()
		}
	}
}

// handle takes in one event.
func (f *flock) handle(e event) {
	switch {
	case e.Report != nil:
		f.heard(e.Number, e.Report)
	case e.End != nil:
		f.ended(e.Number, e.End)
	default:
		f.display.Line(fmt.Sprintf("peer %d: %s", e.Number, e.Line))
	}
}

// heard takes in a peer's report.
func (f *flock) heard(number int, r *watch.Report) {
	p := f.peers[number]
	if r.Unsaved != "" && f.unsaved == nil {
		f.unsaved = cli.Coded(fmt.Errorf("peer %d: %s", number, r.Unsaved), cli.ExitFailed)
	}
	switch r.Kind {
	case watch.ReportStarted:
		p.ID, p.Phase = r.Peer, watch.PhaseJoining
		if r.Dashboard != "" {
			f.display.Line("dashboard at " + r.Dashboard)
		}
		if number == 0 && !f.joined {
			f.display.Line("another peer can come with " + r.Invitation())
			f.startOthers(append(r.Addresses, f.settings.Join...))
		}
	case watch.ReportNews:
		if !slices.Contains(f.news, r.Said) { // each peer has looked at the same data
			f.news = append(f.news, r.Said)
			f.display.Line(fmt.Sprintf("peer %d: %s", number, r.Said))
		}
	case watch.ReportReady:
		p.Phase = watch.PhaseReady
		if f.hold == nil && !f.begun {
			f.hold = time.After(holdBound)
		}
		f.beginIfReady()
	case watch.ReportProgress:
		if r.Status != nil {
			p.Status = *r.Status
		}
	case watch.ReportResult:
		p.share, p.Phase = r.Share, watch.PhaseDone
		if r.Share != nil { // it has served others since it told how it gets on
			p.Status.Exchanges, p.Status.Initiated = r.Share.Result.Exchanges, r.Share.Initiated
		}
	case watch.ReportFailed:
		switch {
		case !r.Interrupted:
			f.fail(number, r.Failure, r.Code, r.Echo)
		case f.leaving:
			p.Phase = watch.PhaseLeft
		default:
			p.Phase = watch.PhaseLost
		}
	}
}

// ended takes in the end of a peer. One that was killed is lost to the others,
// who go on; so is one that somebody else asked to leave.
func (f *flock) ended(number int, e *cli.End) {
	f.alive--
	p := f.peers[number]
	p.handle = nil
	switch {
	case p.Phase == watch.PhaseDone || p.Phase == watch.PhaseLeft || p.Phase == watch.PhaseFailed:
	case p.Phase == watch.PhaseLost || e.Killed:
		p.Phase = watch.PhaseLost
		if !f.leaving {
			f.display.Line(fmt.Sprintf("peer %d is lost; the others go on", number))
		}
	default:
		f.fail(number, fmt.Sprintf("ended without a result: %v", e.Err), cli.ExitFailed, false)
	}
	f.beginIfReady()
}

// fail notes a fault of a peer's own. Before the training, when the others wait
// for it, it ends the run; later the others go on. Echo tells
// that the fault is another peer's, which is let tell it.
func (f *flock) fail(number int, failure string, code int, echo bool) {
	p := f.peers[number]
	fault := cli.Coded(fmt.Errorf("peer %d: %s", number, failure), code)
	if f.fault == nil || f.echo && !echo {
		f.fault, f.echo = fault, echo
	}
	switch {
	case !f.begun && echo:
	case !f.begun:
		f.leave()
	default:
		f.display.Line(fault.Error() + "; the others go on")
	}
	p.Phase = watch.PhaseFailed
}

// verdict is the result of the run.
func (f *flock) verdict(ctx context.Context) (result.Result, error) {
	var (
		shares []result.Share
		gone   []watch.Status
		idle   []int
		lost   int
	)
	for number, p := range f.peers {
		if p.share != nil {
			shares = append(shares, *p.share)
			if p.share.Result.Steps == 0 {
				idle = append(idle, number)
			}
			continue
		}
		gone = append(gone, p.Status)
		if p.Phase == watch.PhaseLost {
			lost++
		}
	}
	if ctx.Err() != nil {
		if !f.begun {
			return result.Result{}, train.Interruption(f.settings, train.ErrNothingDone)
		}
		if f.unsaved != nil {
			return result.Result{}, train.Interruption(f.settings, &train.UnsavedError{Cause: f.unsaved})
		}
		return result.Result{}, train.Interruption(f.settings, cli.ErrInterrupted)
	}
	if len(shares) == 0 {
		if f.fault != nil {
			return result.Result{}, f.fault
		}
		return result.Result{}, errors.New("no peer has finished: all were killed")
	}
	total := combine(shares, gone, len(f.peers), lost)
	total.Idle, total.Name = idle, f.settings.PeerName()
	switch {
	case f.fault != nil:
		return total, f.fault
	case f.unsaved != nil:
		return total, f.unsaved
	}
	return total, total.Unmerged()
}
