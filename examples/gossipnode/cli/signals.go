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

// ErrInterrupted: somebody asked for an end before the work was done.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM, or SIGHUP unless
// that was ignored before, as by nohup, or with parent. A second signal calls again, which should
// end things at once, if it comes a second after the first at least: some senders, as GNU timeout,
// signal a process and its group. Release gives the signals back.
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
		heed(signals, released, func() { cancel(ErrInterrupted) }, second)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		<-gone
		cancel(nil)
	}
}

// meantAgain is the least time after a first signal in which somebody has seen what it did, and
// asks for more.
const meantAgain = time.Second

// heed calls first at the first signal and again, once, at one that comes meantAgain later.
func heed(signals <-chan os.Signal, released <-chan struct{}, first, second func()) {
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
		case time.Since(came) >= meantAgain:
			second()
			return
		}
	}
}

// UntilParentGone returns a context that also ends when in does: a parent holds
// the other end of it as long as it wants the peer to go on, and no system lets
// go of it later than the parent dies. Begin is closed at the first empty line, with
// which the parent lets the peer train; said has the first that is not. The interrupt of
// a terminal, and its end, reach parent and child; only the parent heeds them. The
// goroutine that reads lasts as long as the process.
func UntilParentGone(parent context.Context, in io.Reader) (ctx context.Context, begin <-chan struct{}, said <-chan string) {
	ctx, cancel := context.WithCancelCause(parent)
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	// Heeded, so that a report to a parent that has gone fails instead of killing
	// the process before it has left the run.
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
