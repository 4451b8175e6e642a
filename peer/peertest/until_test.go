package peertest_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestSimulationUntil: a simulated run ends at each aim, within one evaluation of it, for the reason that it tells, and the same
// way each time; an aim that is not reached changes nothing.
func TestSimulationUntil(t *testing.T) {
	till := func(until peer.Until) peertest.Outcome {
		s := simulation(4)
		s.Work.StepsPerPeer, s.Work.Until = 500, until
		s.World.Compute.Step = 50 * time.Millisecond
		return simulate(t, s)
	}
	whole := till(peer.Until{})
	if whole.StoppedBy != "work" || whole.Best >= 0 {
		t.Errorf("without an aim: %q, best %v", whole.StoppedBy, whole.Best)
	}
	for _, c := range []struct {
		by    string
		until peer.Until
		fits  func(o peertest.Outcome) bool
	}{
		{"accuracy", peer.Until{Accuracy: 0.5}, func(o peertest.Outcome) bool { return o.Best >= 0.5 && o.Seconds < 1.5 }},
		{"loss", peer.Until{Loss: 0.5}, func(o peertest.Outcome) bool { return o.Final.TestLoss < 0.6 && o.Final.TestLoss > 0.1 }},
		{"plateau", peer.Until{Plateau: 3}, func(o peertest.Outcome) bool { return o.Best > 0.9 }},
		{"deadline", peer.Until{Deadline: 5 * time.Second, Accuracy: 0.999}, func(o peertest.Outcome) bool { return o.Seconds >= 5 && o.Seconds < 5.1 && o.Best > 0 }},
		{"work", peer.Until{Accuracy: 0.9999}, func(o peertest.Outcome) bool { return o.Digest == whole.Digest && o.Best >= o.Final.Mean-0.05 }},
	} {
		o, again := till(c.until), till(c.until)
		if o.StoppedBy != c.by || !c.fits(o) || (o.Seconds < whole.Seconds) != (c.by != "work") {
			t.Errorf("%s: stopped by %q after %.2f s of %.2f, best %v, at the end %+v", c.by, o.StoppedBy, o.Seconds, whole.Seconds, o.Best, o.Final)
		}
		if o.Digest != again.Digest || o.Best != again.Best || o.Seconds != again.Seconds {
			t.Errorf("%s: the second time it ends after %.3f s with %v, the first after %.3f s with %v", c.by, again.Seconds, again.Best, o.Seconds, o.Best)
		}
	}
	s := simulation(4)
	s.Watch.Points, s.Watch.Target, s.Watch.Stop = 10, 0.5, true
	if o := simulate(t, s); o.StoppedBy != "accuracy" || o.TargetSeconds != o.Seconds {
		t.Errorf("at a target it is stopped by %q, at %.2f s of %.2f", o.StoppedBy, o.TargetSeconds, o.Seconds)
	}
	s = simulation(4)
	s.Limit = 3 * time.Millisecond // less than a step
	if o, err := peertest.Simulate(t.Context(), s); !errors.Is(err, peertest.ErrLimit) || o.Seconds > s.Limit.Seconds() {
		t.Errorf("with a limit of %s it ends after %.3f s: %v", s.Limit, o.Seconds, err)
	}
	s = simulation(2)
	s.Exchange.Topology = 9
	s.Work.Until = peer.Until{Accuracy: 2, Deadline: -1}
	if _, err := peertest.Simulate(t.Context(), s); err == nil || !strings.Contains(err.Error(), "Work.Until") || !strings.Contains(err.Error(), "Exchange.Topology is 9") {
		t.Errorf("an accuracy of 2, no topology: %v", err)
	}
}

// TestTheLongestSteps: their virtual time is beyond what a duration holds, and the run comes to its limit.
func TestTheLongestSteps(t *testing.T) {
	for _, compute := range []peertest.Compute{{Step: math.MaxInt64}, {Step: time.Hour, Slow: map[int]float64{0: 1e300, 1: 1e300, 2: 1e300, 3: 1e300}}} {
		s := simulation(4)
		s.World.Compute = compute
		if o, err := peertest.Simulate(t.Context(), s); !errors.Is(err, peertest.ErrLimit) || o.Steps != 0 {
			t.Errorf("%v: %d steps, %v", compute, o.Steps, err)
		}
	}
}

// TestAnEndIsHeededHoweverLongSteps are: what waits for them may look at the clock a hundred times a second.
func TestAnEndIsHeededHoweverLongSteps(t *testing.T) {
	s := simulation(4)
	s.World.Compute.Step, s.Watch.Points = time.Hour, 10
	ctx, end := context.WithCancel(t.Context())
	s.Watch.Point = func(peertest.Point) { end() }
	if o, err := peertest.Simulate(ctx, s); !errors.Is(err, context.Canceled) || o.Steps > 64 {
		t.Errorf("ended after 60 steps, and %d were made: %v", o.Steps, err)
	}
}
