package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestALinkThatSlowsDown: frames keep coming, each in time, but an exchange takes a
// hundred times longer than before. It is given up long before the deadline of all, and
// given more time when it is tried again, until it completes.
func TestALinkThatSlowsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fast := memnet.Link{Delay: time.Millisecond, Bandwidth: 1 << 20}
		flock := peertest.Start(t, peertest.Config{
			Peers: 2, Params: newModel, Link: fast,
			Configure: func(i int, c *peer.Config) {
				shortRun(i, c)
				c.Training.Work, c.Training.Exchange.SliceLen = peer.Work{}, cutSliceLen
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		train := make(chan struct{})
		go func() {
			defer close(train)
			flock.Train(ctx, atPace(50*time.Millisecond, towards))
		}()
		time.Sleep(10 * time.Second)
		slow := fast
		slow.Bandwidth = 2000 // 256 bytes of a slice in a fraction of a second
		flock.Network.SetLink(flock.Peers[0].Self(), flock.Peers[1].Self(), slow)
		time.Sleep(200 * time.Millisecond) // for what is under way
		before := flock.Peers[0].Stats().Exchanges
		mends(t, "the first exchange is given up", 4*time.Second, func() bool { return flock.Peers[0].Stats().Exchanges.Failed > before.Failed })
		completed := flock.Peers[0].Stats().Exchanges.Completed()
		mends(t, "one is completed", time.Minute, func() bool { return flock.Peers[0].Stats().Exchanges.Completed() > completed+1 })
		if s := flock.Peers[0].Stats().Exchanges; s.Lost > 0 {
			t.Errorf("%d slices lost", s.Lost)
		}
		cancel()
		<-train
	})
}
