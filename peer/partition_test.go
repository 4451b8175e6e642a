package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// The show of a partition: twelve peers, with memberlist, of which two halves do not
// hear of each other for three minutes in the middle of training.
const (
	partitionPeers = 12
	partitionLasts = 3 * time.Minute
	beforeIt       = 40 * time.Second
	afterIt        = 2 * time.Minute
)

// partitionFlock has memberlist where it makes a difference: it costs time.
func partitionFlock(t *testing.T, swim bool) *peertest.Flock {
	return peertest.Start(t, peertest.Config{
		Peers: partitionPeers, Params: newLesson, Swim: swim, Link: memnet.Link{Delay: time.Millisecond},
		Configure: func(i int, c *peer.Config) {
			c.Training.Exchange.Pace.Every = 1
			c.Training.Work = peer.Work{StepsPerPeer: uint64((beforeIt + partitionLasts + afterIt) / lessonPace)}
			c.Training.Schedule = optim.Schedule{Rate: 0.2}
			c.Training.Optimizer = &optim.SGD{}
		},
	})
}

const lessonPace = time.Second

// teach trains a flock until its run is over, while disturb does what it wants.
func teach(t *testing.T, flock *peertest.Flock, disturb func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		disturb()
	}()
	half := func(i int) int { return i / (partitionPeers / 2) }
	flock.Train(t.Context(), lesson(partitionPeers, lessonPace, half))
	<-done
}

// mends waits in virtual time until a condition holds, and returns how long it took.
func mends(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			t.Errorf("%s: not within %s", what, limit)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s: after %s", what, time.Since(began))
}

// spread is the mean consensus distance over a while.
func spread(flock *peertest.Flock, over time.Duration) (mean float64) {
	const looks = 20
	for range looks {
		mean += flock.Spread() / looks
		time.Sleep(over / looks)
	}
	return mean
}

// TestAPartitionOfMinutesHeals: both halves go on training, meet again within 30 s of
// its end, are as near to each other as before within 60 s, and arrive where a flock
// does that was never parted.
func TestAPartitionOfMinutesHeals(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("takes minutes under the race detector, which the other flocks serve as well")
	}
	var whole, parted float64
	synctest.Test(t, func(t *testing.T) {
		flock := partitionFlock(t, false)
		teach(t, flock, func() {})
		whole = accuracies(flock.Models())
	})
	synctest.Test(t, func(t *testing.T) {
		flock := partitionFlock(t, true)
		teach(t, flock, func() { part(t, flock) })
		parted = accuracies(flock.Models())
	})
	t.Logf("accuracy %.2f %% with a partition, %.2f %% without", parted, whole)
	if whole < 80 || parted < whole-0.5 {
		t.Errorf("accuracy %.2f %% with a partition, %.2f %% without", parted, whole)
	}
}

func part(t *testing.T, flock *peertest.Flock) {
	ids := flock.IDs()
	time.Sleep(beforeIt)
	usual := spread(flock, 10*time.Second)
	flock.Network.Partition(ids[:partitionPeers/2], ids[partitionPeers/2:])
	time.Sleep(partitionLasts - time.Minute)
	between := make([]stats.Peer, partitionPeers)
	for i, p := range flock.Peers {
		if between[i] = p.Stats(); between[i].Members != partitionPeers/2 {
			t.Errorf("peer %d sees %d members in a partition", i, between[i].Members)
		}
	}
	time.Sleep(time.Minute)
	for i, p := range flock.Peers {
		s := p.Stats()
		steps, exchanges := s.Steps-between[i].Steps, s.Exchanges.Completed()-between[i].Exchanges.Completed()
		if steps < 55 || exchanges < 10 {
			t.Errorf("peer %d took %d steps and had %d exchanges in a minute of the partition", i, steps, exchanges)
		}
	}
	apart := spread(flock, time.Second)
	t.Logf("consensus distance %.4f before, %.4f at the end of the partition", usual, apart)
	if apart < 2*usual {
		t.Errorf("the halves hardly drifted apart: the test tests nothing")
	}
	flock.Network.HealAll()
	healed := time.Now()
	mends(t, "everybody sees everybody", 30*time.Second, func() bool {
		for _, p := range flock.Peers {
			if p.Stats().Members != partitionPeers {
				return false
			}
		}
		return true
	})
	mends(t, "the consensus distance is back to normal", time.Minute-time.Since(healed), func() bool { return spread(flock, time.Second) < 1.2*usual })
}

// TestACutLinkCostsOneDeadline: one link of a flock is cut. Whoever is in an exchange
// over it, or begins one, loses no more than 3 s with it at a time, and the others have
// no failures.
func TestACutLinkCostsOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{
			Peers: 8, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Swim: true,
			Configure: func(i int, c *peer.Config) {
				shortRun(i, c)
				c.Training.Work = peer.Work{}
				c.Training.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
					c.MaxInbound = 3
					return averaging.NewADPSGD(c)
				}
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		go func() {
			time.Sleep(5 * time.Second)
			frozen := flock.Peers[7].Self()
			for _, p := range flock.Peers[:7] { // as a frozen process: known to gossip a while longer
				flock.Network.StallAfter(frozen, p.Self(), 0)
			}
			before := make([]stats.Peer, 7)
			for i, p := range flock.Peers[:7] {
				before[i] = p.Stats()
			}
			for range 4 { // one deadline at a time, gossip knows of nothing yet
				time.Sleep(3 * time.Second)
				for i, p := range flock.Peers[:7] {
					s := p.Stats()
					if s.Exchanges.Completed() <= before[i].Exchanges.Completed() {
						t.Errorf("peer %d (%s) completed no exchange in 3 s", i, s.Role)
					}
					before[i] = s
				}
			}
			time.Sleep(20 * time.Second)
			if members := flock.Peers[0].Stats().Members; members != 7 {
				t.Errorf("%d members 32 s after one has frozen, want 7", members)
			}
			for _, p := range flock.Peers[:7] {
				flock.Network.Release(frozen, p.Self())
			}
			completed := flock.Peers[7].Stats().Exchanges.Completed()
			mends(t, "the frozen one is back", 30*time.Second, func() bool {
				return flock.Peers[0].Stats().Members == 8 && flock.Peers[7].Stats().Exchanges.Completed() > completed
			})
			cancel()
		}()
		flock.Train(ctx, atPace(200*time.Millisecond, towards))
		for i, p := range flock.Peers {
			if s := p.Stats(); s.Exchanges.Lost > 0 || s.Quarantined > 0 || s.Exchanges.Failed > 12 {
				t.Errorf("peer %d: %d slices lost, %d in quarantine, %d exchanges failed", i, s.Exchanges.Lost, s.Quarantined, s.Exchanges.Failed)
			}
		}
	})
}
