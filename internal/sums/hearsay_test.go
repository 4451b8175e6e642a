package sums

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestHearsay: one that has only heard that a gathering is over tells that to a coordinator that has restarted: else the name would be
// used again once all that were there are gone.
func TestHearsay(t *testing.T) {
	m := New("b", Times{})
	m.View(0, []ID{"a", "b"})
	m.Call(0, Call{Name: "x", Op: Gather})
	m.Outcomes()
	m.Receive(0, "a", wire.Sum{Kind: wire.SumFault, Name: "x", Op: codeOf(ErrOver)})
	m.Outcomes()
	m.Receive(0, "a", wire.Sum{Kind: wire.SumAsk, Name: "x", Question: 7})
	out := m.Outcomes()
	if len(out) != 1 || out[0].Message == nil || out[0].Message.Kind != wire.SumDone || out[0].Message.Attempt != hearsay {
		t.Fatalf("%+v", out)
	}
}
