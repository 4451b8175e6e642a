package sums

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestWhoWasLeftOutTellsOthersSo: one that follows another which the sum was made without hears that it is over, though it has had
// a place, and does not wait for a sum that is not to be.
func TestWhoWasLeftOutTellsOthersSo(t *testing.T) {
	leader, member := newSolo(t), newSolo(t, "l")
	leader.Machine = New("l", Times{})
	leader.here()
	leader.View(0, []ID{"k", "l", "m"})
	call := Call{Name: "x", Vector: []float64{1}, Timeout: time.Second}
	leader.Call(0, call)
	leader.Receive(0, "k", wire.Sum{Kind: wire.SumFault, Name: "x", Op: codeOf(ErrOver)})
	leader.View(0, []ID{"l", "m"})
	leader.Outcomes()
	member.holds("l")
	member.now = 2 * time.Second
	member.Tick(member.now)
	for _, o := range member.Outcomes() {
		if o.To == "l" && o.Message != nil {
			leader.Receive(member.now, "m", *o.Message)
		}
	}
	for _, o := range leader.Outcomes() {
		if o.To == "m" && o.Message != nil {
			member.Receive(member.now, "l", *o.Message)
		}
	}
	out := member.Outcomes()
	if len(out) != 1 || out[0].Result == nil || !errors.Is(out[0].Result.Err, ErrOver) {
		t.Errorf("it hears %+v", out)
	}
}
