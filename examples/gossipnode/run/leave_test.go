package run

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestLeaveInTime shows that a peer which does not get away in time is ended, and that
// one which does is not.
func TestLeaveInTime(t *testing.T) {
	for name, c := range map[string]struct {
		leaves time.Duration
		ended  bool
	}{"in time": {9 * time.Second, false}, "too late": {11 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := settings.Settings{}
				s.LeaveWithin = 10 * time.Second
				ctx, cancel := context.WithCancel(t.Context())
				var said bytes.Buffer
				ended := false
				done := leaveInTime(s, ctx, &said, func() { ended = true })
				time.Sleep(time.Hour) // nobody has asked it to leave
				cancel()
				time.Sleep(c.leaves)
				done()
				synctest.Wait()
				if ended != c.ended || ended != strings.Contains(said.String(), "--leave-within 10s") {
					t.Errorf("ended %v, said %q", ended, said.String())
				}
			})
		})
	}
}
