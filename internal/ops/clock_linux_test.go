package ops_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// busy is the processor time of the calling thread, which other work on the machine
// does not add to.
func busy() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
