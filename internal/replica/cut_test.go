package replica_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestCutAtEveryByte cuts an exchange after every single byte of either direction of
// a lane, between two frames and within, with one lane and with two. No slice has been
// applied by P alone, as many as are applied by A alone are in doubt or fewer, and
// once P has asked, both have applied the same slices.
func TestCutAtEveryByte(t *testing.T) {
	for _, name := range slices.Concat(codecs, latticed) {
		for lanes := 1; lanes <= 2; lanes++ {
			t.Run(fmt.Sprintf("%s over %d", name, lanes), func(t *testing.T) {
				toP, toA := cutAll(t, name, lanes, nil)
				t.Logf("cut after each of %d and %d bytes", toP, toA)
			})
		}
	}
}

// TestCutWithoutLedger shows that the test above would see a slice that one side alone
// has applied, and that what is lost is no more than the ledger says.
func TestCutWithoutLedger(t *testing.T) {
	worst := 0.0
	cutAll(t, "raw", 1, func(off float64, lost replica.Lost) {
		worst = max(worst, off)
		if off > lost.Bound+1e-6 {
			t.Errorf("the sum is off by %g, at most %g", off, lost.Bound)
		}
	})
	if worst < 1e-3 {
		t.Errorf("without a ledger the sum is off by %g at most: the test would not see it", worst)
	}
}

// cutAll carries out one exchange for each byte of its first lane's two directions,
// which it cuts there. Judge is told how far the sum is off, if it is not to be kept.
func cutAll(t *testing.T, name string, lanes int, judge func(off float64, lost replica.Lost)) (toP, toA int) {
	t.Helper()
	for cut := 0; ; cut++ {
		c := newCutExchange(t, name, lanes)
		c.limitP = cut
		if c.run(judge); c.limitP > 0 {
			toP = cut - c.limitP
			break
		}
	}
	for cut := 0; ; cut++ {
		c := newCutExchange(t, name, lanes)
		c.limitA = cut
		if c.run(judge); c.limitA > 0 {
			toA = cut - c.limitA
			break
		}
	}
	return toP, toA
}

// cutExchange is an exchange whose first lane breaks.
type cutExchange struct {
	*exchange
	limitP, limitA int // bytes that still get through to P and to A on the first lane
	before         []float64
	t              *testing.T
}

func newCutExchange(t *testing.T, name string, lanes int) *cutExchange {
	a, p := randomSides(t, 7)
	const all = 1 << 20
	c := &cutExchange{t: t, limitP: all, limitA: all, before: sum(contents(a.Replica), contents(p.Replica))}
	c.exchange = begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Window: 3, Lanes: lanes, Exchange: number})
	return c
}

// write sends a frame as far as the lane carries it.
func (c *cutExchange) write(l *lane, to *bytes.Buffer, frame []byte) {
	limit := &c.limitP
	if to == &l.toA {
		limit = &c.limitA
	}
	if l == c.lanes[0] {
		frame = frame[:min(len(frame), *limit)]
		*limit -= len(frame)
	}
	to.Write(frame)
}

// run lets the exchange go on until nothing moves any more, ends it and settles it.
func (c *cutExchange) run(judge func(off float64, lost replica.Lost)) {
	beforeA, beforeP := contents(c.a.Replica), contents(c.p.Replica)
	for moved := true; moved; {
		moved = false
		for i := range c.lanes {
			moved = c.send(i) || moved
			moved = c.answer(i) || moved
			moved = c.apply(i) || moved
		}
	}
	done := c.p.responder.Done()
	c.a.initiator.End(done)
	inDoubt := c.p.responder.End(0)
	if judge != nil { // as if there were no ledger
		c.p.ledger.Expire(replica.DefaultKeep)
	}
	onlyA, onlyP := c.differ(beforeA, beforeP)
	if onlyP > 0 || onlyA > inDoubt {
		c.t.Fatalf("%d slices applied by P alone, %d by A alone with %d in doubt", onlyP, onlyA, inDoubt)
	}
	applied, dropped, lost := settle(c.p, c.a)
	off := apart(sum(contents(c.a.Replica), contents(c.p.Replica)), c.before)
	if judge != nil {
		judge(off, c.p.ledger.Lost())
		return
	}
	if applied != onlyA || applied+dropped != inDoubt || lost != 0 || c.p.ledger.Lost() != (replica.Lost{}) {
		c.t.Fatalf("of %d slices in doubt, %d of them at A alone, %d applied, %d dropped, %d lost", inDoubt, onlyA, applied, dropped, lost)
	}
	if onlyA, onlyP = c.differ(beforeA, beforeP); onlyA+onlyP > 0 || off > 1e-6 {
		c.t.Fatalf("after the answer %d slices are applied by A alone, %d by P alone; the sum is off by %g", onlyA, onlyP, off)
	}
}

// differ counts the slices that only one of the two has changed.
func (c *cutExchange) differ(beforeA, beforeP []float32) (onlyA, onlyP int) {
	a, p := contents(c.a.Replica), contents(c.p.Replica)
	for _, r := range sharedRanges {
		byA := !sameBits(a[r[0]:r[1]], beforeA[r[0]:r[1]])
		byP := !sameBits(p[r[0]:r[1]], beforeP[r[0]:r[1]])
		if byA && !byP {
			onlyA++
		}
		if byP && !byA {
			onlyP++
		}
	}
	return onlyA, onlyP
}

func (c *cutExchange) send(i int) bool {
	l := c.lanes[i]
	frame, ok, err := l.a.Code(nil)
	if err == nil && !ok && l.a.Over() && !l.last {
		l.last, ok = true, true
		frame, err = l.a.Ack(nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if ok {
		c.write(l, &l.toP, frame)
	}
	return ok
}

// frame is the next frame that got through whole.
func (c *cutExchange) frame(from *bytes.Buffer, reader *wire.Reader) (h wire.Header, payload []byte, ok bool) {
	if from.Len() == 0 {
		return h, nil, false
	}
	h, payload, err := reader.Next()
	return h, payload, err == nil
}

func (c *cutExchange) answer(i int) bool {
	l := c.lanes[i]
	header, payload, ok := c.frame(&l.toP, l.atP)
	if !ok {
		return false
	}
	var reply []byte
	err := error(nil)
	if header.Type == wire.TypeAck {
		err = l.p.Ack(header)
	} else {
		reply, err = l.p.Code(header, payload)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(l, &l.toA, reply)
	return true
}

func (c *cutExchange) apply(i int) bool {
	l := c.lanes[i]
	header, payload, ok := c.frame(&l.toA, l.atA)
	if !ok {
		return false
	}
	if err := l.a.Diff(header, payload); err != nil {
		c.t.Fatal(err)
	}
	return true
}
