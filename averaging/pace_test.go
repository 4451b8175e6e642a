package averaging_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// walk lets a machine take steps of 10 ms, each told of as the case says, with
// exchanges that end at once. It returns the number of exchanges initiated.
func walk(m *averaging.ADPSGD, steps int, step func(sinceExchange int) averaging.Event, exchange averaging.Event) (exchanges int) {
	var now time.Duration
	since := 0
	for range steps {
		now += 10 * time.Millisecond
		since++
		event := step(since)
		event.Kind = averaging.StepDone
		for _, a := range m.Handle(now, event, nil) {
			if a.Kind == averaging.Propose {
				exchanges++
				since = 0
				finished := exchange
				finished.Kind, finished.Peer, finished.Exchange = averaging.Finished, a.Peer, a.Exchange
				m.Handle(now, finished, nil)
			}
		}
	}
	return exchanges
}

func TestTalkWhenTheModelHasMoved(t *testing.T) {
	for _, c := range []struct {
		name string
		pace averaging.Pace
		far  float64 // a step moves the model by so many lengths of a step
		want int     // exchanges in 1,000 steps
	}{
		{"more than four lengths", averaging.Pace{Drift: 4}, 1, 200},
		{"half as fast, half as often", averaging.Pace{Drift: 4}, 0.5, 111},
		{"one that hardly moves talks all the same", averaging.Pace{Drift: 4}, 1e-6, 3},
		{"a fixed H is not heeded", averaging.Pace{Drift: 4, Every: 500}, 1, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, averaging.Config{Pace: c.pace})
			got := walk(m, 1000, func(since int) averaging.Event { return averaging.Event{Moved: c.far * float64(since)} }, averaging.Event{})
			if got != c.want {
				t.Errorf("%d exchanges, want %d", got, c.want)
			}
		})
	}
}

// TestNeverIsNotAlways: as many steps as can be counted, between two exchanges, are no fewer where something multiplies them.
func TestNeverIsNotAlways(t *testing.T) {
	for _, pace := range []averaging.Pace{{}, {Burst: 2}, {BySpeed: true}, {Consensus: true}} {
		pace.Every = math.MaxInt
		m := newMachine(t, averaging.Config{Pace: pace})
		step := func(int) averaging.Event { return averaging.Event{Stride: 1e-9, Speed: 4, Progress: 0.5} }
		if n := walk(m, 1000, step, averaging.Event{Distance: 1}); n > 0 {
			t.Errorf("%+v: %d exchanges", pace, n)
		}
	}
}

// TestPaceOfStepsToldAtOnce: a trainer in another process tells of forty steps of 10 ms at once. How soon
// one word follows the other says nothing of how long they took: H is that of steps told one by one.
func TestPaceOfStepsToldAtOnce(t *testing.T) {
	for _, atOnce := range []int{1, 40} {
		m := newMachine(t, averaging.Config{})
		var now time.Duration
		for n := range 4000 {
			event := averaging.Event{Kind: averaging.StepDone}
			switch {
			case atOnce == 1:
				now += 10 * time.Millisecond
			case n%atOnce == 0:
				now += time.Duration(atOnce) * 10 * time.Millisecond
				fallthrough
			default:
				now += time.Microsecond
				event.Between = 10 * time.Millisecond
			}
			for _, a := range m.Handle(now, event, nil) {
				if a.Kind == averaging.Propose {
					m.Handle(now, averaging.Event{Kind: averaging.Finished, Peer: a.Peer, Exchange: a.Exchange, Cost: 5 * time.Millisecond}, nil)
				}
			}
		}
		if got := m.Every(); got != 10 {
			t.Errorf("%d at once: H is %d, want 10", atOnce, got)
		}
	}
}

// A budget stretches whatever H would be.
func TestBudget(t *testing.T) {
	const exchange = 1 << 20
	for _, pace := range []averaging.Pace{{}, {Every: 1}, {Drift: 1}, {Every: 2}} {
		pace.BytesPerHour = 60 * exchange // one exchange a minute, 6,000 steps
		m := newMachine(t, averaging.Config{Pace: pace})
		n := walk(m, 60_000, func(since int) averaging.Event { return averaging.Event{Moved: float64(since)} }, averaging.Event{Bytes: exchange})
		if n < 10 || n > 12 {
			t.Errorf("%+v: %d exchanges in ten minutes of a budget of one a minute", pace, n)
		}
	}
}

// flockOf tells a machine of a flock whose distance is k times what H steps of length
// 1 explain, and what an exchange costs, and returns H at the end of each tenth of the run.
func flockOf(t *testing.T, pace averaging.Pace, k func(progress float64) float64, cost ...time.Duration) (every []int) {
	return flockFor(t, 40_000, pace, k, cost...)
}

// flockFor is flockOf for a run of so many steps.
func flockFor(t *testing.T, steps int, pace averaging.Pace, k func(progress float64) float64, cost ...time.Duration) (every []int) {
	m := newMachine(t, averaging.Config{Pace: pace})
	var now time.Duration
	for i := range steps {
		now += 10 * time.Millisecond
		progress := float64(i) / float64(steps)
		for _, a := range m.Handle(now, averaging.Event{Kind: averaging.StepDone, Stride: 1, Progress: progress}, nil) {
			if a.Kind != averaging.Propose {
				continue
			}
			apart := k(progress) * math.Sqrt(2*float64(m.Every()))
			m.Handle(now, averaging.Event{Kind: averaging.Finished, Peer: a.Peer, Exchange: a.Exchange, Distance: apart, Cost: append(cost, 0)[0]}, nil)
		}
		if (i+1)%(steps/10) == 0 {
			every = append(every, m.Every())
		}
	}
	return every
}

func TestConsensusController(t *testing.T) {
	usual := func(float64) float64 { return 1 }
	every := flockOf(t, averaging.Pace{Every: 16, Consensus: true}, usual)
	if every[1] > 4 {
		t.Errorf("early, H is %d: models are to be closer", every[1])
	}
	if last := every[len(every)-1]; last > 4 {
		t.Errorf("late, H is %d: models are to be closer", last)
	}
	loose := flockOf(t, averaging.Pace{Every: 16, Consensus: true}, func(p float64) float64 {
		if p < 0.2 {
			return 1
		}
		return 0.2
	})
	if loose[6] <= 16 {
		t.Errorf("in between, with models close together, H is %d", loose[6])
	}
	for _, h := range []int{64, 128} { // seven to a dozen exchanges in all
		if every := flockFor(t, 800, averaging.Pace{Every: h, Consensus: true}, usual); every[9] >= h {
			t.Errorf("in a run of few exchanges, H is %v: it never decides", every)
		}
	}
	if off := flockOf(t, averaging.Pace{Every: 16}, usual); off[1] != 16 || off[9] != 16 {
		t.Errorf("off, it changes H to %v", off)
	}
	// Where the link decides, it does not talk more often than the link allows.
	for _, h := range flockOf(t, averaging.Pace{Consensus: true}, usual, 4*time.Millisecond) { // a twentieth of eight steps
		if h < 8 {
			t.Errorf("H is %d, at least 8", h)
		}
	}
	// What makes no sense changes nothing.
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		if h := flockOf(t, averaging.Pace{Every: 16, Consensus: true}, func(float64) float64 { return bad }); h[9] != 16 {
			t.Errorf("distance %v: H is %d", bad, h[9])
		}
	}
}

// Peers of unequal speed exchange equally often in time, within bounds.
func TestPaceBySpeed(t *testing.T) {
	for _, c := range []struct {
		name  string
		pace  averaging.Pace
		speed float64
		want  int
	}{
		{"the mean", averaging.Pace{Every: 8, BySpeed: true}, 1, 8},
		{"half as fast", averaging.Pace{Every: 8, BySpeed: true}, 0.5, 4},
		{"three times as fast", averaging.Pace{Every: 8, BySpeed: true}, 3, 24},
		{"rounded", averaging.Pace{Every: 3, BySpeed: true}, 0.9, 3},
		{"a hundred times slower", averaging.Pace{Every: 8, BySpeed: true}, 0.01, 2},
		{"a hundred times faster", averaging.Pace{Every: 8, BySpeed: true}, 100, 32},
		{"never below one", averaging.Pace{Every: 1, BySpeed: true}, 0.01, 1},
		{"not known", averaging.Pace{Every: 8, BySpeed: true}, 0, 8},
		{"no number", averaging.Pace{Every: 8, BySpeed: true}, math.NaN(), 8},
		{"infinite", averaging.Pace{Every: 8, BySpeed: true}, math.Inf(1), 32},
		{"off", averaging.Pace{Every: 8}, 3, 8},
		{"where the link decides", averaging.Pace{BySpeed: true}, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, averaging.Config{Pace: c.pace})
			m.Handle(0, averaging.Event{Kind: averaging.StepDone, Speed: c.speed}, nil)
			if got := m.Every(); got != c.want {
				t.Errorf("H is %d, want %d", got, c.want)
			}
		})
	}
}

// TestPartialExchangesTakeTheTimeOfHSteps, on however slow a link; those that share the last steps
// are whole.
func TestPartialExchangesTakeTheTimeOfHSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int
		want  time.Duration
	}{{"eight steps", 8, 80 * time.Millisecond}, {"H by the processor alone, not by the link", 0, 40 * time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, averaging.Config{Pace: averaging.Pace{Every: c.every, Partial: true}})
			var now, last time.Duration
			for range 400 {
				now += 10 * time.Millisecond
				for _, a := range m.Handle(now, averaging.Event{Kind: averaging.StepDone}, nil) {
					if a.Kind == averaging.Propose {
						last = a.Within
						took := now + 300*time.Millisecond
						m.Handle(took, averaging.Event{Kind: averaging.Finished, Peer: a.Peer, Exchange: a.Exchange, Cost: 2 * time.Millisecond}, nil)
					}
				}
			}
			if last != c.want {
				t.Errorf("an exchange may take %s, want %s", last, c.want)
			}
			for _, a := range m.Handle(now, averaging.Event{Kind: averaging.RunOver}, nil) {
				if a.Kind == averaging.Propose && a.Within != 0 {
					t.Errorf("the last exchange may take %s, want any time", a.Within)
				}
			}
		})
	}
	if err := (averaging.Pace{Drift: 1, Partial: true}).Validate(); err == nil {
		t.Error("partial exchanges without H are taken")
	}
}
