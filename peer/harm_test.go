package peer_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAPartnerThatDoesHarmIsTold: one of eight climbs where the others descend. Stats has it
// first, and the digest names it; no other is kept away.
func TestAPartnerThatDoesHarmIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const peers, steps, pace, liar = 8, 300, 50 * time.Millisecond, 0
		core, logged := observer.New(zapcore.WarnLevel)
		flock := peertest.Start(t, peertest.Config{
			Peers: peers, Params: newLesson, Link: memnet.Link{Delay: time.Millisecond},
			Configure: func(_ int, c *peer.Config) {
				c.Training.Exchange.Pace.Every = 1
				c.Training.Schedule = optim.Schedule{Rate: 0.2}
				c.Training.Optimizer = &optim.SGD{}
				c.Network.Log = zap.New(core)
			},
		})
		var shown, said atomic.Int64 // how often Stats had the liar first, and the peer's digest named it too
		honest := lesson(peers, pace, func(int) int { return 0 })
		flock.TrainSteps(t.Context(), steps, func(i int, x, grad tensor.Vector) (peer.Result, error) {
			done, err := honest(i, x, grad)
			if i == liar {
				tensor.Scale(grad, -1)
				return done, err
			}
			harms := flock.Peers[i].Stats().Exchanges.Harms
			if len(harms) > stats.MaxHarms {
				t.Errorf("peer %d tells of %d partners", i, len(harms))
			}
			if len(harms) > 0 && harms[0].Partner == flock.IDs()[liar] && harms[0].Trust < 0.5 && harms[0].Harm > 0 && harms[0].Exchanges > 0 {
				shown.Add(1)
				if slices.ContainsFunc(flock.Peers[i].Members(), func(m control.Member) bool {
					return m.ID == flock.IDs()[i] && m.Harm.Partner == flock.IDs()[liar] && m.Harm.Trust < 0.5
				}) {
					said.Add(1)
				}
			}
			return done, err
		})
		ids := flock.IDs()
		for _, line := range logged.FilterMessageSnippet("it is kept away").All() {
			fields := line.ContextMap()
			if fields["self"] != ids[liar].Short() && fields["peer"] != string(ids[liar]) {
				t.Errorf("an honest partner is kept away: %v", fields)
			}
		}
		if shown.Load() == 0 || said.Load() == 0 {
			t.Errorf("Stats had the liar first %d times, the peer's digest %d times", shown.Load(), said.Load())
		}
	})
}
