package peer_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// loud is a membership that counts what is announced.
type loud struct {
	transport.Membership
	announced *atomic.Int64
}

func (l loud) Announce(r transport.Record) error {
	l.announced.Add(1)
	return l.Membership.Announce(r)
}

// Each announcement goes to all: the more members there are, the less often one tells
// its steps, and those of others are no reason to.
func TestAnnouncementsOfALargeFlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peers       int
		least, most float64 // announcements a second, of all members together
	}{{4, 8, 16 / 0.3}, {32 / sparing, 16, 16 / 0.3}} {
		synctest.Test(t, func(t *testing.T) {
			var announced atomic.Int64
			flock := peertest.Start(t, peertest.Config{Peers: c.peers, Params: newModel, Configure: func(i int, config *peer.Config) {
				shortRun(i, config)
				config.Training.Work = peer.Work{}
				config.Network.Membership = loud{config.Network.Membership, &announced}
			}})
			began := announced.Load()
			const lasts, pace = 10 * time.Second, 50 * time.Millisecond
			flock.TrainSteps(t.Context(), int(lasts/pace), atPace(pace, towards))
			each := float64(announced.Load()-began) / lasts.Seconds()
			t.Logf("%d peers announce %.1f times a second", c.peers, each)
			if each < c.least || each > 1.1*c.most {
				t.Errorf("%d peers announce %.1f times a second, want %.0f to %.0f", c.peers, each, c.least, c.most)
			}
		})
	}
}
