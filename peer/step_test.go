package peer_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/rows"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

func alone(config *peer.Config) {
	config.Training.Exchange.Machine = func(averaging.Config) (averaging.Machine, error) { return baseline.Alone{}, nil }
}

func startAlone(t *testing.T, change func(*peer.Config)) *peer.Peer {
	t.Helper()
	config := peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, memnet.New(memnet.Config{}), "only", "digits")}
	alone(&config)
	if change != nil {
		change(&config)
	}
	return start(t, config)
}

func TestStepReturnsTheGradientsError(t *testing.T) {
	p := startAlone(t, nil)
	broken := errors.New("no more data")
	err := step(t, p, func(int, tensor.Vector, tensor.Vector) (peer.Result, error) { return peer.Result{}, broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "step 1") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Step(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestOnlyOneTrainer(t *testing.T) {
	p := startAlone(t, nil)
	err := step(t, p, func(_ int, x, _ tensor.Vector) (peer.Result, error) {
		if err := p.Apply(t.Context(), x, peer.Result{}); err == nil {
			t.Error("a second trainer was let in")
		}
		return peer.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunEndsWhenTheWorkIsDone(t *testing.T) {
	p := startAlone(t, func(c *peer.Config) { c.Training.Work = peer.Work{StepsPerPeer: 5} })
	for i := range 5 {
		if err := step(t, p, towards); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
	if err := step(t, p, towards); !errors.Is(err, peer.ErrRunOver) {
		t.Errorf("the sixth step: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := step(t, p, towards); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("a step after Close: %v", err)
	}
	if _, err := p.Train(t.Context(), peer.Training{Params: newModel()}); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("training after Close: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// pixels is a row of a byte.
type pixels struct{}

func (pixels) Rows() int { return 1 }

func (pixels) Append(dst []byte, rows []int32) ([]byte, error) {
	return append(dst, make([]byte, len(rows))...), nil
}

func TestAServiceOfAClosedNodeIsRefused(t *testing.T) {
	n, err := peer.Join(t.Context(), peer.Network{Run: "digits", Listen: []string{"127.0.0.1:0"}}) // closes its transport, too
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Hold(n, pixels{}, rows.HoldConfig{}); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("holding rows after Close: %v", err)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	p := startAlone(t, nil)
	gradient := func(x, grad tensor.Vector) (peer.Result, error) { return towards(0, x, grad) }
	ctx := t.Context()
	one := func() {
		if err := p.Step(ctx, gradient); err != nil {
			t.Fatal(err)
		}
	}
	one()
	// A step that allocates does so each time; what runs beside it, such as the loop that
	// announces, does by the clock, and on a busy machine many times while one is measured.
	fewest := math.Inf(1)
	for range 3 {
		fewest = min(fewest, testing.AllocsPerRun(200, one))
	}
	if fewest > 0 {
		t.Errorf("%v allocations for a step", fewest)
	}
}

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	_, err := peer.Start(t.Context(), peer.Config{
		Params: &tensor.Params{},
		Network: peer.Network{Identity: make([]byte, 3), Listen: []string{"anywhere"}, Relay: p2pnet.Relay{Via: []string{"192.0.2.1:1"}}, GossipKeys: [][]byte{{1}}, Carrier: 9, Control: control.Config{Operator: "12D3KooWshort"}, Sums: peer.Sums{Timeout: -1, Topology: 9}, Partners: []peer.Partner{
			{ID: "nowhere"}, {ID: "a b", Addresses: []string{"x"}}, {ID: "spaced", Addresses: []string{"a b"}},
		}},
		Training: peer.Training{Exchange: peer.Exchange{Codec: quant.Policy{Codec: "zip"}, SliceLen: -1, Topology: 9, Pace: averaging.Pace{Every: -2}}, Optimizer: &optim.AdamW{Beta2: 1}, Schedule: optim.Schedule{Rate: -1, Warmup: 2, At: []float64{0.5, 0.2}}},
	})
	if !errors.Is(err, peer.ErrConfig) {
		t.Fatal(err)
	}
	for _, fault := range []string{"Run", "Params", "tensor.NewParams", "zip", "SliceLen", "Every", "Rate", "Warmup", "At", "Identity", "anywhere", "Relay.Via", "GossipKeys[0]", "Carrier", "Control.Operator", "Timeout", "Sums.Topology is 9", "Exchange.Topology is 9", "Optimizer: Beta2", "nowhere has 0 addresses", `"a b" is not the id`, `address "a b"`} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("the error says nothing of %s:\n%v", fault, err)
		}
	}
}

func TestTransfersNeedCodecsThatStandAlone(t *testing.T) {
	config := peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, memnet.New(memnet.Config{}), "only", "digits")}
	rivals()[0].configure(0, &config)
	config.Training.Exchange.Codec.Codec = "lattice6+4"
	if p, err := peer.Start(t.Context(), config); !errors.Is(err, peer.ErrConfig) {
		if err == nil {
			p.Close()
		}
		t.Errorf("a lattice for gradients: %v", err)
	}
}

func TestACrashStopsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 5, Params: newModel, Link: memnet.Link{Delay: 5 * time.Millisecond}, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			c.Training.Work = peer.Work{Steps: 2000, Grace: time.Second}
		}})
		go func() {
			time.Sleep(1500 * time.Millisecond)
			flock.Network.Crash(flock.Peers[4].Self())
		}()
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		for i, p := range flock.Peers[:4] {
			s := p.Stats()
			if !s.Over || s.Lost != 1 || s.Exchanges.LongestHold > 2*time.Second {
				t.Errorf("peer %d: over %v, lost %d, held for %s", i, s.Over, s.Lost, s.Exchanges.LongestHold)
			}
			if s.FlockSteps < 2000 || s.FlockSteps > 2200 {
				t.Errorf("peer %d ends at %d steps of the flock, want about 2000", i, s.FlockSteps)
			}
		}
	})
}

func TestAStalledPartnerCostsNoSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: shortRun})
		ids := flock.IDs()
		go func() {
			time.Sleep(time.Second)
			flock.Network.Cut(ids[0], ids[1])
			flock.Network.Cut(ids[0], ids[2])
			flock.Network.Cut(ids[0], ids[3])
		}()
		began := time.Now()
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the run took %s", took)
		}
		for i, p := range flock.Peers {
			if s := p.Stats(); s.Exchanges.LongestHold > time.Millisecond {
				t.Errorf("peer %d's trainer was held for %s", i, s.Exchanges.LongestHold)
			}
		}
	})
}

// TestSnapshotsHaveVersions: nothing is copied where nothing has changed since, and a vector
// that does not fit is refused.
func TestSnapshotsHaveVersions(t *testing.T) {
	p := startAlone(t, nil)
	x := make(tensor.Vector, newModel().Layout().Len())
	first, err := p.Snapshot(x, 0)
	if err != nil || first == 0 {
		t.Fatalf("version %d, %v", first, err)
	}
	x[0] = 77 // what only a copy takes away
	if again, err := p.Snapshot(x, first); err != nil || again != first || x[0] != 77 {
		t.Errorf("version %d after %d, %v: copied %v", again, first, err, x[0])
	}
	delta := make(tensor.Vector, len(x))
	delta[1] = 1
	if err := p.Apply(t.Context(), delta, peer.Result{Loss: 0.25, Samples: 4}); err != nil {
		t.Fatal(err)
	}
	if later, err := p.Snapshot(x, first); err != nil || later == first || x[0] == 77 {
		t.Errorf("version %d after %d, %v: copied %v", later, first, err, x[0])
	}
	if _, err := p.Snapshot(x[1:], 0); err == nil || x[0] == 77 {
		t.Error("a vector that is too short was taken")
	}
	if loss := p.Stats().Loss; loss != 0.25 {
		t.Errorf("the loss of a step of the caller's own is %v", loss)
	}
}
