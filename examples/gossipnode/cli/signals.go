package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// ErrInterrupted: a signal or a parent has ended the work before it was done.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal returns a context that ends with parent or at the first SIGINT, SIGTERM or SIGHUP (unless SIGHUP was
// ignored before, as by nohup). A second signal calls second, which should end things at once, if it comes at least a
// second later: some senders, such as GNU timeout, signal both a process and its group. release stops catching
// signals.
func UntilSignal(parent context.Context, second func()) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	released, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		watchSignals(signals, released, func() { cancel(ErrInterrupted) }, second)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		<-gone
		cancel(nil)
	}
}

// repeatAfter is the time after a first signal before which a second one is ignored: nobody can have seen the effect
// of the first.
const repeatAfter = time.Second

// watchSignals calls first at the first signal, and second once, at the first one that comes repeatAfter later.
func watchSignals(signals <-chan os.Signal, released <-chan struct{}, first, second func()) {
	var came time.Time
	for {
		select {
		case <-signals:
		case <-released:
			return
		}
		switch {
		case came.IsZero():
			came = time.Now()
			first()
		case time.Since(came) >= repeatAfter:
			second()
			return
		}
	}
}

// UntilParentGone returns a context that also ends when in ends: a parent holds the other end of in as long as the
// peer is to run, and every system closes it when the parent dies. begin is closed at the first empty line, by which
// the parent lets the peer train; said receives the first other line. An interrupt by a terminal, or its end, reaches
// parent and child; the child ignores it. The goroutine that reads lives as long as the process.
func UntilParentGone(parent context.Context, in io.Reader) (ctx context.Context, begin <-chan struct{}, said <-chan string) {
	ctx, cancel := context.WithCancelCause(parent)
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	// With SIGPIPE caught, a report to a parent that has ended fails; the signal would kill the process before it has
	// left the run.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	first, input := make(chan struct{}), make(chan string, 1)
	let := sync.OnceFunc(func() { close(first) })
	go func() {
		lines := bufio.NewReader(in)
		for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
			if line == "\n" {
				let()
			} else if len(input) == 0 {
				input <- line
			}
		}
		cancel(ErrInterrupted)
	}()
	return ctx, first, input
}
