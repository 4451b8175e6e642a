package peer_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

var errData = errors.New("no data")

// TestReady: peers that tell of the last values of a gradient before they have the others learn as those do that tell
// of all at once, and one whose gradient fails after it has told of a part keeps nobody waiting.
func TestReady(t *testing.T) {
	t.Parallel()
	for _, r := range rivals() {
		synctest.Test(t, func(t *testing.T) {
			flock := r.flock(t, nil)
			var calls atomic.Int32
			began := time.Now()
			said := steppedTogether(t, flock, func(i int, x, grad tensor.Vector) (peer.Result, error) {
				time.Sleep(rivalStep / 2)
				result, err := towards(i, x, grad)
				whole := slices.Clone(grad)
				for from := len(grad) - 1; from >= 0; from -= len(grad)/3 + 1 {
					clear(grad[:from])
					flock.Peers[i].Ready(from, result.Samples)
					copy(grad[:from], whole)
				}
				time.Sleep(rivalStep / 2)
				if i == 1 && calls.Add(1)%8 == 0 {
					return peer.Result{}, errData
				}
				return result, err
			})
			for i, err := range said {
				if err != nil && !errors.Is(err, errData) {
					t.Errorf("%s: peer %d: %v", r.name, i, err)
				}
			}
			if took := time.Since(began); took > rivalSteps*4*rivalStep {
				t.Errorf("%s: %s", r.name, took)
			}
			leaveTogether(flock)
		})
	}
}
