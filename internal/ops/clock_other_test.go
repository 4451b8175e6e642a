//go:build !linux

package ops_test

import "time"

var start = time.Now()

// busy stands in for processor time, which is not to be had alike everywhere.
func busy() time.Duration { return time.Since(start) }
