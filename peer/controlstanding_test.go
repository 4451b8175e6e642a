package peer

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// drawOrders are messages of an operator, some with one number, with up to maxPlanned
// of a planned kind.
func drawOrders(t *rapid.T) []ordered {
	var orders []ordered
	count := make(map[wire.ControlKind]int)
	for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
		kind := wire.ControlKind(rapid.IntRange(1, operatorKinds).Draw(t, "kind"))
		m := wire.Control{Kind: kind, Sequence: rapid.Uint64Range(1, 6).Draw(t, "sequence"), Run: "r", Author: "a"}
		switch {
		case kind == wire.ControlAnnounce:
			m.Body = wire.Announce{}.Append(nil)
		case kind == wire.ControlHold:
			m.Body = wire.Hold{Paused: i%2 == 0}.Append(nil)
		case kind == wire.ControlStop:
			m.Body = wire.Stop{Why: fmt.Sprint(i)}.Append(nil)
		default:
			m.At = rapid.Uint64Range(0, 5).Draw(t, "at")
			m.Body = map[wire.ControlKind][]byte{
				wire.ControlRate: wire.Rate{Full: float64(i + 1)}.Append(nil),
				wire.ControlPace: wire.Pace{Every: uint32(i)}.Append(nil),
				wire.ControlWork: wire.Work{Steps: uint64(i)}.Append(nil),
			}[kind]
		}
		if count[kind]++; kind.Planned() && count[kind] > maxPlanned {
			continue
		}
		orders = append(orders, ordered{Control: m, bytes: m.Append(nil)})
	}
	return orders
}

func hear(orders []ordered) *standing {
	var s standing
	for _, m := range orders {
		if s.wants(m) {
			s.take(m)
		}
	}
	return &s
}

// Who has heard the same, in whatever order and however often, holds the same; and
// nothing that is held is wanted again.
func TestStandingDependsOnNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		orders := drawOrders(t)
		other := rapid.Permutation(append(slices.Clone(orders), orders...)).Draw(t, "order")
		a, b := hear(orders), hear(other)
		if !slices.EqualFunc(a.all(), b.all(), bytes.Equal) {
			t.Fatalf("in one order %q, in another %q", a.all(), b.all())
		}
		for _, m := range orders {
			if a.wants(m) {
				t.Fatalf("%+v is wanted twice", m)
			}
		}
	})
}

// What holds at a step is what the last message says of those that are to hold by then,
// unless a later one replaced it: the oracle looks at every message.
func TestPlanFollowsTheLatestWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		orders := drawOrders(t)
		total := rapid.Uint64Range(0, 6).Draw(t, "total")
		plain := inForce{work: Work{Steps: 99}, next: math.MaxUint64, pace: averaging.Pace{Every: 3}}
		var last *ordered
		for i, m := range orders {
			if m.Kind == wire.ControlWork && m.At <= total && (last == nil || m.later(*last)) {
				last = &orders[i]
			}
		}
		want := uint64(99)
		if last != nil {
			var w wire.Work
			if err := w.Decode(last.Body); err != nil {
				t.Fatal(err)
			}
			want = w.Steps
		}
		f := hear(orders).plan(total, plain)
		if f.work.Steps != want {
			t.Fatalf("at step %d the work is %d, want %d", total, f.work.Steps, want)
		}
		if f.next <= total {
			t.Fatalf("at step %d the next change is at %d", total, f.next)
		}
	})
}

// However many messages an operator sends, the newest few of each kind are kept.
func TestStandingIsBounded(t *testing.T) {
	var s standing
	for i := range 1000 {
		for kind := wire.ControlRate; kind <= wire.ControlWork; kind++ {
			m := wire.Control{Kind: kind, Sequence: uint64(i), At: uint64(i), Run: "r", Author: "a"}
			if o := (ordered{Control: m, bytes: m.Append(nil)}); s.wants(o) {
				s.take(o)
			}
		}
	}
	if n := len(s.all()); n != 3*maxPlanned {
		t.Errorf("%d messages are kept", n)
	}
	old := ordered{Control: wire.Control{Kind: wire.ControlRate, Sequence: 5}}
	if s.wants(old) {
		t.Error("an old message is wanted though there is no room for it")
	}
}
