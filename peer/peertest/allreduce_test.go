package peertest_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/quant"
)

// allReduceSimulation is one of four peers that average gradients, by SGD
// without momentum: who has the parameters has all there is.
func allReduceSimulation(codec string) peertest.Simulation {
	s := simulation(4)
	s.Exchange = peer.Exchange{SliceLen: 300, Codec: quant.Policy{Codec: codec}, Machine: func(c averaging.Config) (averaging.Machine, error) {
		return baseline.NewAllReduce(baseline.Config{Self: c.Self})
	}}
	s.Optimizer = func() optim.Optimizer { return &optim.SGD{} }
	return s
}

// TestNewcomerOfAllReduceHasTheModelOfAll: what it is sent to catch up with is not rounded,
// whatever codec the gradients travel in.
func TestNewcomerOfAllReduceHasTheModelOfAll(t *testing.T) {
	for _, codec := range []string{"raw", "int8", "bf16"} {
		s := allReduceSimulation(codec)
		s.World.Changes = []peertest.Change{{At: 300 * time.Millisecond, Kind: peertest.Arrive, Peer: 3}}
		o := simulate(t, s)
		if o.Each[3].Steps == 0 {
			t.Errorf("%s: the newcomer made no step", codec)
		}
		if o.Final.Consensus != 0 {
			t.Errorf("%s: the models differ by %g", codec, o.Final.Consensus)
		}
	}
}

// TestReplayOfABalancedRunTakesAsLong: what a peer's time is for a batch of its own size is
// not divided once more.
func TestReplayOfABalancedRunTakesAsLong(t *testing.T) {
	var record bytes.Buffer
	s := allReduceSimulation("raw")
	s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
		return baseline.NewAllReduce(baseline.Config{Self: c.Self, Batch: 4})
	}
	s.World.Compute.Samples = 4
	s.World.Compute.Slow = map[int]float64{0: 4}
	s.Watch.Record = &record
	recorded := simulate(t, s)
	recording, err := peertest.ReadRecording(&record)
	if err != nil {
		t.Fatal(err)
	}
	s.Task, s.Watch.Record, s.World.Replay = newValley(5, 4), nil, recording
	if replayed := simulate(t, s); math.Abs(replayed.Seconds/recorded.Seconds-1) > 1e-6 {
		t.Errorf("recorded %g s, replayed %g s", recorded.Seconds, replayed.Seconds)
	}
}

// TestRecordingOfARunGivenUpIsWhole: just such a run is worth a second look.
func TestRecordingOfARunGivenUpIsWhole(t *testing.T) {
	var record bytes.Buffer
	s := simulation(4)
	s.Watch.Record = &record
	s.Limit = 500 * time.Millisecond
	if _, err := peertest.Simulate(t.Context(), s); !errors.Is(err, peertest.ErrLimit) {
		t.Fatalf("the run ended with %v", err)
	}
	if _, err := peertest.ReadRecording(&record); err != nil {
		t.Error(err)
	}
}

// TestReplaysHaveAttacksThatCanBe: they are of the simulation, not of what is replayed.
func TestReplaysHaveAttacksThatCanBe(t *testing.T) {
	s := simulation(4)
	s.World.Replay = &peertest.Recording{Peers: 4}
	s.World.Lies = lies(t, 9, "push", 1)
	if _, err := peertest.Simulate(t.Context(), s); err == nil {
		t.Error("an attack of a peer that there is not was taken")
	}
}
