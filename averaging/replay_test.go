package averaging_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// TestAnExchangeIDIsNotUsedTwice: what a partner has proposed in one life is not served again, nor what is
// older, however late; in its next life numbers begin anew.
func TestAnExchangeIDIsNotUsedTwice(t *testing.T) {
	m := newPassive(t, averaging.Config{})
	now := time.Duration(0)
	for _, c := range []struct {
		incarnation uint64
		id          averaging.ExchangeID
		want        averaging.ActionKind
	}{
		{1, 2, averaging.Accept}, {1, 2, averaging.Refuse}, {1, 1, averaging.Refuse}, {1, 3, averaging.Accept},
		{2, 1, averaging.Accept}, {1, 4, averaging.Refuse}, {2, 2, averaging.Accept},
	} {
		event := averaging.Event{Kind: averaging.Proposed, Peer: "b", Exchange: c.id, Incarnation: c.incarnation, Inbound: true}
		got := averaging.Action{}
		for _, a := range m.Handle(now, event, nil) {
			if a.Kind == averaging.Accept || a.Kind == averaging.Refuse {
				got = a
			}
		}
		if got.Kind != c.want || c.want == averaging.Refuse && got.Reason != averaging.Busy {
			t.Errorf("exchange %d of life %d: %v, want %v", c.id, c.incarnation, got, c.want)
		}
		event.Kind = averaging.Finished
		m.Handle(now, event, nil)
		now += time.Minute
	}
}
