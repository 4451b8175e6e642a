package meetings_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/meetings"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestNewcomers take part soon, be it after a few meetings, as a mark is set, or when the first ones are forgotten.
func TestNewcomers(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "x", Shape: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	for i, after := range []int64{3, 1023, 1024, 4500, 9300, 3} {
		synctest.Test(t, func(t *testing.T) {
			flock := peertest.Start(t, peertest.Config{Peers: 2, Params: func() *tensor.Params { return tensor.NewParams(layout) },
				Configure: func(_ int, c *peer.Config) {
					if c.Network.Sums.AtLeast = 2; i == 5 {
						c.Network.Sums.Timeout = 100 * time.Millisecond // an attempt at a mark ends by itself
					}
				}})
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var held, came atomic.Int64
			begun := make(chan struct{})
			join := func(p meetings.Flock, first, newcomer bool) {
				all.Go(func() {
					for m := (meetings.Meetings{}); ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
						blocks, err := m.Gather(ctx, p, "a test", []byte{1})
						if err != nil {
							if ctx.Err() == nil {
								t.Errorf("after %d meetings: %v", after, err)
							}
							return
						}
						if newcomer && len(blocks) == 3 {
							came.Add(1)
						}
						if first && held.Add(1) == after {
							close(begun)
						}
					}
				})
			}
			join(flock.Peers[0], true, false)
			join(flock.Peers[1], false, false)
			<-begun
			join(flock.Add(), false, true)
			time.Sleep(30 * time.Second)
			if before := held.Load(); came.Load() < 10 {
				t.Errorf("after %d meetings: a newcomer was at %d of those up to %d", after, came.Load(), before)
			}
			cancel()
			all.Wait()
		})
	}
}
