package replica_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestAnswerWhileApplying: P asks in the very moment in which A, whose stream still
// delivers, applies. Whichever comes first, both have applied the same in the end.
func TestAnswerWhileApplying(t *testing.T) {
	const rounds = 300
	applied := map[int]int{}
	a, p := randomSides(t, 1)
	before := sum(contents(a.Replica), contents(p.Replica))
	for n := range uint64(rounds) {
		a.Add(smallStepUp(a.Len()))
		p.Add(smallStepDown(p.Len()))
		x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Exchange: n, Window: 6, Lanes: 2})
		for _, l := range x.lanes {
			for l.send() && l.answer() {
			}
		}
		p.responder.End(0)
		var both sync.WaitGroup
		for _, l := range x.lanes {
			both.Go(func() { applyAll(t, l) })
		}
		both.Go(func() {
			n, _, _ := settle(p, a)
			applied[n]++
		})
		both.Wait()
		if got := a.initiator.Applied(); got > sharedSlices {
			t.Fatalf("%d slices applied", got)
		}
		a.initiator.End(false)
	}
	if off := apart(sum(contents(a.Replica), contents(p.Replica)), before); off > 1e-4 {
		t.Errorf("the sum is off by %g", off)
	}
	t.Logf("exchanges by the number of slices that were found applied: %v", applied)
}

// applyAll applies what is on its way until P has been told.
func applyAll(t *testing.T, l *lane) {
	reader := wire.NewReader(&l.toA, 0)
	for l.toA.Len() > 0 {
		header, payload, err := reader.Next()
		if err == nil {
			err = l.a.Diff(header, payload)
		}
		if errors.Is(err, replica.ErrSettled) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}
