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

// Event is an event of one peer: exactly one of the other fields is set.
type Event struct {
	Number int
	Report *watch.Report
	Line   string // a line of its log
	End    *End
}

// End describes how a peer ended. A peer that ended regularly has reported its result before.
type End struct {
	// Killed: the system or a user ended it, and it made no error. On systems without signals a killed child cannot
	// be told from a failed one.
	Killed bool
	Err    error
}

// Member is a peer that has been started: another process, or goroutines of this one. Its functions return at once.
type Member struct {
	Begin func()              // allows its first step; may be called again
	Show  func(result.Result) // makes its dashboard show the result of all peers, once
	Leave func()              // asks it to end regularly
	Kill  func()              // ends it at once, even after Leave; nil if that is not possible
}

// Process starts a peer as another process of this program, one of sharing processes that share the cores. It begins
// to train at the first empty line of its standard input, and shows a result that a later line has.
func Process(number, sharing int, args []string, events chan<- Event) (*Member, error) {
	child, err := cli.StartChild(sharing, args,
		func(line string) { events <- eventOf(number, line) },
		func(line string) { events <- Event{Number: number, Line: line} },
		func(err error) { events <- Event{Number: number, End: endOf(err)} })
	if err != nil {
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	return &Member{
		// It cannot block, since a pipe has room for one byte. If the child has ended, its end event says so.
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

// eventOf reads a line of a child's standard output. A report is JSON with a "kind"; any other line is shown as it
// is.
func eventOf(number int, line string) Event {
	var r watch.Report
	if json.Unmarshal([]byte(line), &r) != nil || r.Kind == "" {
		return Event{Number: number, Line: line}
	}
	return Event{Number: number, Report: &r}
}

// Here is a peer in this process, as its own goroutines see it.
type Here struct {
	Context context.Context      // ends when the peer is to leave
	Begin   <-chan struct{}      // closed when the peer may take its first step
	All     <-chan result.Result // gets the result of all peers
	number  int
	events  chan<- Event
}

// InProcess makes a peer of this process and its handle. The caller that runs it must call End.
func InProcess(number int, events chan<- Event) (*Here, *Member) {
	ctx, cancel := context.WithCancelCause(context.Background())
	begin, all := make(chan struct{}), make(chan result.Result, 1)
	return &Here{Context: ctx, Begin: begin, All: all, number: number, events: events}, &Member{
		Begin: sync.OnceFunc(func() { close(begin) }),
		Show:  func(r result.Result) { all <- r },
		Leave: func() { cancel(cli.ErrInterrupted) },
	}
}

// Tell sends a report.
func (h *Here) Tell(r watch.Report) { h.events <- Event{Number: h.number, Report: &r} }

// Log is the writer for the peer's log.
func (h *Here) Log() io.Writer {
	return &cli.LineWriter{Take: func(line string) { h.events <- Event{Number: h.number, Line: line} }}
}

// End reports that the peer has ended, and its error.
func (h *Here) End(err error) { h.events <- Event{Number: h.number, End: &End{Err: err}} }
