package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestHangup: the end of a terminal ends a command in good order, as SIGTERM does, but not one
// that nohup was to keep from it.
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("these tests were themselves started by nohup, or by one that ignores SIGHUP as it does")
	}
	ctx, release := UntilSignal(t.Context(), func() {})
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	release()
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, release = UntilSignal(t.Context(), func() {})
	defer release()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} { // in this order
		if ctx.Err() != nil || !signal.Ignored(syscall.SIGHUP) {
			t.Errorf("before %v: %v", s, ctx.Err())
		}
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	<-ctx.Done()
}

// TestFaultsOfConfiguration have an exit code that a panic has not; what may pass has none.
func TestFaultsOfConfiguration(t *testing.T) {
	for err, want := range map[error]int{
		errors.New("no such key"): ExitConfig, Usagef("wrong"): ExitUsage, fmt.Errorf("listening: %w", syscall.EADDRINUSE): ExitFailed,
		fmt.Errorf("listening: %w", syscall.EADDRNOTAVAIL): ExitConfig, fmt.Errorf("writing: %w", syscall.ENOSPC): ExitFailed, context.Canceled: ExitFailed,
	} {
		if code := ExitCode(Config(err)); code != want {
			t.Errorf("%v: exit code %d, want %d", err, code, want)
		}
	}
	if err := ConfigOf(errors.New("else"), syscall.EACCES); ExitCode(err) != ExitFailed {
		t.Errorf("what is not named has exit code %d", ExitCode(err))
	}
	if Config(nil) != nil {
		t.Error("nothing is a fault")
	}
}
