package peer_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestANumberInAWelcomeEndsNobodysPart: what a member says of a joiner's lives, in which
// nothing is signed by the joiner, moves nothing.
func TestANumberInAWelcomeEndsNobodysPart(t *testing.T) {
	t.Parallel()
	for _, number := range []uint64{math.MaxUint64, math.MaxUint64 - 1} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{})
				liar := inMemory(t, network, "liar", "digits")
				if err := liar.Membership.Announce(transport.Record{Peer: liar.Transport.Self(), Run: "digits", Incarnation: 1}); err != nil {
					t.Fatal(err)
				}
				stop, err := liar.Transport.Handle(transport.ProtocolHello, "digits", func(stream transport.Stream) {
					defer stream.Close()
					wire.NewReader(stream, 0).Next()
					frame, err := wire.Pack(nil, 0, wire.Welcome{Incarnation: 1, KnownIncarnation: number})
					if err != nil {
						t.Error(err)
					}
					stream.Write(frame)
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(stop)
				guest := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:liar"}, Network: inMemory(t, network, "guest", "digits")})
				waitMembers(t, guest, 2)
				for range 10 {
					if err := step(t, guest, idle); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				var saved peer.Saved
				if err := guest.SaveAll(&saved); err != nil {
					t.Error(err)
				}
				if s := guest.Stats(); s.Incarnation != 1 || saved.Checkpoint.Said().Incarnation != 1 {
					t.Errorf("incarnation %d, in its checkpoint %d; want 1 in both", s.Incarnation, saved.Checkpoint.Said().Incarnation)
				}
				for _, r := range liar.Membership.Members() {
					if r.Peer == guest.Self() && r.Steps < 8 {
						t.Errorf("the others have heard of %d of its 10 steps", r.Steps)
					}
				}
			})
		})
	}
}

// TestANewLifeExceedsItsRecords: a peer that comes back under its identity is told of its
// earlier lives by the records that it has signed, with memberlist too.
func TestANewLifeExceedsItsRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond}})
		for life := uint64(2); life <= 4; life++ {
			f.TrainSteps(t.Context(), 20, atPace(20*time.Millisecond, towards))
			f.Crash(3)
			back := f.Return(3)
			f.WaitJoined(4)
			firstSnapshot(t, back)
			time.Sleep(5 * time.Second)
			if got := back.Stats().Incarnation; got != life {
				t.Fatalf("incarnation %d, want %d", got, life)
			}
		}
	})
}

// TestACheckpointWithAnAbsurdNumberIsRefused: it would wrap, or use the identity up.
func TestACheckpointWithAnAbsurdNumberIsRefused(t *testing.T) {
	for _, number := range []uint64{math.MaxUint64, transport.MaxIncarnation} {
		config := peer.Config{Run: "digits", Params: newModel()}
		config.Training.Checkpoint = peer.CheckpointOf(stats.Peer{Steps: 5, Age: 5, FlockSteps: 5, Incarnation: number})
		if _, err := peer.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "begin without the checkpoint") {
			t.Errorf("incarnation %d: error %v", number, err)
		}
	}
}

// TestNewLivesEndNoRunEarly: a member that begins a new life every 50 ms, each with as many
// steps as it likes, counts as one peer and not as hundreds.
func TestNewLivesEndNoRunEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const work, honest = 20_000, 7
		f := peertest.Start(t, peertest.Config{Peers: honest, Params: newModel, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			c.Training.Work = peer.Work{Steps: work}
			c.Training.Exchange.Pace.Every = 20
		}})
		liar := inMemory(t, f.Network, "liar", peertest.Run)
		if err := liar.Membership.Join(t.Context(), f.Peers[0].Self()); err != nil {
			t.Fatal(err)
		}
		trained := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for life := uint64(1); ; life++ {
				record := transport.Record{Peer: liar.Transport.Self(), Run: peertest.Run, Incarnation: life, Steps: 1 << 40}
				if err := liar.Membership.Announce(record); err != nil {
					t.Error(err)
				}
				select {
				case <-trained:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		}()
		f.Train(t.Context(), atPace(10*time.Millisecond, towards))
		close(trained)
		<-ended
		var taken uint64
		for i, p := range f.Peers {
			s := p.Stats()
			taken += s.Steps
			if s.Duplicates != 1 || s.Lost > 3 {
				t.Errorf("peer %d knows of %d twins, and counts %d members lost", i, s.Duplicates, s.Lost)
			}
		}
		if least := uint64(work * honest / (honest + 2)); taken < least*95/100 {
			t.Errorf("the run of %d steps ended after %d, want %d at least", work, taken, least)
		}
	})
}
