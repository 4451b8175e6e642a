package averaging_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	_, err := averaging.NewADPSGD(averaging.Config{Every: -1, MinEvery: 9, MaxEvery: 3, CostShare: 2, Deadline: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, fault := range []string{"Self", "Rand", "Every", "MinEvery 9 exceeds", "CostShare", "Deadline"} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%q says nothing of %s", err, fault)
		}
	}
}

func newMachine(t testing.TB, config averaging.Config) *averaging.ADPSGD {
	t.Helper()
	config.Self = "a"
	config.Rand = rand.New(rand.NewPCG(1, 2))
	machine, err := averaging.NewADPSGD(config)
	if err != nil {
		t.Fatal(err)
	}
	machine.Handle(0, averaging.Event{Kind: averaging.ViewChanged, Overlay: overlayOf(t, []string{"a=active", "p=passive"})}, nil)
	return machine
}

// drive takes steps of one length, with exchanges of another that cost some
// processor time, and returns the H that the machine arrives at.
func drive(m *averaging.ADPSGD, step, exchange, cost time.Duration) int {
	var now, ends time.Duration
	var running averaging.Action
	for range 2000 {
		now += step
		actions := m.Handle(now, averaging.Event{Kind: averaging.StepDone}, nil)
		if running.Kind != 0 && now >= ends {
			actions = append(actions, m.Handle(ends, averaging.Event{Kind: averaging.Finished, Peer: running.Peer, Exchange: running.Exchange, Cost: cost}, nil)...)
			running = averaging.Action{}
		}
		for _, a := range actions {
			if a.Kind == averaging.Propose {
				running, ends = a, now+exchange
			}
		}
	}
	return m.Every()
}

func TestAutoHidesCommunicationAndBoundsItsCost(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name                 string
		step, exchange, cost time.Duration
		config               averaging.Config
		want                 int
	}{
		{"slow link hides behind twenty steps", 10 * ms, 195 * ms, ms, averaging.Config{}, 20},
		{"fast link costs a twentieth", 7 * ms, 3 * ms, 2 * ms, averaging.Config{}, 6},
		{"cheap and fast: every step", 10 * ms, ms, ms / 10, averaging.Config{}, 1},
		{"the ceiling holds", ms, 400 * ms, ms, averaging.Config{MaxEvery: 64}, 64},
		{"the floor holds", 10 * ms, ms, ms / 10, averaging.Config{MinEvery: 4}, 4},
		{"a fixed H is fixed", ms, 100 * ms, 50 * ms, averaging.Config{Every: 3}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := drive(newMachine(t, c.config), c.step, c.exchange, c.cost); got != c.want {
				t.Errorf("H = %d, want %d", got, c.want)
			}
		})
	}
}

func BenchmarkHandleStep(b *testing.B) {
	m := newMachine(b, averaging.Config{Every: 4})
	var actions []averaging.Action
	b.ReportAllocs()
	var now time.Duration
	for b.Loop() {
		now += time.Millisecond
		actions = m.Handle(now, averaging.Event{Kind: averaging.StepDone}, actions[:0])
		for _, a := range actions {
			if a.Kind == averaging.Propose {
				m.Handle(now, averaging.Event{Kind: averaging.Finished, Peer: a.Peer, Exchange: a.Exchange}, nil)
			}
		}
	}
}

func TestHandlingAStepAllocatesNothing(t *testing.T) {
	m := newMachine(t, averaging.Config{Every: 1 << 30})
	actions := make([]averaging.Action, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		actions = m.Handle(time.Second, averaging.Event{Kind: averaging.StepDone}, actions[:0])
	}); n != 0 {
		t.Errorf("%v allocations for a step", n)
	}
}
