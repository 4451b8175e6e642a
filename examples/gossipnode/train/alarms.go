package train

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// judgeEvery is the time between two looks at this peer's alarms; members hear of them no sooner.
const judgeEvery = 2 * time.Second

// alarms judge what a person should look at here, and have all members told.
type alarms struct {
	accuracy atomic.Uint64 // the bits of the last on held-out data; 0 before the first, which raises none
}

// evaluated notes an accuracy on held-out data.
func (a *alarms) evaluated(accuracy float64) { a.accuracy.Store(math.Float64bits(accuracy)) }

// judge judges until the returned function is called, which waits for it.
func (a *alarms) judge(t *training) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var judging sync.WaitGroup
	judging.Go(func() {
		var raised watch.Alarms
		ticker := time.NewTicker(judgeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				accuracy := t.panel.board.Load().Accuracy()
				if math.IsNaN(accuracy) {
					accuracy = math.Float64frombits(a.accuracy.Load())
				}
				t.peer.Raise(raised.Own(t.peer.Members(), t.peer.Self(), t.bounds().Reading(t.peer.Stats(), accuracy)))
			}
		}
	})
	return func() { stop(); judging.Wait() }
}

// bounds are those of this peer's alarms.
func (t *training) bounds() watch.Bounds {
	pace, _ := t.Pace() // Validate has checked it
	return watch.Bounds{Saved: t.keeper.Age, SaveEvery: t.CheckpointEvery, Budget: pace.BytesPerHour}
}
