package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// Event is something that happened to one peer: one of the other fields is set.
type Event struct {
	Number int
	Report *watch.Report
	Line   string // what it logged
	End    *End
}

// End is how a peer ended. What one that ended in good order has to say, it has reported before.
type End struct {
	// Killed: the system or somebody ended it, without any fault of its own. Where there are no
	// signals a killed child cannot be told from one that failed.
	Killed bool
	Err    error
}

// Member is a peer that was started: another process, or goroutines of this one. Its functions
// return at once.
type Member struct {
	Begin func()              // lets it take its first step; it may be called again
	Show  func(result.Result) // has its dashboard show the result of all, once
	Leave func()              // asks it to end in good order
	Kill  func()              // ends it at once, also after Leave; nil if that is not possible
}

// Process starts a peer as another process of this program, with these arguments, one of a number
// that share the cores. It begins to train at the first empty line of its standard input, and shows
// the result that another line is.
func Process(number, sharing int, args []string, events chan<- Event) (*Member, error) {
	child, err := cli.StartChild(sharing, args,
		func(line string) { events <- eventOf(number, line) },
		func(line string) { events <- Event{Number: number, Line: line} },
		func(err error) { events <- Event{Number: number, End: endOf(err)} })
	if err != nil {
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	return &Member{
		// It cannot block: a pipe takes more than the one byte. A child that has gone will say so
		// by its end.
		Begin: func() { _, _ = io.WriteString(child.Life, "\n") },
		Show:  func(r result.Result) { _ = json.NewEncoder(child.Life).Encode(r) },
		Leave: func() { _ = child.Life.Close() },
		Kill:  func() { _ = child.Kill() },
	}, nil
}

func endOf(err error) *End {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return &End{Killed: ok && !exit.Exited(), Err: err}
}

// eventOf reads a line of a child's standard output: a report is JSON with a "kind". What is none
// is shown as what it is.
func eventOf(number int, line string) Event {
	var r watch.Report
	if json.Unmarshal([]byte(line), &r) != nil || r.Kind == "" {
		return Event{Number: number, Line: line}
	}
	return Event{Number: number, Report: &r}
}

// Here is a peer whose goroutines are of this process, as these see it.
type Here struct {
	Context context.Context      // ends when it is to leave
	Begin   <-chan struct{}      // closed when it may take its first step
	All     <-chan result.Result // has the result of all, once there is one
	number  int
	events  chan<- Event
}

// InProcess is a peer of this process and its handle. Who runs it calls End.
func InProcess(number int, events chan<- Event) (*Here, *Member) {
	ctx, cancel := context.WithCancelCause(context.Background())
	begin, all := make(chan struct{}), make(chan result.Result, 1)
	return &Here{Context: ctx, Begin: begin, All: all, number: number, events: events}, &Member{
		Begin: sync.OnceFunc(func() { close(begin) }),
		Show:  func(r result.Result) { all <- r },
		Leave: func() { cancel(cli.ErrInterrupted) },
	}
}

// Tell reports.
func (h *Here) Tell(r watch.Report) { h.events <- Event{Number: h.number, Report: &r} }

// Log is where the peer logs to.
func (h *Here) Log() io.Writer {
	return &cli.LineWriter{Take: func(line string) { h.events <- Event{Number: h.number, Line: line} }}
}

// End tells that the peer has ended, and with what.
func (h *Here) End(err error) { h.events <- Event{Number: h.number, End: &End{Err: err}} }
