package local

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestCombine shows what the result of a local run is made of: sums, means and
// the largest.
func TestCombine(t *testing.T) {
	one := result.Share{Initiated: 5, Sketch: result.Sketch{1, 8}, Result: result.Result{
		Peers: 2, Steps: 100, Seconds: 2, TestAccuracy: result.Accuracy{Mean: 0.9, Min: 0.9, Max: 0.9}, Loss: 1, Exchanges: 8,
		Refused: 1, Failed: 2, InDoubt: 3, PeersLost: 1, JoinSeconds: 0.5, ConnectionsMax: 2, BytesSent: 10, BitsPerParameter: 32,
		Peer: "a", Role: "active", Partners: result.SpreadOf(1), PeakMemory: result.Spread{Mean: 10, Min: 10, Max: 10},
	}}
	two := result.Share{Initiated: 3, Sketch: result.Sketch{7, 0}, Result: result.Result{
		Peers: 2, Steps: 50, Seconds: 3, TestAccuracy: result.Accuracy{Mean: 0.8, Min: 0.8, Max: 0.8}, Loss: 2, Exchanges: 8,
		Refused: 10, Failed: 20, InDoubt: 30, JoinSeconds: 0.25, ConnectionsMax: 3, BytesSent: 100, BitsPerParameter: 16,
		ResumedStep: 9, Partners: result.SpreadOf(2), PeakMemory: result.Spread{Mean: 20, Min: 20, Max: 20},
	}}
	r := combine([]result.Share{one, two}, nil, 3, 1)
	if r.Peers != 3 || r.PeersLost != 1 || r.Steps != 150 || r.Exchanges != 8 || r.Refused != 11 || r.Failed != 22 || r.InDoubt != 33 || r.BytesSent != 110 {
		t.Errorf("sums: %+v", r)
	}
	if r.Seconds != 3 || r.JoinSeconds != 0.5 || r.ConnectionsMax != 3 || r.ResumedStep != 9 {
		t.Errorf("largest: %+v", r)
	}
	a := r.TestAccuracy
	if !near(float64(a.Mean), 0.85) || a.Min != 0.8 || a.Max != 0.9 || r.Loss != 1.5 || r.ConsensusDistance != 5 || r.ConsensusPeers != 2 || r.BitsPerParameter != 24 {
		t.Errorf("means: %+v", r)
	}
	if r.Partners != (result.Spread{Mean: 1.5, Min: 1, Max: 2}) || r.PeakMemory != (result.Spread{Mean: 15, Min: 10, Max: 20}) {
		t.Errorf("footprint: %+v, %+v", r.Partners, r.PeakMemory)
	}
	if r := combine([]result.Share{one}, nil, 3, 2); !math.IsNaN(float64(r.ConsensusDistance)) || r.ConsensusPeers != 0 {
		t.Errorf("one peer alone has a distance of %v over %d", r.ConsensusDistance, r.ConsensusPeers)
	}
	if r.Peer != "" || r.Role != "" {
		t.Errorf("all peers together have the id %q and the role %q", r.Peer, r.Role)
	}
}

// TestFinalOf puts the results of peers together.
func TestFinalOf(t *testing.T) {
	of := func(pairs ...string) (all []result.Share) {
		for p := range slices.Chunk(pairs, 2) {
			all = append(all, result.Share{Result: result.Result{FinalResult: result.FinalResult{Final: p[0], ModelHash: p[1]}}})
		}
		return all
	}
	for _, c := range []struct {
		shares      []result.Share
		final, hash string
		said        string
	}{
		{of("merge", "a", "merge", "a"), "merge", "a", "merged: a."},
		{of("merge", "a", "merge", "b"), "merge", "", "differ: a, b."},
		{of("merge", "a", "unmerged", "b"), "unmerged", "", "not come about at all peers: a, b."},
		{of("local", "a", "local", "b"), "local", "", ""},
		{of("local", "a"), "local", "a", "Final model: a."},
	} {
		got := finalOf(c.shares)
		if got.Final != c.final || got.ModelHash != c.hash || len(got.Hashes) != len(c.shares) || !strings.Contains(got.Summary(), c.said) {
			t.Errorf("%+v: %s, want %s, %s and %q", got, got.Summary(), c.final, c.hash, c.said)
		}
	}
	if text := (result.FinalResult{Final: settings.FinalUnmerged, ModelHash: "a"}).Summary(); !strings.Contains(text, "own model: a.") {
		t.Error(text)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }
