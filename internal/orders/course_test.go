package orders

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

// drawOrders are messages of an operator, some with one number, with up to 4
// of a planned kind.
func drawOrders(t *rapid.T) []orderlog.Order {
	var orders []orderlog.Order
	count := make(map[wire.ControlKind]int)
	for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
		c := control.Command{
			Kind: control.Kind(rapid.IntRange(int(control.Announce), int(control.SetWork)).Draw(t, "kind")), Sequence: rapid.Uint64Range(1, 6).Draw(t, "sequence"),
			Why: fmt.Sprint(i), Schedule: rate.Schedule{Rate: float64(i + 1)}, Every: i, Steps: uint64(i),
		}
		if c.Kind >= control.SetSchedule {
			c.At = rapid.Uint64Range(0, 5).Draw(t, "at")
		}
		m, err := c.Message()
		if err != nil {
			t.Fatal(err)
		}
		kind := m.Kind
		m.Run, m.Author = "r", "a"
		if count[kind]++; kind.Planned() && count[kind] > 4 {
			continue
		}
		orders = append(orders, orderlog.Order{Control: m, Bytes: m.Append(nil)})
	}
	return orders
}

func hear(orders []orderlog.Order) *orderlog.Orders {
	var s orderlog.Orders
	for _, m := range orders {
		if s.Wants(m) {
			s.Take(m)
		}
	}
	return &s
}

// workOf is the body of a message that sets the work.
func workOf(steps uint64) []byte {
	m, _ := control.Command{Kind: control.SetWork, Steps: steps}.Message()
	return m.Body
}

// TestAllFollowTheScheduleOfWhoLeads: of an update that a leader says is made at a share of
// the work, every peer finds the schedule that holds at the leader's step, wherever it
// takes the flock to be itself; and also where the work changes, if it is as far.
func TestAllFollowTheScheduleOfWhoLeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.Bool().Draw(t, "the work changes")
		var orders []orderlog.Order
		for _, m := range drawOrders(t) {
			if m.At *= 100; m.Kind == wire.ControlWork {
				if !changes {
					continue
				}
				m.Body = workOf(rapid.Uint64Range(1, 1000).Draw(t, "work"))
			}
			m.Bytes = m.Append(nil)
			orders = append(orders, m)
		}
		s, plain := hear(orders), Course{StepsPerPeer: 199}
		const peers = 4
		at := rapid.Uint64Range(1, 796).Draw(t, "the leader's step")
		led := courseAt(at, s, plain)
		target := led.Target(peers)
		if at > target {
			t.Skip("the run is over")
		}
		own := at
		if !changes {
			own = rapid.Uint64Range(0, 900).Draw(t, "the peer's step")
		}
		got := courseReached(float64(at)/float64(target), own, peers, s, plain)
		if !reflect.DeepEqual(got.Schedule, led.Schedule) {
			t.Fatalf("at step %d of %d, which it takes to be %d, a peer has %+v where its leader has %+v", at, target, own, got.Schedule, led.Schedule)
		}
	})
}

// What holds at a step is what the last message says of those that are to hold by then,
// unless a later one replaced it: the oracle looks at every message.
func TestPlanFollowsTheLatestWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		orders := drawOrders(t)
		total := rapid.Uint64Range(0, 6).Draw(t, "total")
		plain := Course{Steps: 99, Pace: averaging.Pace{Every: 3}}
		var last *orderlog.Order
		for i, m := range orders {
			if m.Kind == wire.ControlWork && m.At <= total && (last == nil || m.Later(*last)) {
				last = &orders[i]
			}
		}
		want := uint64(99)
		if last != nil {
			said, err := control.CommandOf(last.Control)
			if err != nil {
				t.Fatal(err)
			}
			want = said.Steps
		}
		f := courseAt(total, hear(orders), plain)
		if f.Steps != want {
			t.Fatalf("at step %d the work is %d, want %d", total, f.Steps, want)
		}
		if f.next <= total {
			t.Fatalf("at step %d the next change is at %d", total, f.next)
		}
	})
}

// TestAnOrderIsObeyedOnce, whichever goroutine is the faster of two that have heard of it.
func TestAnOrderIsObeyedOnce(t *testing.T) {
	stop := control.Command{Kind: control.Stop, Sequence: 1}
	m, err := stop.Message()
	if err != nil {
		t.Fatal(err)
	}
	var w will
	order := orderlog.Order{Control: m, Bytes: m.Append(nil)}
	if !w.obey(order, stop, 0) || w.obey(order, stop, 0) {
		t.Error("an order is obeyed twice, or not at all")
	}
}

// TestAScheduleLeavesTheFloor with which the run began.
func TestAScheduleLeavesTheFloor(t *testing.T) {
	m, err := control.Command{Kind: control.SetSchedule, Schedule: rate.Schedule{Rate: 0.5}}.Message()
	if err != nil {
		t.Fatal(err)
	}
	c := Course{Schedule: rate.Schedule{Rate: 0.1, Floor: 0.2}}.after(orderlog.Order{Control: m})
	if c.Schedule.Rate != 0.5 || c.Schedule.Floor != 0.2 {
		t.Errorf("the schedule is %+v", c.Schedule)
	}
}

// TestMoreWorkThanCanBeCounted: so much for each of several peers is as good as no end, not an end at once.
func TestMoreWorkThanCanBeCounted(t *testing.T) {
	c := Course{StepsPerPeer: 1<<63 + 1}
	if all := c.Target(2); all != math.MaxUint64 {
		t.Errorf("%d steps for each of two are %d", c.StepsPerPeer, all)
	}
	if c.Steps = 7; c.Target(2) != 7 {
		t.Errorf("%d steps", c.Target(2))
	}
}
