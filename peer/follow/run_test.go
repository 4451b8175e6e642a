package follow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/follow"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

const slots = 8

// row is learned if the model has label at slot.
type row struct{ slot, label int }

// memory is a model that remembers a label for each slot.
type memory struct {
	peer *peer.Peer
	x    tensor.Vector
	seen map[row]int
}

func newMemory() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "slots", Shape: []int{slots}})
	if err != nil {
		panic(err)
	}
	return tensor.NewParams(layout)
}

func (m *memory) Step(ctx context.Context, rows []row) error {
	return m.peer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
		time.Sleep(10 * time.Millisecond)
		for _, r := range rows {
			m.seen[r]++
			grad[r.slot] += (x[r.slot] - float32(r.label)) / float32(len(rows))
		}
		return peer.Result{Samples: len(rows)}, nil
	})
}

func (m *memory) Right(rows []row) []bool {
	_, _ = m.peer.Snapshot(m.x, 0)
	right := make([]bool, len(rows))
	for i, r := range rows {
		right[i] = math.Abs(float64(m.x[r.slot])-float64(r.label)) < 0.5
	}
	return right
}

func (m *memory) Class(r row) int { return r.label }

// coming is rows of a moment: two labels change places after a minute.
func coming(after time.Duration) (rows []row) {
	for i := range 64 {
		label := 2 + 3*(i%2)
		if after > time.Minute {
			label = 7 - label
		}
		rows = append(rows, row{i % slots, label})
	}
	return rows
}

// TestFlockFollows: members of a flock train together on what arrives, by the same steps, and follow labels that change; one that
// crashes holds nobody up, and goes on when it is back.
func TestFlockFollows(t *testing.T) {
	for _, policy := range []follow.Policy{follow.CostAware, follow.BestEffort} {
		synctest.Test(t, func(t *testing.T) {
			flock := peertest.Start(t, peertest.Config{Peers: 3, Params: newMemory, Link: memnet.Link{Delay: 3 * time.Millisecond}, Configure: func(_ int, c *peer.Config) {
				c.Training.Schedule, c.Training.Optimizer = optim.Schedule{Rate: 2}, &optim.SGD{}
				c.Network.Sums.Timeout = 10 * time.Second
			}})
			const whole = 3 * time.Minute
			began := time.Now()
			ends, cancel := context.WithDeadline(t.Context(), began.Add(whole))
			defer cancel()
			member := func(ctx context.Context, p *peer.Peer) (s follow.Summary, m *memory) {
				m = &memory{p, make(tensor.Vector, slots), map[row]int{}}
				files := make(chan follow.Arrival[row])
				var feeding sync.WaitGroup
				feeding.Go(func() {
					defer close(files)
					for ctx.Err() == nil {
						select {
						case files <- follow.Arrival[row]{Name: time.Since(began).String(), Rows: coming(time.Since(began))}:
						case <-ctx.Done():
						}
						time.Sleep(3 * time.Second)
					}
				})
				s, err := follow.Run(ctx, follow.Config[row]{Flock: p, Arrivals: files, Learner: m, Policy: policy, Passes: 2, Keep: 256, Told: func(e follow.Event) {
					if e.Err != nil && ctx.Err() == nil {
						t.Logf("%s: %v", time.Since(began), e.Err)
					}
				}})
				if err != nil && !errors.Is(err, peer.ErrClosed) {
					t.Error(err)
				}
				feeding.Wait()
				return s, m
			}
			var all sync.WaitGroup
			summaries, models := make([]follow.Summary, 3), make([]*memory, 3)
			for i := range 2 {
				all.Go(func() { summaries[i], models[i] = member(ends, flock.Peers[i]) })
			}
			crashes, crash := context.WithCancel(ends)
			all.Go(func() {
				member(crashes, flock.Peers[2])
				time.Sleep(time.Until(began.Add(100 * time.Second)))
				summaries[2], models[2] = member(ends, flock.Return(2))
			})
			time.Sleep(30 * time.Second)
			flock.Crash(2)
			crash()
			all.Wait()
			t.Logf("%s: %+v", policy, summaries)
			if d := summaries[0].Trainings - summaries[1].Trainings; d < -1 || d > 1 || summaries[0].Trainings < 3 {
				t.Errorf("%s: %d and %d trainings", policy, summaries[0].Trainings, summaries[1].Trainings)
			}
			if policy == follow.CostAware && summaries[0].Trainings > 15 || policy == follow.BestEffort && summaries[0].Trainings < 30 {
				t.Errorf("%s: %d trainings of sixty files", policy, summaries[0].Trainings)
			}
			for i, s := range summaries {
				if i < 2 && s.Arrived < 57*64 {
					t.Errorf("%s: member %d received %d rows, as it was held up", policy, i, s.Arrived)
				}
				if policy == follow.BestEffort && (s.Trainings < 10 || models[i].seen[row{0, 5}] == 0) {
					t.Errorf("member %d has not trained on new labels: %+v", i, s)
				}
				if s.Accuracy < 0.85 {
					t.Errorf("%s: member %d has an accuracy of %.3f over time", policy, i, s.Accuracy)
				}
				if !slices.Contains(models[i].Right([]row{{3, 2}}), true) {
					t.Errorf("%s: member %d remembers %v", policy, i, models[i].x)
				}
			}
		})
	}
}

// hall is where members meet without a network: a meeting is over when all that are expected have come.
type hall struct {
	mu       sync.Mutex
	expected int
	open     map[string]*meeting
	over     map[string]bool
	most     int // names that are remembered
	order    []string
}

type meeting struct {
	blocks [][]byte
	done   chan struct{}
}

func (h *hall) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	h.mu.Lock()
	if h.over[name] { // is remembered anew
		h.order = append(slices.DeleteFunc(h.order, func(o string) bool { return o == name }), name)
		h.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", name, peer.ErrSumOver)
	}
	m := h.open[name]
	if m == nil {
		m = &meeting{done: make(chan struct{})}
		h.open[name] = m
	}
	m.blocks = append(m.blocks, data)
	if len(m.blocks) == h.expected {
		close(m.done)
		delete(h.open, name)
		h.over[name], h.order = true, append(h.order, name)
		if len(h.order) > h.most {
			delete(h.over, h.order[0])
			h.order = h.order[1:]
		}
	}
	h.mu.Unlock()
	select {
	case <-m.done:
		return m.blocks, nil
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.open[name] == m { // else it is over, and others read what was said
			m.blocks = slices.DeleteFunc(m.blocks, func(b []byte) bool { return len(b) == len(data) && (len(b) == 0 || &b[0] == &data[0]) })
		}
		return nil, ctx.Err()
	}
}

// still is a model that learns nothing.
type still struct{ steps, failAfter int }

var errBroken = errors.New("broken")

func (s *still) Step(context.Context, []int) error {
	if s.steps++; s.steps > s.failAfter {
		return errBroken
	}
	time.Sleep(time.Millisecond)
	return nil
}

func (s *still) Right(rows []int) []bool { return make([]bool, len(rows)) }
func (s *still) Class(int) int           { return 0 }

// TestNewcomerFindsTheMeeting: hours later, when the first meetings are forgotten, in the time of a thousand tries.
func TestNewcomerFindsTheMeeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hall{expected: 2, open: map[string]*meeting{}, over: map[string]bool{}, most: 2048}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Hour)
		defer cancel()
		var all sync.WaitGroup
		join := func() {
			all.Go(func() {
				files := make(chan follow.Arrival[int], 1)
				files <- follow.Arrival[int]{Name: "one", Rows: []int{1, 2, 3, 4, 5}}
				s, err := follow.Run(ctx, follow.Config[int]{Flock: h, Arrivals: files, Learner: &still{failAfter: 1 << 20}})
				if err != nil || s.Arrived != 5 || s.Trainings == 0 {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
		join()
		join()
		time.Sleep(3*time.Hour + 500*time.Millisecond)
		h.mu.Lock()
		h.expected = 3
		h.mu.Unlock()
		join()
		time.Sleep(30 * time.Second)
		h.mu.Lock()
		last, waiting := h.order[len(h.order)-1], len(h.open)
		h.mu.Unlock()
		before := last
		time.Sleep(3 * time.Second)
		h.mu.Lock()
		last = h.order[len(h.order)-1]
		h.mu.Unlock()
		if last == before {
			t.Errorf("no meeting after %s, %d are waited for", last, waiting)
		}
		cancel()
		all.Wait()
	})
}

// TestRunFails: with bad settings, and with the learner.
func TestRunFails(t *testing.T) {
	h := &hall{expected: 1, open: map[string]*meeting{}, over: map[string]bool{}, most: 100}
	files := make(chan follow.Arrival[int], 1)
	good := follow.Config[int]{Flock: h, Arrivals: files, Learner: &still{failAfter: 2}}
	for i, spoil := range []func(c *follow.Config[int]){
		func(c *follow.Config[int]) { c.Flock = nil },
		func(c *follow.Config[int]) { c.Price = math.NaN() },
		func(c *follow.Config[int]) { c.Passes = -1 },
		func(c *follow.Config[int]) { c.Keep = follow.MaxKeep + 1 },
		func(c *follow.Config[int]) { c.Policy = 2 },
	} {
		bad := good
		spoil(&bad)
		if _, err := follow.Run(t.Context(), bad); !errors.Is(err, follow.ErrConfig) {
			t.Errorf("%d: %v", i, err)
		}
	}
	files <- follow.Arrival[int]{Name: "file", Rows: make([]int, 200)}
	close(files)
	s, err := follow.Run(t.Context(), good)
	if !errors.Is(err, errBroken) || s.Waiting != 200 || s.Kept != 0 || s.Trainings != 0 {
		t.Errorf("%+v, %v: want all rows to wait still", s, err)
	}
}

// TestTrainedTellsOfEachRowOnce: each row that has come waits, or was told of as trained on or dropped; old rows of an earlier life are
// kept, and none that have come.
func TestTrainedTellsOfEachRowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newMemory, Configure: func(_ int, c *peer.Config) {
			c.Training.Schedule, c.Training.Optimizer = optim.Schedule{Rate: 2}, &optim.SGD{}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		began, files := time.Now(), make(chan follow.Arrival[row])
		var feeding sync.WaitGroup
		feeding.Go(func() {
			files <- follow.Arrival[row]{Name: "before", Rows: coming(0)[:20], Old: true}
			for ; ctx.Err() == nil; time.Sleep(5 * time.Second) {
				select {
				case files <- follow.Arrival[row]{Rows: coming(time.Since(began))}:
				case <-ctx.Done():
				}
			}
		})
		told, kept, dropped := 0, 0, 0
		s, err := follow.Run(ctx, follow.Config[row]{
			Flock: flock.Peers[0], Arrivals: files, Learner: &memory{flock.Peers[0], make(tensor.Vector, slots), map[row]int{}}, Policy: follow.BestEffort,
			Trained: func(rows, old []row) { told, kept = told+len(rows), len(old) },
			Told:    func(e follow.Event) { dropped += e.Dropped },
		})
		feeding.Wait()
		if err != nil || s.Trainings < 3 || told+s.Waiting != s.Arrived || s.Arrived%64 != 0 || kept != s.Kept || dropped == 0 {
			t.Errorf("%d were told of, %d are kept, %d were dropped: %+v, %v", told, kept, dropped, s, err)
		}
	})
}

// TestAccuracyThatIsNotKnown is NaN: before rows have come that no training has seen, and where only old ones are kept.
func TestAccuracyThatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hall{expected: 2, open: map[string]*meeting{}, over: map[string]bool{}, most: 100}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for _, old := range []bool{false, true} {
			all.Go(func() {
				files, came, trained := make(chan follow.Arrival[int], 1), 0, 0
				files <- follow.Arrival[int]{Name: "one", Rows: make([]int, 20), Old: old}
				_, err := follow.Run(ctx, follow.Config[int]{Flock: h, Arrivals: files, Learner: &still{failAfter: 1 << 20}, Policy: follow.BestEffort, Told: func(e follow.Event) {
					if came, trained = came+e.Rows, trained+e.Training; math.IsNaN(e.Accuracy) != (old || e.Training == 0) {
						t.Errorf("old %v: %+v", old, e)
					}
				}})
				if err != nil || trained == 0 || (came == 0) != old {
					t.Errorf("old %v: %d rows have come, %d trainings, %v", old, came, trained, err)
				}
			})
		}
		all.Wait()
	})
}
