package bridge

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestErrorsThatPass end no listener: it accepts again, after a second at most. Others are errors at once, and so is the end meanwhile.
func TestErrorsThatPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		fails := func(n int, with error) func() (int, error) {
			tries = 0
			return func() (int, error) {
				if tries++; tries <= n {
					return 0, os.NewSyscallError("accept4", with)
				}
				return 7, nil
			}
		}
		for _, passes := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED} {
			if conn, err := accepted(t.Context(), fails(20, passes)); conn != 7 || err != nil {
				t.Errorf("after twenty times %v: %d, %v", passes, conn, err)
			}
		}
		if took := time.Since(began); took < 30*time.Second || took > 60*time.Second {
			t.Errorf("it is tried again every %s", took/60)
		}
		if _, err := accepted(t.Context(), fails(1, syscall.EINVAL)); !errors.Is(err, syscall.EINVAL) || tries != 1 {
			t.Errorf("after %d tries: %v", tries, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := accepted(ctx, fails(1000, syscall.EMFILE)); err == nil {
			t.Error("it goes on after the end")
		}
	})
}
