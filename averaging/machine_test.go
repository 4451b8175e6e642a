package averaging_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	_, err := averaging.NewADPSGD(averaging.Config{Pace: averaging.Pace{Every: -1, Drift: -1, BytesPerHour: math.NaN()}, MaxInbound: 7, Deadline: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, fault := range []string{"Self", "Rand", "Every", "Drift", "BytesPerHour", "MaxInbound is 7", "Deadline"} {
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
		{"the ceiling holds", ms, 400 * ms, ms, averaging.Config{}, 256},
		{"a fixed H is fixed", ms, 100 * ms, 50 * ms, averaging.Config{Pace: averaging.Pace{Every: 3}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := drive(newMachine(t, c.config), c.step, c.exchange, c.cost); got != c.want {
				t.Errorf("H = %d, want %d", got, c.want)
			}
		})
	}
}

// TestAutoLearnsFromWhatBreaksOff takes steps of 10 ms, with an exchange that is
// broken off or completed after some time as each case says.
func TestAutoLearnsFromWhatBreaksOff(t *testing.T) {
	type exchange struct {
		ends   averaging.EventKind
		lasted time.Duration
	}
	const (
		unheard   = averaging.EventKind(0) // fails before it is accepted
		failed    = averaging.Failed
		completed = averaging.Finished
		lost      = averaging.PeerLost
		stalls    = averaging.TimerFired
	)
	ms := time.Millisecond
	for _, c := range []struct {
		name      string
		exchanges []exchange
		want      int
	}{
		{"what lasted is what it takes at least", []exchange{{failed, 200 * ms}}, 20},
		{"the deadline is a lower bound too", []exchange{{stalls, 300 * ms}}, 30},
		{"so is the loss of the partner", []exchange{{lost, 200 * ms}}, 20},
		{"the longest counts", []exchange{{failed, 200 * ms}, {failed, 10 * ms}}, 20},
		{"what was never accepted tells nothing", []exchange{{unheard, 200 * ms}}, 1},
		{"one that broke early does not hide the mean", []exchange{{completed, 300 * ms}, {failed, 10 * ms}}, 30},
		{"one completed shows the truth", []exchange{{failed, 200 * ms}, {completed, 50 * ms}}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, averaging.Config{RetryAfter: 1})
			now := 10 * ms
			var proposal averaging.Action // the last
			tell := func(kind averaging.EventKind) {
				for _, a := range m.Handle(now, averaging.Event{Kind: kind, Peer: proposal.Peer, Exchange: proposal.Exchange}, nil) {
					if a.Kind == averaging.Propose {
						proposal = a
					}
				}
			}
			train := func(until time.Duration) {
				for now < until {
					now += 10 * ms
					tell(averaging.StepDone)
				}
			}
			for i, x := range c.exchanges {
				for tries := 0; proposal.Exchange == averaging.ExchangeID(i) && tries < 1000; tries++ {
					train(now + 10*ms)
				}
				if x.ends == unheard {
					x.ends = failed
				} else {
					tell(averaging.Accepted)
				}
				train(now + x.lasted)
				tell(x.ends)
			}
			if got := m.Every(); got != c.want {
				t.Errorf("H = %d, want %d", got, c.want)
			}
		})
	}
}

func BenchmarkHandleStep(b *testing.B) {
	m := newMachine(b, averaging.Config{Pace: averaging.Pace{Every: 4}})
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

func TestInitiatingAllocatesNothing(t *testing.T) {
	m := newMachine(t, averaging.Config{Pace: averaging.Pace{Every: 1}, RetryAfter: 1})
	actions := make([]averaging.Action, 0, 8)
	ends := []averaging.EventKind{averaging.Finished, averaging.Failed, averaging.TimerFired, averaging.Refused}
	now, proposed := time.Second, 0
	if n := testing.AllocsPerRun(100, func() {
		now += time.Second
		actions = m.Handle(now, averaging.Event{Kind: averaging.StepDone}, actions[:0])
		for _, a := range actions {
			if a.Kind == averaging.Propose {
				event := averaging.Event{Kind: ends[proposed%len(ends)], Peer: a.Peer, Exchange: a.Exchange, Reason: averaging.Quarantine}
				proposed++
				actions = m.Handle(now, event, actions[:0])
				break
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations for an outbound exchange", n)
	}
	if proposed < 50 {
		t.Errorf("only %d exchanges in 100 steps: the test shows little", proposed)
	}
}

func TestHandlingAStepAllocatesNothing(t *testing.T) {
	m := newMachine(t, averaging.Config{Pace: averaging.Pace{Every: 1 << 30}})
	actions := make([]averaging.Action, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		actions = m.Handle(time.Second, averaging.Event{Kind: averaging.StepDone}, actions[:0])
	}); n != 0 {
		t.Errorf("%v allocations for a step", n)
	}
}
