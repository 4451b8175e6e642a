package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// faultyLanes is a transport whose further lanes are what open makes of them.
type faultyLanes struct {
	transport.Transport
	open func(ctx context.Context, lane transport.Stream) (transport.Stream, error)
}

func (f faultyLanes) OpenLane(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string, lane int) (transport.Stream, error) {
	stream, err := f.Transport.OpenLane(ctx, to, protocol, run, lane)
	if err != nil {
		return nil, err
	}
	return f.open(ctx, stream)
}

// swallowing is a stream that takes what is written and delivers nothing.
type swallowing struct{ transport.Stream }

func (swallowing) Write(b []byte) (int, error) { return len(b), nil }

// manySlices has as many slices as wideModel, each of manySlicesLen values.
func manySlices() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{92, manySlicesLen}})
	if err != nil {
		panic(err) // the specs are constants
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i%7) - 3
	}
	return params
}

const manySlicesLen = 512

// TestBadLanesDoNotStopExchanges: the first stream does what the others cannot, and
// a partner to whom lanes do not work is soon spoken to over one.
func TestBadLanesDoNotStopExchanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fails  uint64 // exchanges that may fail at either side
		within time.Duration
		open   func(ctx context.Context, lane transport.Stream) (transport.Stream, error)
	}{
		{"never opens", 0, 2 * time.Second, func(ctx context.Context, lane transport.Stream) (transport.Stream, error) {
			lane.Reset()
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{"dead when it opens", 0, 2 * time.Second, func(_ context.Context, lane transport.Stream) (transport.Stream, error) {
			lane.Reset()
			return lane, nil
		}},
		{"swallows what is sent", 2, 20 * time.Second, func(_ context.Context, lane transport.Stream) (transport.Stream, error) {
			return swallowing{lane}, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond, Bandwidth: 1e6}})
				var peers [2]*peer.Peer
				for i := range peers {
					n := inMemory(t, network, string(rune('0'+i)), "digits")
					n.Transport = faultyLanes{n.Transport, c.open}
					peers[i] = start(t, peer.Config{
						Run:      "digits",
						Params:   manySlices(),
						Network:  n,
						Join:     []string{"mem:0"}[:i],
						Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Lanes: 2, SliceLen: manySlicesLen}},
					})
				}
				for _, p := range peers {
					if err := p.WaitMembers(t.Context(), 2); err != nil {
						t.Fatal(err)
					}
				}
				const wanted = 5
				deadline := time.Now().Add(c.within)
				for peers[0].Stats().Exchanges.Completed() < wanted && time.Now().Before(deadline) {
					for _, p := range peers {
						if err := step(t, p, idle); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(50 * time.Millisecond)
				}
				a, b := peers[0].Stats().Exchanges, peers[1].Stats().Exchanges
				if a.Completed() < wanted || a.Failed+b.Failed > c.fails {
					t.Errorf("%d exchanges completed and %d failed within %s", a.Completed(), a.Failed+b.Failed, c.within)
				}
			})
		})
	}
}
