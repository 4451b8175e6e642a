package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestCombine shows what the result of a local run is made of: sums, means and
// the largest.
func TestCombine(t *testing.T) {
	unknown := cli.Number(math.NaN())
	one := share{Initiated: 5, Result: result{
		Peers: 2, Steps: 100, Seconds: 2, TestAccuracy: accuracy{0.9, 0.9, 0.9}, Loss: 1, ConsensusDistance: 3, Exchanges: 8,
		Refused: 1, Failed: 2, InDoubt: 3, PeersLost: 1, JoinSeconds: 0.5, ConnectionsMax: 2, BytesSent: 10, BitsPerParameter: 32,
		Peer: "a", Role: "active", Partners: sole(1), PeakMemory: &spread{10, 10, 10},
	}}
	two := share{Initiated: 3, Result: result{
		Peers: 2, Steps: 50, Seconds: 3, TestAccuracy: accuracy{0.8, 0.8, 0.8}, Loss: 2, ConsensusDistance: unknown, Exchanges: 8,
		Refused: 10, Failed: 20, InDoubt: 30, JoinSeconds: 0.25, ConnectionsMax: 3, BytesSent: 100, BitsPerParameter: 16,
		ResumedStep: 9, Partners: sole(2), PeakMemory: &spread{20, 20, 20},
	}}
	r := combine([]share{one, two}, nil, 3, 1)
	if r.Peers != 3 || r.PeersLost != 1 || r.Steps != 150 || r.Exchanges != 8 || r.Refused != 11 || r.Failed != 22 || r.InDoubt != 33 || r.BytesSent != 110 {
		t.Errorf("sums: %+v", r)
	}
	if r.Seconds != 3 || r.JoinSeconds != 0.5 || r.ConnectionsMax != 3 || r.ResumedStep != 9 {
		t.Errorf("largest: %+v", r)
	}
	a := r.TestAccuracy
	if !near(float64(a.Mean), 0.85) || a.Min != 0.8 || a.Max != 0.9 || r.Loss != 1.5 || r.ConsensusDistance != 3 || r.BitsPerParameter != 24 {
		t.Errorf("means: %+v", r)
	}
	if r.Partners != (spread{1.5, 1, 2}) || r.PeakMemory == nil || *r.PeakMemory != (spread{15, 10, 20}) {
		t.Errorf("footprint: %+v, %+v", r.Partners, r.PeakMemory)
	}
	if r.Peer != "" || r.Role != "" {
		t.Errorf("all peers together have the id %q and the role %q", r.Peer, r.Role)
	}
}

// TestResultFields holds the names of the contract.
func TestResultFields(t *testing.T) {
	text, err := json.Marshal(result{Loss: cli.Number(math.Inf(1))})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	const contract = "peers strategy codec dataset model steps seconds test_accuracy loss consensus_distance exchanges refused failed " +
		"in_doubt peers_lost join_seconds connections_max bytes_sent bits_per_parameter resumed_step"
	for _, name := range strings.Fields(contract) {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %s in %s", name, text)
		}
	}
	for _, name := range []string{"mean", "min", "max"} {
		if _, ok := fields["test_accuracy"].(map[string]any)[name]; !ok {
			t.Errorf("no field test_accuracy.%s in %s", name, text)
		}
	}
	if fields["loss"] != nil {
		t.Errorf("loss is %v, want null for what is no number", fields["loss"])
	}
	var back result
	if err := json.Unmarshal(text, &back); err != nil || !math.IsNaN(float64(back.Loss)) {
		t.Errorf("read back: loss %v, error %v", back.Loss, err)
	}
}
