package local

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// member is a peer that local has started: another process, or goroutines of
// this one.
type member interface {
	// begin lets the peer take its first step. It returns at once, and may be
	// called again.
	begin()
	// leave asks the peer to end in good order. It returns at once.
	leave()
	// kill ends the peer at once, if that is possible. It may follow leave.
	kill()
}

// launcher starts peers. The events of a peer, the last of which is its end, are
// sent to events; whoever launches must receive them until then.
type launcher interface {
	launch(number int, s settings.Settings, events chan<- event) (member, error)
}

// event is something that happened to one peer: one of the fields is set.
type event struct {
	number int
	report *watch.Report
	line   string // what it logged
	end    *end
}

// end is how a peer ended. What a peer that ended in good order has to say, it
// has reported before.
type end struct {
	// killed: the system or somebody ended it, without any fault of its own.
	killed bool
	err    error
}

// memberError is the fault of one peer of a local run.
type memberError struct {
	number  int
	failure string
	code    int
}

// ExitWith is the peer's own exit code.
func (e *memberError) ExitWith() int { return e.code }

func (e *memberError) Error() string { return fmt.Sprintf("peer %d: %s", e.number, e.failure) }

// inProcess starts peers as goroutines of this process.
type inProcess struct{}

// goroutine is a peer that inProcess started. It cannot be killed.
type goroutine struct {
	start  func()
	cancel context.CancelCauseFunc
}

func (g goroutine) begin() { g.start() }
func (g goroutine) leave() { g.cancel(cli.ErrInterrupted) }
func (g goroutine) kill()  {}

func (inProcess) launch(number int, s settings.Settings, events chan<- event) (member, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	begin := make(chan struct{})
	go func() {
		defer cancel(nil)
		tell := func(r watch.Report) { events <- event{number: number, report: &r} }
		log := s.NewLog(&cli.LineWriter{Take: func(line string) { events <- event{number: number, line: line} }})
		done, err := train.Run(ctx, s, train.Observer{Log: log.With(zap.Int("peer", number)), Tell: tell, Begin: begin})
		tell(train.Outcome(done, err))
		events <- event{number: number, end: &end{err: err}}
	}()
	return goroutine{start: sync.OnceFunc(func() { close(begin) }), cancel: cancel}, nil
}
