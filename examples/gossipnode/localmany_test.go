package main

import (
	"bytes"
	"flag"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
)

// many is the number of processes of TestLocalMany: 8 suits every machine.
var many = flag.Int("many", 8, "number of processes of TestLocalMany")

// TestLocalMany shows many processes on one machine: all have joined within 15 s,
// everybody exchanges, nobody with more partners than the overlay has links or with
// many more connections than there are others, and each tells what memory it took.
func TestLocalMany(t *testing.T) {
	peers := *many
	var out, logged bytes.Buffer
	cmd := command(t, localArgs(clitest.Pictures(t, 40*peers, 100), "--peers", strconv.Itoa(peers), "--steps", "200", "--step-time", "10ms", "--every", "10")...)
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	r := lastLine(t, out.String())
	if r.Peers != peers || r.PeersLost != 0 || r.Failed != 0 {
		t.Errorf("%d of %d peers, %d lost, %d exchanges failed", r.Peers, peers, r.PeersLost, r.Failed)
	}
	if r.JoinSeconds > 15 || r.JoinSeconds == 0 {
		t.Errorf("it took %.1f s until everybody saw everybody", r.JoinSeconds)
	}
	// In a class that has grown to twice the other one, members of the smaller have
	// twice the links; and a link that a joiner has moved counts beside the old one.
	degree := 2*bits.Len(uint(peers-1)) + 1
	if r.Partners.Min < 1 || r.Partners.Max > float64(min(2*degree, peers-1)) {
		t.Errorf("%v to %v partners, a peer has at most %d links", r.Partners.Min, r.Partners.Max, 2*degree)
	}
	// Two that dial each other at the same moment have two connections until one of them is closed.
	if r.ConnectionsMax > 3*(peers-1)/2 {
		t.Errorf("%d connections to %d others", r.ConnectionsMax, peers-1)
	}
	if one, err := host.PeakMemory(); err == nil && one > 0 && (r.PeakMemory.Mean < 1<<20 || r.PeakMemory.Max < r.PeakMemory.Mean) {
		t.Errorf("memory of processes %+v", r.PeakMemory)
	}
	if one, err := host.PeakMemory(); err == nil && one > 0 && !strings.Contains(logged.String(), "Memory of a process") {
		t.Errorf("the summary has no memory:\n%s", &logged)
	}
	t.Logf("joined after %.1f s, %v to %v partners, at most %d connections, memory %+v", r.JoinSeconds, r.Partners.Min, r.Partners.Max,
		r.ConnectionsMax, r.PeakMemory)
}
