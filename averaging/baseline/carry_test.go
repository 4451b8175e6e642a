package baseline_test

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// tell gives a machine an event and carries out what it asks for.
func (n *node) tell(event collective.Event) {
	if n.frozen {
		n.held = append(n.held, event)
	}
	if !n.alive {
		return
	}
	w := n.world
	w.trace("%10s %s > %s", w.queue.Now(), n.id, event)
	n.print(event, nil)
	answers := 0
	for _, a := range n.machine.Decide(w.queue.Now(), event, nil) {
		w.trace("%10s %s     %s", w.queue.Now(), n.id, a)
		n.print(event, &a)
		if a.Kind == averaging.Accept || a.Kind == averaging.Refuse {
			answers++
			if a.Peer != event.Peer || a.Exchange != event.Exchange || !a.Inbound {
				w.t.Fatalf("%s answers another: %s", n.id, a)
			}
		}
		n.carryOut(a)
		if w.onAction != nil {
			w.onAction(n, a)
		}
		if !n.alive {
			return
		}
	}
	if asks := event.Kind == collective.Offered || event.Kind == averaging.Proposed; asks != (answers == 1) || answers > 1 {
		w.t.Fatalf("%s answers %s %d times", n.id, event, answers)
	}
}

// print shows what happens as transcripts do.
func (n *node) print(event collective.Event, a *collective.Action) {
	w := n.world
	switch {
	case w.show == nil:
	case a != nil && a.Kind == collective.Tell:
		w.show(n, fmt.Sprintf("  tell %s: %s", a.Peer, w.describe(a.Message)))
	case a != nil && a.Kind == averaging.SetTimer:
		w.show(n, fmt.Sprintf("  set timer %s after %s", a.Timer, a.After))
	case a != nil:
		w.show(n, "  "+a.String())
	case event.Kind == collective.Received:
		w.show(n, fmt.Sprintf("> %s told by %s: %s", w.queue.Now().Round(time.Millisecond), event.Peer, w.describe(event.Message)))
	case event.Kind == averaging.TimerFired:
		w.show(n, fmt.Sprintf("> %s timer %s", w.queue.Now().Round(time.Millisecond), event.Timer))
	default:
		w.show(n, fmt.Sprintf("> %s %s", w.queue.Now().Round(time.Millisecond), event))
	}
}

func (n *node) carryOut(a collective.Action) {
	w := n.world
	switch a.Kind {
	case averaging.Proceed:
		n.batch = a.Batch
		n.goOn()
	case averaging.Halt:
		if !n.waiting {
			w.t.Fatalf("%s halts a trainer that does not wait", n.id)
		}
		n.halted = a.Reason
	case averaging.Settled:
		if n.settled || !n.over {
			w.t.Fatalf("%s settles again, or too early", n.id)
		}
		n.settled = true
	case averaging.SetTimer:
		n.setTimer(a)
	case collective.Load:
		n.load(a)
	case collective.Clear:
		for i := range within(a.Transfer) {
			n.sum[i], n.weight[i] = 0, 0
		}
	case collective.Pool:
		n.pool()
	case collective.Update, collective.Adopt:
		n.update(a)
	case collective.Tell:
		n.speak(a)
	case collective.Send, averaging.Propose:
		n.send(a)
	case averaging.Accept, averaging.Refuse:
		n.answer(a)
	case averaging.Abort:
		n.abort(a)
	}
}

func (n *node) goOn() {
	if !n.waiting || n.halted != 0 {
		n.world.t.Fatalf("%s lets a trainer go on that does not wait", n.id)
	}
	n.waiting = false
	n.steps++
	n.world.progress++
	if n.world.onStep != nil {
		n.world.onStep(n)
	}
	if !n.over {
		n.train()
	}
}

func (n *node) setTimer(a collective.Action) {
	n.timers[a.Timer] = a
	n.world.queue.After(a.After, func() {
		if n.alive && n.timers[a.Timer] == a {
			n.timers[a.Timer] = collective.Action{}
			n.tell(collective.Event{Event: averaging.Event{Kind: averaging.TimerFired, Timer: a.Timer, Exchange: a.Exchange, Peer: a.Peer}})
		}
	})
}

func (n *node) load(a collective.Action) {
	if low, _ := boundsOf(a.Transfer); !n.waiting && low < n.ready {
		n.world.t.Fatalf("%s loads a gradient that is not there", n.id)
	}
	for _, x := range n.inbound {
		if x.accepted && x.t.Into == collective.Sum && x.t.Part == a.Transfer.Part && !a.Add {
			n.world.t.Fatalf("%s loads while %s may still change the sum", n.id, x.t)
		}
	}
	for i := range within(a.Transfer) {
		if !a.Add {
			n.sum[i], n.weight[i] = 0, 0
		}
		n.sum[i] += n.gradient[i] * n.samples
		n.weight[i] += n.samples
	}
}

// pool makes the sum of the parameters, while no exchange may change them.
func (n *node) pool() {
	for _, x := range n.inbound {
		if x.accepted && (x.exchange || x.t.Into == collective.Sum) {
			n.world.t.Fatalf("%s pools while an exchange of %s runs", n.id, x.from.id)
		}
	}
	for i := range n.x {
		n.sum[i], n.weight[i] = n.x[i], 1
	}
}

func (n *node) update(a collective.Action) {
	if n.updating[a.Transfer.Part] {
		n.world.t.Fatalf("%s updates part %d twice at once", n.id, a.Transfer.Part)
	}
	n.updating[a.Transfer.Part] = true
	sum, weight := n.sum, n.weight
	for i := range within(a.Transfer) {
		n.sum[i], n.weight[i] = 0, 0
	}
	if a.Forget {
		n.velocity = vector{}
	}
	n.world.queue.After(n.world.delay(), func() {
		if !n.alive && !n.frozen {
			return
		}
		for i := range within(a.Transfer) {
			switch {
			case weight[i] == 0:
			case a.Kind == collective.Adopt:
				n.x[i] = sum[i] / weight[i]
			default:
				divisor := weight[i]
				if a.Weight > 0 {
					divisor = a.Weight
				}
				n.velocity[i] = n.velocity[i]/2 + sum[i]/divisor
				n.x[i] -= n.velocity[i] * cmp.Or(a.Share, 1)
			}
		}
		n.updating[a.Transfer.Part] = false
		n.updates++
		n.tell(collective.Event{Event: averaging.Event{Kind: collective.Updated}, Transfer: a.Transfer})
	})
}

func (n *node) speak(a collective.Action) {
	w := n.world
	to := w.peers[a.Peer]
	if to == nil || to == n {
		w.t.Fatalf("%s speaks to %q", n.id, a.Peer)
	}
	if w.rng.Float64() < w.loss || w.drops != nil && w.drops(n, a) {
		return
	}
	w.queue.After(w.delay(), func() {
		to.tell(collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: n.id}, Message: a.Message})
	})
}

func (n *node) send(a collective.Action) {
	w := n.world
	if a.Exchange != n.lastID+1 && n.lastID > 1<<40 {
		w.t.Fatalf("%s sends exchange %d after %d", n.id, a.Exchange, n.lastID)
	}
	n.lastID = a.Exchange
	x := &transfer{from: n, to: w.peers[a.Peer], id: a.Exchange, t: a.Transfer, exchange: a.Kind == averaging.Propose}
	if x.to == nil || x.to == n {
		w.t.Fatalf("%s sends to %q", n.id, a.Peer)
	}
	n.outbound[x.id] = x
	w.queue.After(w.delay(), func() {
		switch {
		case x.dead, x.to.frozen:
		case !x.to.alive || w.rng.Float64() < w.breaks/2:
			x.end(false)
		default:
			x.to.inbound[x.key()] = x
			event := collective.Event{Event: averaging.Event{Kind: collective.Offered, Peer: n.id, Exchange: x.id, Inbound: true}, Transfer: x.t}
			if x.exchange {
				event.Kind = averaging.Proposed
			}
			x.to.tell(event)
		}
	})
}

func (n *node) answer(a collective.Action) {
	w := n.world
	x := n.inbound[(&transfer{from: w.peers[a.Peer], id: a.Exchange}).key()]
	if a.Kind == averaging.Refuse {
		delete(n.inbound, x.key())
		w.queue.After(w.delay(), func() {
			if x.from.outbound[x.id] == x {
				delete(x.from.outbound, x.id)
				x.from.tell(collective.Event{Event: averaging.Event{Kind: averaging.Refused, Peer: n.id, Exchange: x.id, Reason: a.Reason}})
			}
		})
		return
	}
	x.accepted = true
	w.queue.After(w.delay(), func() {
		if x.from.outbound[x.id] == x {
			x.from.tell(collective.Event{Event: averaging.Event{Kind: averaging.Accepted, Peer: n.id, Exchange: x.id}})
		}
		x.carry(0)
	})
}

// boundsOf are the first slice of a part, and the one behind its last; within goes through it.
func boundsOf(t collective.Transfer) (low, high int) {
	return t.Part * width / max(t.Parts, 1), (t.Part + 1) * width / max(t.Parts, 1)
}

func within(t collective.Transfer) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, high := boundsOf(t); i < high && yield(i); i++ {
		}
	}
}

// carry moves the transfer's slices one after the other.
func (x *transfer) carry(slice int) {
	w := x.from.world
	low, high := boundsOf(x.t)
	switch {
	case !x.dead && !x.stopped && (x.from.frozen || x.to.frozen):
	case x.dead || x.stopped || !x.from.alive || !x.to.alive || w.rng.Float64() < w.breaks/float64(width):
		x.end(false)
	case x.exchange:
		w.queue.After(w.delay(), func() { x.end(true) })
	case low+slice >= high:
		x.end(true)
	default:
		x.slice(low + slice)
		takes := w.delay() / width
		if x.t.From == collective.Parameters {
			takes += w.copying
		}
		w.queue.After(takes, func() { x.carry(slice + 1) })
	}
}

func (x *transfer) slice(i int) {
	value, weight := x.from.sum[i], x.from.weight[i]
	switch x.t.From {
	case collective.Gradient:
		if !x.from.waiting && i < x.from.told {
			x.from.world.t.Fatalf("%s sends a gradient that is not there", x.from.id)
		}
		value, weight = x.from.gradient[i]*x.from.samples, x.from.samples
	case collective.Parameters:
		x.to.x[i] = x.from.x[i]
		return
	}
	if x.t.Add {
		value, weight = value+x.to.sum[i], weight+x.to.weight[i]
	}
	x.to.sum[i], x.to.weight[i] = value, weight
}

// end reports the end at both sides, each after a delay of its own.
func (x *transfer) end(well bool) {
	kind := averaging.Failed
	if well {
		kind = averaging.Finished
	}
	w := x.from.world
	if well && x.exchange {
		x.from.met++
		x.to.met++
		for i := range x.from.x {
			mean := (x.from.x[i] + x.to.x[i]) / 2
			x.from.x[i], x.to.x[i] = mean, mean
		}
	}
	if x.from.outbound[x.id] == x {
		delete(x.from.outbound, x.id)
		w.queue.After(w.delay(), func() {
			if !x.dead {
				x.from.tell(collective.Event{Event: averaging.Event{Kind: kind, Peer: x.to.id, Exchange: x.id}})
			}
		})
	}
	if x.to.inbound[x.key()] == x {
		w.queue.After(w.delay()/2, func() {
			delete(x.to.inbound, x.key())
			x.to.tell(collective.Event{Event: averaging.Event{Kind: kind, Peer: x.from.id, Exchange: x.id, Inbound: true}})
		})
	}
}

func (n *node) abort(a collective.Action) {
	w := n.world
	if a.Inbound {
		x := n.inbound[(&transfer{from: w.peers[a.Peer], id: a.Exchange}).key()]
		if x != nil {
			x.stopped = true
			w.queue.After(w.delay(), func() { x.end(false) })
		}
		return
	}
	if x := n.outbound[a.Exchange]; x != nil {
		x.dead = true
		delete(n.outbound, a.Exchange)
		w.queue.After(w.delay(), func() { x.end(false) })
	}
}

// names are those of so many peers.
func names(n int) (list []topology.PeerID) {
	for i := range n {
		list = append(list, topology.PeerID(rune('a'+i%26))+topology.PeerID(rune('a'+i/26)))
	}
	return list
}

// steady is a trainer that is always equally fast.
func steady(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
