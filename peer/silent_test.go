package peer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/topology"
)

// telling is a machine that tells of the exchanges of its own that failed.
type telling struct {
	averaging.Machine
	failed *atomic.Pointer[averaging.Event] // the last
}

func (m telling) Handle(now time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	if e.Kind == averaging.Failed && !e.Inbound {
		m.failed.Store(&e)
	}
	return m.Machine.Handle(now, e, actions)
}

// TestTheMachineKnowsWhoIsSilent: of what failed it is told whether the partner had shown
// anything.
func TestTheMachineKnowsWhoIsSilent(t *testing.T) {
	t.Parallel()
	link := memnet.Link{Delay: time.Millisecond, Bandwidth: 1 << 20}
	for name, c := range map[string]struct {
		fault  func(*memnet.Network, topology.PeerID, topology.PeerID)
		silent bool
	}{
		"nothing comes":      {func(n *memnet.Network, a, b topology.PeerID) { n.StallAfter(a, b, 0); n.StallAfter(b, a, 0) }, true},
		"none can be opened": {func(n *memnet.Network, a, b topology.PeerID) { n.Cut(a, b) }, true},
		"slices come, too late": {func(n *memnet.Network, a, b topology.PeerID) {
			n.SetLink(a, b, memnet.Link{Delay: time.Millisecond, Bandwidth: 2000})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed atomic.Pointer[averaging.Event]
				flock := peertest.Start(t, peertest.Config{
					Peers: 2, Params: newModel, Link: link,
					Configure: func(i int, c *peer.Config) {
						shortRun(i, c)
						c.Network.SetStall(time.Second) // before others say that who is cut off has gone
						c.Training.Work, c.Training.Exchange.SliceLen = peer.Work{}, cutSliceLen
						c.Training.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
							m, err := averaging.NewADPSGD(c)
							return telling{m, &failed}, err
						}
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				trained := make(chan struct{})
				go func() {
					defer close(trained)
					flock.Train(ctx, atPace(50*time.Millisecond, towards))
				}()
				time.Sleep(10 * time.Second)
				c.fault(flock.Network, flock.Peers[0].Self(), flock.Peers[1].Self())
				time.Sleep(200 * time.Millisecond) // for what is under way
				failed.Store(nil)
				mends(t, "an exchange fails", 20*time.Second, func() bool { return failed.Load() != nil })
				if e := failed.Load(); e.After > 0 != c.silent {
					t.Errorf("it was waited for in vain for %s, want that to be %v", e.After, c.silent)
				}
				cancel()
				<-trained
			})
		})
	}
}
