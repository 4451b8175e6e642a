package stages

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Config is a member's place.
type Config struct {
	// Stage is the stage that the member holds, from 0, of Stages.
	Stage, Stages int
	// Held is how many micro-batches may be on their way through the member at once, each with memory of its own. Default:
	// twice the stages from this one on, and one: with equal members stages are then busy for 0.85 of the time and more.
	Held int
	// Batch is how many micro-batches make a step. Default: 8, at least Held.
	Batch int
}

// maxQueue bounds the micro-batches that wait to be computed forward.
const maxQueue = 2

// state is how far a micro-batch has come.
type state uint8

const (
	queued    state = iota // waits to be computed forward
	computing              // forward or back
	ready                  // waits for a member of the next stage
	away                   // with a member of the next stage
	returned               // waits to be computed back
)

// item is a micro-batch at a Holder.
type item struct {
	state   state
	from    topology.PeerID // who waits for it
	version uint64          // of the parameters of its forward pass
	back    bool            // it has been, or is, on its way back
}

// Holder is the schedule of a member that holds a stage. One goroutine at a time uses it.
type Holder struct {
	config  Config
	next    Router
	items   map[ID]*item
	order   []ID // as they came
	counts  Counts
	version uint64
	added   int // gradients since the last step
	busy    bool
	began   time.Duration
	each    mean // forward and back
	forward mean
	trip    mean // until a micro-batch is back from the next stage
}

// NewHolder makes the schedule of a member.
func NewHolder(c Config) (*Holder, error) {
	if c.Stages < 1 || c.Stage < 0 || c.Stage >= c.Stages || c.Held < 0 || c.Batch < 0 {
		return nil, fmt.Errorf("stages: stage %d of %d, %d held, batches of %d: want a stage from 0 below their number", c.Stage, c.Stages, c.Held, c.Batch)
	}
	if c.Held == 0 {
		c.Held = 2*(c.Stages-c.Stage) + 1
	}
	if c.Batch == 0 {
		c.Batch = max(8, c.Held)
	}
	return &Holder{config: c, items: map[ID]*item{}}, nil
}

// Counts tell what became of the micro-batches that came.
func (h *Holder) Counts() Counts { return h.counts }

// Load is what the member tells of itself.
func (h *Holder) Load() Load {
	l := Load{Each: time.Duration(h.each)}
	for _, i := range h.items {
		if i.state == queued || i.state == computing && !i.back {
			l.Waiting++
		}
	}
	return l
}

func (h *Holder) last() bool { return h.config.Stage == h.config.Stages-1 }

// held is how many micro-batches have memory here; stale how many of them were computed with parameters of before.
func (h *Holder) held() (held, stale int) {
	for _, i := range h.items {
		if i.state != queued {
			held++
			if i.version < h.version {
				stale++
			}
		}
	}
	return held, stale
}

// Members says who holds the next stage now, and who may send: a member of the stage before, or a source, that is not
// among them is gone.
func (h *Holder) Members(now time.Duration, next []topology.PeerID, senders func(topology.PeerID) bool) (do []Action) {
	for _, id := range h.next.Set(next) {
		do = h.again(id, do)
	}
	for _, id := range append([]ID(nil), h.order...) {
		if i := h.items[id]; !senders(i.from) && i.state != computing {
			do = h.lose(id, do)
		} else if !senders(i.from) {
			i.from = "" // its end is waited for
		}
	}
	return h.goOn(now, do)
}

// again has a micro-batch that was away sent to another member.
func (h *Holder) again(id ID, do []Action) []Action {
	if i := h.items[id]; i != nil && i.state == away {
		i.state = ready
		h.counts.Again++
	}
	return do
}

// lose gives a micro-batch up.
func (h *Holder) lose(id ID, do []Action) []Action {
	h.counts.Lost++
	h.next.Forget(id)
	h.forget(id)
	return append(do, Action{Kind: Release, ID: id})
}

func (h *Holder) forget(id ID) {
	delete(h.items, id)
	for n, other := range h.order {
		if other == id {
			h.order = append(h.order[:n], h.order[n+1:]...)
			return
		}
	}
}

// Forward is a micro-batch that has come from a member of the stage before, or from a source.
func (h *Holder) Forward(now time.Duration, id ID, from topology.PeerID) (do []Action) {
	if i := h.items[id]; i != nil { // by another way, as the one before has died or was given up
		i.from = from
		return nil
	}
	waiting := 0
	for _, i := range h.items {
		if i.state == queued {
			waiting++
		}
	}
	if waiting >= maxQueue {
		return []Action{{Kind: Refuse, ID: id, To: from, Load: h.Load()}}
	}
	h.counts.Came++
	h.items[id] = &item{from: from}
	h.order = append(h.order, id)
	return h.goOn(now, nil)
}

// Back is the answer of a member of the next stage: errors have come, or it has refused.
func (h *Holder) Back(now time.Duration, id ID, from topology.PeerID, load Load, refused bool) []Action {
	took, out := h.next.Answered(now, id, from, load)
	i := h.items[id]
	switch {
	case i == nil || i.state != away && i.state != ready:
		if !refused {
			h.counts.Late++
		}
	case refused && out:
		i.state = ready
	case !refused:
		if out {
			h.trip.add(took)
		}
		h.next.Forget(id)
		i.state = returned
	}
	return h.goOn(now, nil)
}

// Computed says that the micro-batch which was last asked for is computed. Lost tells that its values were of no use,
// such as NaN: it is given up.
func (h *Holder) Computed(now time.Duration, id ID, lost bool) (do []Action) {
	h.busy = false
	i := h.items[id]
	took := now - h.began
	switch {
	case i == nil:
	case lost || i.from == "" && !i.back:
		do = h.lose(id, do)
	case !i.back:
		h.forward.add(took)
		i.state = ready
	default:
		if h.last() {
			h.each.add(took)
		} else {
			h.each.add(took + time.Duration(h.forward))
		}
		h.added++
		h.counts.Done++
		h.forget(id)
		if i.from != "" { // else who sent it has died meanwhile
			do = append(do, Action{Kind: SendBack, ID: id, To: i.from, Load: h.Load()})
		}
		do = append(do, Action{Kind: Release, ID: id})
	}
	return h.goOn(now, do)
}

// Stepped says that the step is made.
func (h *Holder) Stepped(now time.Duration) []Action {
	h.busy = false
	h.version++
	h.added = 0
	return h.goOn(now, nil)
}

// Tick looks for answers that are overdue.
func (h *Holder) Tick(now time.Duration) (do []Action) {
	for _, id := range h.next.Overdue(now) {
		do = h.again(id, do)
	}
	return h.goOn(now, do)
}

// Next is when Tick is to be called; false if nothing is waited for.
func (h *Holder) Next(now time.Duration) (time.Duration, bool) {
	_, waiting := h.first(ready)
	return h.next.Next(now, waiting)
}

// goOn sends what can be sent, and has the next thing computed: a step if one is due, then what has come back, and only
// then what goes forward, if there is memory.
func (h *Holder) goOn(now time.Duration, do []Action) []Action {
	for _, id := range h.order {
		i := h.items[id]
		if i.state != ready {
			continue
		}
		if to, ok := h.next.Choose(now, id); ok {
			i.state = away
			h.next.Sent(now, id, to, now+h.trip.wait())
			do = append(do, Action{Kind: SendForward, ID: id, To: to})
		}
	}
	if h.busy {
		return do
	}
	held, stale := h.held()
	if h.added >= h.config.Batch && stale == 0 {
		h.busy = true
		return append(do, Action{Kind: Step})
	}
	if id, ok := h.first(returned); ok {
		return h.compute(now, id, ComputeBack, do)
	}
	if id, ok := h.first(queued); ok && held < h.config.Held {
		if h.last() {
			return h.compute(now, id, ComputeBack, do)
		}
		return h.compute(now, id, ComputeForward, do)
	}
	return do
}

func (h *Holder) first(s state) (ID, bool) {
	for _, id := range h.order {
		if h.items[id].state == s {
			return id, true
		}
	}
	return ID{}, false
}

func (h *Holder) compute(now time.Duration, id ID, kind Kind, do []Action) []Action {
	i := h.items[id]
	if i.state == queued {
		i.version = h.version
	}
	i.state, i.back = computing, kind == ComputeBack
	h.busy, h.began = true, now
	return append(do, Action{Kind: kind, ID: id})
}
