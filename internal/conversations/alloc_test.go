package conversations

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// allocations are how often each function here, and of the tasks that it starts, has allocated so
// far, with what it calls in other packages but for the transport.
func allocations() map[string]int64 {
	runtime.GC()
	runtime.GC() // a profile is complete after the second
	records := make([]runtime.MemProfileRecord, 1<<14)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		panic("too many records")
	}
	byFunction := make(map[string]int64)
	for _, r := range records[:n] {
		if name := blamed(r.Stack()); name != "" {
			byFunction[name] += r.AllocObjects
		}
	}
	return byFunction
}

// blamed is the innermost function here on a stack, unless one of the transport or of the tests is
// farther in.
func blamed(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		name := frame.Function
		switch {
		case strings.Contains(name, "/peer/memnet."), strings.HasSuffix(frame.File, "_test.go"), !more:
			return ""
		case strings.Contains(name, "/internal/conversations."), strings.Contains(name, "/internal/tasks."):
			return name[strings.LastIndex(name, "/")+1:]
		}
	}
}

// allocationsOf are how often each function allocates for one of what do does, for which a second
// is enough.
func allocationsOf(do func(i int)) map[string]float64 {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1 // each allocation
	const warmUp, times = 30, 300
	for i := range warmUp {
		do(i)
		pass(time.Second)
	}
	before, each := allocations(), make(map[string]float64)
	for i := range times {
		do(warmUp + i)
		pass(time.Second)
	}
	for name, n := range allocations() {
		each[name] = float64(n-before[name]) / times
	}
	return each
}

// stray is what a collection, which empties pools now and then, adds to an allocation.
const stray = 0.7

// accounted are the allocations of an exchange at both sides together, by the function that makes
// them. The reasons are in docs/design/008.
var accounted = map[string]float64{
	"conversations.(*outbound).open":        4, // the context that bounds the opening of the stream
	"conversations.newOngoing":              2, // the entry of the exchange, at each side
	"conversations.(*outbound).Propose":     1, // a goroutine of its own
	"tasks.(*Group).Spawn":                  1, // the same
	"conversations.(*Ongoing).exchange":     1, // a goroutine that writes
	"conversations.(*conversation).receive": 1, // the name of the run in a proposal
}

// TestExchangeAllocations: an exchange of 16 slices allocates nothing, beyond what the transport
// does, but what is accounted for.
func TestExchangeAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector has pools forget at random, which are allocations that nobody else makes")
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		for name, each := range allocationsOf(func(i int) { r.a.propose(r.b, averaging.ExchangeID(i+1)) }) {
			if each > accounted[name]+stray {
				t.Errorf("%s allocates %.2f times an exchange, accounted for are %v", name, each, accounted[name])
			}
		}
		if n := r.a.Counters.Counts().Failed; len(n) > 0 {
			t.Errorf("failed: %v", n)
		}
	})
}

// TestTransferAllocations: what a transfer allocates does not depend on how many slices it moves.
func TestTransferAllocations(t *testing.T) {
	if underRace {
		t.Skip("see TestExchangeAllocations")
	}
	var each [2]float64
	for i, sliceLen := range []int{values, sliceLen} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{sliceLen: sliceLen, traits: collective.Traits{Gradients: true}})
			if err := r.a.Host.Replica.PutRange(make([]float32, values), 0, values, 1); err != nil {
				t.Fatal(err)
			}
			for name, n := range allocationsOf(func(i int) { r.gives(averaging.ExchangeID(i + 1)) }) {
				if each[i] += n; n > 5 {
					t.Errorf("%s allocates %.2f times a transfer", name, n)
				}
			}
			if n := r.a.Counters.Counts().Failed; len(n) > 0 {
				t.Errorf("failed: %v", n)
			}
		})
	}
	if few, many := each[0], each[1]; few < 1 || many > few+2*stray { // one a slice would be 15 more
		t.Errorf("a transfer allocates %.1f times with slices of %d values, %.1f times with those of %d", few, values, many, sliceLen)
	}
}
