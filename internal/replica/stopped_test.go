package replica_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// A sender that was stopped leaves the sum as the next attempt has filled it: what it
// would pass on, it would have rounded.
func TestStoppedSenderChangesNothing(t *testing.T) {
	codec, err := coding.ByName("int8")
	if err != nil {
		t.Fatal(err)
	}
	for _, stop := range []bool{false, true} {
		a := smallAveragers(t, 1)[0]
		gradient := make(tensor.Vector, a.Len())
		for i := range gradient {
			gradient[i] = 1 / float32(3+i)
		}
		if err := a.PutRange(gradient, 0, len(gradient), 1); err != nil {
			t.Fatal(err)
		}
		var stopped atomic.Bool
		err := a.sender.Begin(replica.TransferTerms{
			Transfer: collective.Transfer{From: collective.Sum, Into: collective.Sum, Parts: 1},
			Plan:     coding.Uniform(codec), Stopped: &stopped,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Load(0, 1, false, false); err != nil {
			t.Fatal(err)
		}
		stopped.Store(stop)
		if _, _, err := a.sender.Next(nil); errors.Is(err, replica.ErrStopped) != stop || !stop && err != nil {
			t.Errorf("stopped %t: %v", stop, err)
		}
		mean := make(tensor.Vector, a.Len())
		a.Drain(mean, 0, 1, 0)
		if same := mean[0] == gradient[0] && mean[1] == gradient[1]; same != stop {
			t.Errorf("stopped %t: the sum is as it was: %t", stop, same)
		}
	}
}
