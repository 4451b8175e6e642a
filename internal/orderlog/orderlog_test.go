package orderlog

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// drawOrders are messages of an operator, some with one number, with up to maxPlanned
// of a planned kind.
func drawOrders(t *rapid.T) []Order {
	var orders []Order
	count := make(map[wire.ControlKind]int)
	for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
		kind := wire.ControlKind(rapid.IntRange(1, kinds).Draw(t, "kind"))
		m := wire.Control{Kind: kind, Sequence: rapid.Uint64Range(1, 6).Draw(t, "sequence"), Run: "r", Author: "a"}
		m.Body = []byte{byte(i)}
		if kind.Planned() {
			m.At = rapid.Uint64Range(0, 5).Draw(t, "at")
		}
		if count[kind]++; kind.Planned() && count[kind] > maxPlanned {
			continue
		}
		orders = append(orders, Order{Control: m, Bytes: m.Append(nil)})
	}
	return orders
}

func hear(orders []Order) *Orders {
	var s Orders
	for _, m := range orders {
		if s.Wants(m) {
			s.Take(m)
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
		if !slices.EqualFunc(a.All(), b.All(), bytes.Equal) {
			t.Fatalf("in one order %q, in another %q", a.All(), b.All())
		}
		for _, m := range orders {
			if a.Wants(m) {
				t.Fatalf("%+v is wanted twice", m)
			}
		}
	})
}

// However many messages an operator sends, the newest few of each kind are kept.
func TestStandingIsBounded(t *testing.T) {
	var s Orders
	for i := range 1000 {
		for kind := wire.ControlRate; kind <= wire.ControlWork; kind++ {
			m := wire.Control{Kind: kind, Sequence: uint64(i), At: uint64(i), Run: "r", Author: "a"}
			if o := (Order{Control: m, Bytes: m.Append(nil)}); s.Wants(o) {
				s.Take(o)
			}
		}
	}
	if n := len(s.All()); n != 3*maxPlanned {
		t.Errorf("%d messages are kept", n)
	}
	old := Order{Control: wire.Control{Kind: wire.ControlRate, Sequence: 5}}
	if s.Wants(old) {
		t.Error("an old message is wanted though there is no room for it")
	}
}
