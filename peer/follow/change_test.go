package follow_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/follow"
)

// alone is a flock of one.
type alone struct{}

func (alone) Gather(_ context.Context, _ string, data []byte) ([][]byte, error) {
	return [][]byte{data}, nil
}

// table learns a label for each slot, and nothing else.
type table [slots]float64

func (m *table) Step(_ context.Context, rows []row) error {
	time.Sleep(10 * time.Millisecond)
	for _, r := range rows {
		m[r.slot] += 2 * (float64(r.label) - m[r.slot]) / float64(len(rows))
	}
	return nil
}

func (m *table) Right(rows []row) []bool {
	right := make([]bool, len(rows))
	for i, r := range rows {
		right[i] = math.Abs(m[r.slot]-float64(r.label)) < 0.5
	}
	return right
}

func (m *table) Class(r row) int { return r.label }

// TestLabelsChangePlaces: after a minute the labels of two classes do, of which one comes three times as often as the other; the
// model follows, whichever rows are drawn to be held out. Rows come between two steps, and not at the moment of one or of a meeting,
// so that each seed is one course.
func TestLabelsChangePlaces(t *testing.T) {
	const between = 5 * time.Millisecond
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+between)
			defer cancel()
			files, began, chance := make(chan follow.Arrival[row], 100), time.Now(), rand.New(rand.NewPCG(seed, 7))
			var feeding sync.WaitGroup
			defer feeding.Wait()
			feeding.Go(func() {
				time.Sleep(between)
				for ; ctx.Err() == nil; time.Sleep(3 * time.Second) {
					var rows []row
					for range 64 {
						slot := chance.IntN(slots)
						if chance.IntN(3) > 0 {
							slot |= 1 // mostly
						}
						label := 2 + 3*(slot%2)
						if time.Since(began) > time.Minute {
							label = 7 - label
						}
						rows = append(rows, row{slot, label})
					}
					files <- follow.Arrival[row]{Rows: rows}
				}
			})
			var m table
			s, err := follow.Run(ctx, follow.Config[row]{Flock: alone{}, Arrivals: files, Learner: &m, Passes: 2, Keep: 256, Seed: seed})
			if err != nil || s.Accuracy < 0.85 || s.Trainings > 25 {
				t.Errorf("seed %d: %+v, %v, the model is %.2f", seed, s, err, m)
			}
		})
	}
}
