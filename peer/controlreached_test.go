package peer

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestAllFollowTheScheduleOfWhoLeads: of an update that a leader says is made at a share of
// the work, every peer finds the schedule that holds at the leader's step, wherever it
// takes the flock to be itself; and also where the work changes, if it is as far.
func TestAllFollowTheScheduleOfWhoLeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.Bool().Draw(t, "the work changes")
		var orders []ordered
		for _, m := range drawOrders(t) {
			if m.At *= 100; m.Kind == wire.ControlWork {
				if !changes {
					continue
				}
				m.Body = wire.Work{Steps: rapid.Uint64Range(1, 1000).Draw(t, "work")}.Append(nil)
			}
			m.bytes = m.Append(nil)
			orders = append(orders, m)
		}
		s, plain := hear(orders), inForce{work: Work{StepsPerPeer: 199}, next: math.MaxUint64}
		const peers = 4
		at := rapid.Uint64Range(1, 796).Draw(t, "the leader's step")
		led := s.plan(at, plain)
		target := led.work.target(peers)
		if at > target {
			t.Skip("the run is over")
		}
		own := at
		if !changes {
			own = rapid.Uint64Range(0, 900).Draw(t, "the peer's step")
		}
		got := s.reached(float64(at)/float64(target), own, peers, plain)
		if !reflect.DeepEqual(got.schedule, led.schedule) {
			t.Fatalf("at step %d of %d, which it takes to be %d, a peer has %+v where its leader has %+v", at, target, own, got.schedule, led.schedule)
		}
	})
}
