package checkpoint

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAge shows that a keeper which has never saved grows old too: otherwise the metric
// would be silent about a folder in which nothing can be saved.
func TestAge(t *testing.T) {
	if age, kept := (*Keeper)(nil).Age(); kept {
		t.Errorf("nothing is kept, and is %v old", age)
	}
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(KeeperConfig{})
		time.Sleep(time.Minute)
		if age, kept := k.Age(); !kept || age != time.Minute {
			t.Errorf("a minute after the start without a checkpoint the age is %v, %v", age, kept)
		}
	})
}

// TestRepeat shows that checkpoints are saved by time, however many steps there are in
// it, the first soon after the first step, none where there are no steps, and none after the end.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(KeeperConfig{Every: 30 * time.Second})
		var steps atomic.Uint64
		saved := 0
		k.running.Go(func() { k.repeat(steps.Load, func() { saved++ }) })
		train := func(per int, lasts time.Duration) (saves int) {
			before := saved
			for range lasts / time.Millisecond {
				steps.Add(uint64(per))
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			return saved - before
		}
		if n := train(0, 12*time.Second); n != 0 {
			t.Errorf("%d checkpoints before the first step", n)
		}
		for _, after := range []time.Duration{3, 10, 20, 30, 30} { // the next tick, and from then on as is due
			if n := train(20, after*time.Second-time.Millisecond) + 10*train(20, time.Millisecond); n != 10 {
				t.Errorf("%d checkpoints before %v s have passed, and %d then", n%10, after, n/10)
			}
		}
		if n := train(20, 22*time.Second); n != 0 {
			t.Errorf("%d checkpoints 22 s after the last", n)
		}
		if n := train(0, 38*time.Second); n != 1 {
			t.Errorf("%d checkpoints of the last steps, want 1", n)
		}
		if n := train(0, time.Minute); n != 0 {
			t.Errorf("%d checkpoints without a step", n)
		}
		k.End()
		if n := train(1, time.Minute); n != 0 {
			t.Errorf("%d checkpoints after the end", n)
		}
		k = NewKeeper(KeeperConfig{Every: -time.Second}) // whose ticker would panic
		k.Start()
		k.End()
	})
}

// slow is a peer whose state takes a while to copy; it fails if it is asked for a second copy meanwhile.
type slow struct {
	*testing.T
	copying atomic.Int32
	steps   atomic.Uint64
}

func (s *slow) Self() transport.PeerID { return "me" }
func (s *slow) Stats() stats.Peer      { return stats.Peer{Steps: s.steps.Add(1)} }
func (s *slow) Save(tensor.Vector, *optim.State) (peer.Checkpoint, error) {
	if s.copying.Add(1) > 1 {
		s.Error("two checkpoints are written at once, in the same memory")
	}
	time.Sleep(time.Second)
	s.copying.Add(-1)
	return peer.Checkpoint{}, nil
}

// TestOneSaveAtATime: the last checkpoint waits for one that Start has begun.
func TestOneSaveAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slow{T: t}
		k := NewKeeper(KeeperConfig{
			Into: Folder{Dir: t.TempDir(), Run: "r", Keep: 3}, Peer: p, Layout: smallParams(t, 10).Layout(), Every: time.Minute, Log: zap.NewNop(),
		})
		k.Start()
		time.Sleep(firstAfter + time.Second/2)
		if err := k.Last(p.Stats()); err != nil {
			t.Error(err)
		}
		k.End()
		if names, err := k.Into.Names(); err != nil || len(names) != 2 {
			t.Errorf("the folder holds %v: %v", names, err)
		}
	})
}
