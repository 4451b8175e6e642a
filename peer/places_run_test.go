package peer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// hoard keeps asking a donor for one slice of its model now and then, as if it were slow,
// and comes again whenever it is turned out.
func hoard(ctx context.Context, t *testing.T, from *memnet.Transport, donor seam.PeerID) {
	ask := func(stream seam.Stream, m wire.Message) bool {
		frame, err := wire.Pack(nil, 0, m)
		if err != nil {
			t.Error(err)
			return false
		}
		_, err = stream.Write(frame)
		return err == nil
	}
	for ctx.Err() == nil {
		stream, err := from.Open(ctx, donor, seam.ProtocolState, peertest.Run)
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, stream.Reset)
		frames := wire.NewReader(stream, 0)
		good := ask(stream, wire.StateRequest{Run: peertest.Run, Layout: newModel().Layout().Hash()})
		for good && ctx.Err() == nil {
			header, _, err := frames.Next()
			if err != nil || header.Type == wire.TypeRefuse {
				break
			}
			if header.Type == wire.TypeStateHashes {
				continue
			}
			time.Sleep(2 * time.Second)
			good = ask(stream, wire.StateWant{First: 0, Count: 1})
		}
		stop()
		stream.Reset()
		time.Sleep(10 * time.Millisecond) // sooner than any honest newcomer
	}
}

// TestHeldPlacesKeepNoLatecomerOut: neither one process with many identities that takes all
// places for newcomers, nor one with addresses in many blocks.
func TestHeldPlacesKeepNoLatecomerOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		block func(i int) string // of those who hold the places
		soon  time.Duration
	}{
		{"one block", func(int) string { return "192.0.2.0/24" }, 2 * time.Second},
		{"many blocks", func(i int) string { return fmt.Sprintf("192.0.%d.0/24", i) }, time.Minute},
		{"the latecomer's block", func(int) string { return "" }, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := trainedFlock(t, time.Millisecond)
				ctx, stop := context.WithCancel(t.Context())
				var hoarding sync.WaitGroup
				defer hoarding.Wait()
				defer stop()
				for i := range 8 {
					transport, err := f.Network.Transport(fmt.Sprintf("hoarder-%d", i))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { transport.Close() })
					transport.SetBlock(c.block(i))
					for _, donor := range f.IDs() {
						hoarding.Go(func() { hoard(ctx, t, transport, donor) })
					}
				}
				time.Sleep(5 * time.Second)
				began, donor := time.Now(), f.Peers[0].Stats().State.Newcomers
				if donor != 4 {
					t.Errorf("%d places are held before the latecomer comes, want all 4", donor)
				}
				late := f.Add()
				patience, cancel := context.WithTimeout(ctx, 2*time.Minute)
				defer cancel()
				err := late.Step(patience, func(x, _ tensor.Vector) (peer.Result, error) {
					checkFlocks(t, "the first snapshot", x)
					return peer.Result{}, nil
				})
				if err != nil {
					t.Errorf("the latecomer's first step: %v", err)
				}
				t.Logf("it took %s", time.Since(began))
				if took := time.Since(began); took > c.soon || late.Stats().State.Donors == 0 {
					t.Errorf("it took %s: %+v", took, late.Stats().State)
				}
			})
		})
		if underRace {
			break // it sees all that the others do in the first
		}
	}
}
