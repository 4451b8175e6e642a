package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// told is the members of a view with their states.
func told(v *view) string {
	text := v.State + ":"
	for _, m := range v.Members {
		text += fmt.Sprintf(" %s%s=%s", m.ID, m.Name, m.State)
	}
	return text
}

// TestWaits: who waits for others says so, and not that it trains, until it steps.
func TestWaits(t *testing.T) {
	c := newCalm()
	c.members, c.told, c.stats.FlockSteps = c.members[:1], nil, 0
	b := NewBoard(c, About{Self: "a", MinPeers: 3}, nil, nil, nil)
	if got := told(b.see()); got != "waiting: a=waiting" {
		t.Error("alone:", got)
	}
	c.members[0].Steps, c.stats.Steps, c.stats.Resumed = 40, 40, 40
	c.members = append(c.members, control.Member{ID: "b", Role: topology.Passive, State: control.Copying})
	if got := told(b.see()); got != "waiting: b=copying a=waiting" {
		t.Error("with one more, and steps of an earlier life:", got)
	}
	c.members[0].Steps, c.stats.Steps = 41, 41
	if got := told(b.see()); got != "training: b=copying a=training" {
		t.Error("when it has given up waiting:", got)
	}
	c.members[0].Steps, c.stats.Steps = 40, 40
	c.members = append(c.members, control.Member{ID: "c", State: control.Training})
	if got := told(b.see()); got != "training: b=copying c=training a=training" {
		t.Error("when all are here:", got)
	}
}

// TestGoneStay: who is killed or leaves before the work is done stays on the page, by its
// name and with what it told last, until it is back; members are counted without it.
func TestGoneStay(t *testing.T) {
	c := newCalm()
	c.told["b"] = control.Digest{Name: "build-1", Loss: 7, Steps: 7, FlockSteps: 100, Samples: 10, Received: time.Now()}
	b := calmBoard(c, nil)
	b.see()
	all := c.members
	c.members, c.stats.Lost = []control.Member{all[0], all[2]}, 1
	v := b.see()
	if got := told(v); v.Total != 2 || got != "training: c=training a=training bbuild-1=lost" || v.Members[2].Loss != 7 || !v.Members[2].Stale {
		t.Errorf("one is killed: %d, %s", v.Total, got)
	}
	if len(v.Links) != 1 || len(v.Matrix) != 0 {
		t.Errorf("links %v, matrix %v", v.Links, v.Matrix)
	}
	c.members[1].Leaving = true
	if got := told(b.see()); got != "training: c=leaving a=training bbuild-1=lost" {
		t.Error("one leaves:", got)
	}
	c.members = all[:1]
	if got := told(b.see()); got != "training: a=training bbuild-1=lost" {
		t.Error("one has left:", got)
	}
	c.members = []control.Member{all[0], all[2]}
	b.see()
	c.members = all[:1]
	if got := told(b.see()); got != "training: a=training bbuild-1=lost" {
		t.Error("one has come and left between two looks:", got)
	}
	c.members = append(all[:1:1], all[2], control.Member{ID: "d", Role: topology.Passive, State: control.Training})
	c.told["d"] = control.Digest{Name: "build-1", Received: time.Now()}
	if got := told(b.see()); strings.Contains(got, "lost") {
		t.Error("it is back, with another id:", got)
	}
	c.members, c.stats.Lost = all[:1], 3
	b.see()
	c.stats.Over, c.members = true, []control.Member{{ID: "a", State: control.Closed}}
	b.Rest()
	if got := told(b.see()); got != "over: a=over c=lost dbuild-1=lost" {
		t.Error("at the end:", got)
	}
	var many losses
	for i := range 3 * maxLost {
		many.notice(view{Members: []member{{Member: control.Member{ID: transport.PeerID(fmt.Sprint(i))}}}}, view{Lost: 1})
	}
	if len(many) != maxLost || many[0].ID != transport.PeerID(fmt.Sprint(2*maxLost)) {
		t.Errorf("%d that have gone are kept", len(many))
	}
}

// TestStaleValuesFade: what was told long ago, or when the run was elsewhere, is marked, and
// neither in the mean nor in the band of the losses.
func TestStaleValuesFade(t *testing.T) {
	c := newCalm()
	c.stats.FlockSteps = 1000
	c.members = append(c.members, control.Member{ID: "d", Role: topology.Passive, State: control.Training, Steps: 1})
	now := time.Now()
	c.told = map[transport.PeerID]control.Digest{
		"a": {Loss: 0.5, FlockSteps: 1000, Exchanges: 1, ConsensusDistance: 1, Samples: 10, Received: now},
		"b": {Loss: 2.87, FlockSteps: 30, Exchanges: 1, ConsensusDistance: 9, Samples: 10, Received: now.Add(-2 * time.Second)},
		"c": {Loss: 0.7, FlockSteps: 950, Exchanges: 1, ConsensusDistance: 2, Samples: 10, Received: now.Add(-9 * time.Second)},
		"d": {Loss: 3, FlockSteps: 990, Exchanges: 1, ConsensusDistance: 9, Samples: 10, Received: now.Add(-time.Minute)},
	}
	v := calmBoard(c, nil).see()
	p := pointOf(v, 0)
	if v.Loss != 0.6 || v.Distance != 1.5 || p.LossLow != 0.5 || p.LossHigh != 0.7 || v.Samples != 40 || v.Tell != 4 {
		t.Errorf("loss %v (%v to %v), distance %v, samples %v of %d that tell", v.Loss, p.LossLow, p.LossHigh, v.Distance, v.Samples, v.Tell)
	}
	stale := ""
	for _, m := range v.Members {
		if m.Stale {
			stale += string(m.ID)
		}
	}
	if strings.Trim(stale, "bd") != "" || len(stale) != 2 {
		t.Errorf("stale are %q, want b and d", stale)
	}
	if late := NewBoard(c, About{Self: "a", Digests: time.Minute}, nil, nil, nil).see(); late.Loss < 1 {
		t.Errorf("of digests that come once a minute the mean loss is %v", late.Loss)
	}
}

// TestResultStands: at the end the figures of the result are shown, also to who comes then,
// and one that is unknown is not estimated.
func TestResultStands(t *testing.T) {
	c := newCalm()
	b := calmBoard(c, nil)
	b.tick()
	if text, err := json.Marshal(b.whole(nil).State); err != nil || !strings.Contains(string(text), `"final":null`) {
		t.Errorf("before: %s, %v", text, err)
	}
	c.stats.Over = true
	b.Rest()
	b.Show(result.Result{Peer: "a", Loss: 0.008, TestAccuracy: result.AccuracyOf(0.9794), ConsensusDistance: cli.Number(math.NaN())})
	<-b.look // those who watch are told at once
	text, err := json.Marshal(b.whole(nil).State.Final)
	if err != nil || !strings.Contains(string(text), `"mean":0.9794`) || !strings.Contains(string(text), `"loss":0.008,"consensus_distance":null`) || !strings.Contains(string(text), `"peer":"a"`) {
		t.Errorf("at the end: %s, %v", text, err)
	}
}
