package fit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// local is the peers of a fit as the command sees them. One goroutine, that of run, owns it.
type local struct {
	peers  []*row
	board  *board
	events chan event
	// start begins a peer. Its events, the last of which is its end, go to events; stop asks
	// it to end.
	start func(number int, join []string) (stop func(), err error)
	// together: all begin at once; else the others follow when the first can be joined.
	together bool
	// out is the file that the first peer writes its model to, if any.
	out   string
	fault error
	echo  bool // the fault is told by another, which is yet to be heard
}

// row is what is known of one peer.
type row struct {
	stop   func()
	last   report
	result *Result
	lost   bool
	begun  bool
}

type event = cli.Event[report]

// maxEvents is how many may wait.
const maxEvents = 64

// displayEvery is the time between two looks at the peers.
const displayEvery = 200 * time.Millisecond

// run watches the peers until the last has ended.
func (l *local) run(ctx context.Context) (Result, error) {
	l.begin(0, nil)
	if l.together {
		l.others(nil)
	}
	ticker := time.NewTicker(displayEvery)
	defer ticker.Stop()
	interrupted := ctx.Done()
	for l.alive() > 0 {
		select {
		case e := <-l.events:
			l.handle(e)
		case <-ticker.C:
			l.board.draw(l.peers)
		case <-interrupted:
			interrupted = nil
			l.fail(cli.ErrInterrupted, false)
		}
	}
	l.board.end(l.peers)
	return l.combine()
}

func (l *local) alive() (n int) {
	for _, p := range l.peers {
		if p.stop != nil {
			n++
		}
	}
	return n
}

func (l *local) begin(number int, join []string) {
	p := l.peers[number]
	if p.begun || l.fault != nil {
		return
	}
	p.begun = true
	stop, err := l.start(number, join)
	if err != nil {
		l.fail(fmt.Errorf("starting peer %d: %w", number, err), false)
		return
	}
	p.stop = stop
}

func (l *local) others(join []string) {
	for number := 1; number < len(l.peers); number++ {
		l.begin(number, join)
	}
}

// fail ends all peers. The fault of the peer that is at fault counts, not an echo of it.
func (l *local) fail(err error, echo bool) {
	if l.fault == nil || l.echo && !echo {
		l.fault, l.echo = err, echo
	}
	for _, p := range l.peers {
		if p.stop != nil && !echo {
			p.stop()
		}
	}
}

func (l *local) handle(e event) {
	p := l.peers[e.Number]
	switch {
	case e.End != nil:
		p.stop = nil
		if p.result == nil && p.last.Kind != reportFailed {
			l.gone(e)
		}
	case e.Report == nil:
		l.board.line(fmt.Sprintf("peer %d: %s", e.Number, e.Line))
	case e.Report.Kind == reportNews:
		if e.Number == 0 { // the others have the same columns
			l.board.line(e.Report.Said)
		}
	default:
		p.last = *e.Report
		switch e.Report.Kind {
		case reportStarted:
			if len(l.peers) == 1 { // nobody else is to come to a local fit
				l.board.line(e.Report.Said)
			}
			l.others(e.Report.Addresses)
		case reportResult:
			p.result = e.Report.Result
		case reportFailed:
			failure := e.Report.Failure
			if len(l.peers) > 1 {
				failure = fmt.Sprintf("peer %d: %s", e.Number, failure)
			}
			l.fail(cli.Coded(errors.New(failure), e.Report.Code), e.Report.Echo)
		}
	}
}

// gone takes in a peer that ended without a word: one that was killed is lost, and the others
// go on without its rows.
func (l *local) gone(e event) {
	if e.End.Killed && l.fault == nil {
		l.peers[e.Number].lost = true
		l.board.line(fmt.Sprintf("peer %d is lost; the others go on without its rows", e.Number))
		return
	}
	l.fail(fmt.Errorf("peer %d ended without a result: %w", e.Number, e.End.Err), false)
}

// combine is the result that all peers have; bytes are those of all.
func (l *local) combine() (Result, error) {
	if l.fault != nil {
		return Result{}, l.fault
	}
	var total *Result
	lost := 0
	for number, p := range l.peers {
		switch {
		case p.result == nil:
			lost++
			continue
		case total == nil:
			first := *p.result
			total = &first
			continue
		case p.result.Hash != total.Hash:
			return Result{}, fmt.Errorf("peer %d has another model than the others: %s, not %s", number, p.result.Hash, total.Hash)
		}
		total.BytesSent += p.result.BytesSent
		total.Seconds = max(total.Seconds, p.result.Seconds)
		total.Damaged = max(total.Damaged, p.result.Damaged) // each has looked at the same file
	}
	if total == nil {
		return Result{}, errors.New("no peer has finished: all were killed")
	}
	total.PeersLost = lost
	if total.Out != l.out {
		return *total, fmt.Errorf("the model is not in %s: the peer that was to write it is lost", l.out)
	}
	return *total, nil
}
