package peer_test

import (
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// eager is a machine whose active side begins the next exchange, of so many, as soon
// as one has ended.
type eager struct {
	averaging.Machine
	left atomic.Int64
	done chan struct{}
}

func (m *eager) build(c averaging.Config) (averaging.Machine, error) {
	inner, err := averaging.NewADPSGD(c)
	m.Machine = inner
	return m, err
}

// Handle implements averaging.Machine.
func (m *eager) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	actions = m.Machine.Handle(now, event, actions)
	over := event.Kind == averaging.Finished || event.Kind == averaging.Refused || event.Kind == averaging.Failed
	if !over || event.Inbound {
		return actions
	}
	if event.Kind == averaging.Finished && m.left.Add(-1) == 0 {
		m.done <- struct{}{}
	}
	if m.left.Load() > 0 {
		had := len(actions)
		actions = m.Machine.Handle(now, averaging.Event{Kind: averaging.StepDone}, actions)
		kept := slices.DeleteFunc(actions[had:], func(a averaging.Action) bool { return a.Kind == averaging.Proceed })
		actions = actions[:had+len(kept)]
	}
	return actions
}

// allocations are how often each function of package peer has allocated so far, what it
// calls in other packages included, but for the transport.
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

// blamed is the function of a peer that is the innermost on a stack, unless one
// of the transport or of the tests is farther in.
func blamed(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		name := frame.Function
		switch {
		case strings.Contains(name, "/peer/memnet."), strings.Contains(name, "/peer_test."):
			return ""
		case strings.Contains(name, "murmuration/peer."), strings.Contains(name, "murmuration/internal/conversations."), strings.Contains(name, "murmuration/internal/tasks."):
			return name[strings.LastIndex(name, "/")+1:]
		case !more:
			return ""
		}
	}
}

// startEager starts two peers, of which the second begins exchanges when it is told to.
func startEager(t *testing.T) (active *peer.Peer, machine *eager) {
	network := memnet.New(memnet.Config{})
	for i, name := range []string{"0", "1"} {
		machine = &eager{done: make(chan struct{}, 1)}
		config := peer.Config{
			Run:      "digits",
			Params:   newModel(),
			Network:  inMemory(t, network, name, "digits"),
			Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, SliceLen: 64, Machine: machine.build}},
		}
		if i > 0 {
			config.Join, config.Network.Reach = []string{"mem:0"}, peer.Unreachable
		}
		active = start(t, config)
	}
	for active.Stats().Role != "active" {
		time.Sleep(time.Millisecond)
	}
	return active, machine
}

// accounted are the allocations of an exchange at both sides together, by the function
// of a peer that makes them. The reasons are in docs/design/008.
var accounted = map[string]float64{
	"conversations.(*outbound).open":        4, // the context that bounds the opening of the stream
	"conversations.newOngoing":              2, // the entry of the exchange, at each side
	"conversations.(*outbound).Propose":     1, // a goroutine of its own
	"tasks.(*Group).Spawn":                  1, // the same
	"conversations.(*Ongoing).exchange":     1, // a goroutine that writes
	"conversations.(*conversation).receive": 1, // the name of the run in a proposal
}

// TestExchangeAllocations: an exchange of 33 slices allocates nothing, beyond what the
// transport does, but what is accounted for.
func TestExchangeAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector has pools forget at random, which are allocations that nobody else makes")
	}
	const warmUp, exchanges = 50, 500
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1 // each allocation
	p, machine := startEager(t)
	run := func(n int64) {
		machine.left.Store(n)
		if err := step(t, p, idle); err != nil {
			t.Fatal(err)
		}
		<-machine.done
	}
	run(warmUp)
	before := allocations()
	run(exchanges)
	const stray = 0.7 // a collection empties pools now and then
	for name, n := range allocations() {
		if each := float64(n-before[name]) / exchanges; each > accounted[name]+stray {
			t.Errorf("%s allocates %.2f times an exchange, accounted for are %v", name, each, accounted[name])
		}
	}
}
