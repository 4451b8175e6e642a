package stages

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Config is a member's place.
type Config struct {
	// Stage is the stage that the member holds, from 0, of Stages.
	Stage, Stages int
	// Batch is how many micro-batches make a step. Default: 8, at least as many as may be on their way through the member.
	Batch int
	// Rounds: all stages compute the micro-batches of a round, which are all that sources make in it, with parameters of one
	// version, and a member steps once the round is over, whatever Batch says: so that the sum of a stage's gradients is that of
	// the whole model. What is of a later round waits, what is of one before is given up, and the pipeline runs empty between two.
	// Nothing is computed before Enter.
	Rounds bool
	// Home: a micro-batch goes on to the member that it is of, which has the last stage for its own alone. Once that is gone, it is
	// lost.
	Home bool
	// First is where the numbers of what the member sends begin: far from those of an earlier life.
	First uint64
}

// state is how far a micro-batch has come.
type state uint8

const (
	queued    state = iota // waits to be computed forward
	computing              // forward or back
	onwards                // waits for the next stage, or is there
	returned               // waits to be computed back
)

// item is a micro-batch at a Holder.
type item struct {
	leg
	key     Key
	id      ID
	state   state
	version uint64 // of the parameters of its forward pass
	back    bool   // it has been, or is, on its way back
	orphan  bool   // who sent it has gone
}

// Holder is the schedule of a member that holds a stage. One goroutine at a time uses it.
type Holder struct {
	sender
	config Config
	// held is how many micro-batches may be on their way through the member at once, each with memory of its own:
	// the stages from this one on, and one, while the next stage has one member; else twice as many, and one, since
	// micro-batches do not come evenly then: with equal members stages are busy for 0.85 of the time and more.
	held    int
	items   []*item // as they came
	version uint64
	added   int // gradients since the last step
	busy    bool
	began   time.Duration
	each    mean // forward and back
	forward mean
	turns   turns
	entered bool   // it is in a round, whose number is the version
	over    uint64 // rounds that are
}

// NewHolder makes the schedule of a member.
func NewHolder(c Config) (*Holder, error) {
	if c.Stages < 1 || c.Stage < 0 || c.Stage >= c.Stages || c.Batch < 0 {
		return nil, fmt.Errorf("stages: stage %d of %d, batches of %d: want a stage from 0 below their number", c.Stage, c.Stages, c.Batch)
	}
	h := &Holder{sender: newSender(c.First), config: c, held: 2*(c.Stages-c.Stage) + 1, busy: c.Rounds}
	if c.Batch == 0 {
		h.config.Batch = max(8, h.held)
	}
	return h, nil
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

// holds is how many micro-batches have memory here; stale how many of them were computed with parameters of before.
func (h *Holder) holds() (held, stale int) {
	for _, i := range h.items {
		if i.state != queued {
			held++
			if i.version < h.version && !i.id.Asks {
				stale++
			}
		}
	}
	return held, stale
}

// Members says who holds the next stage now, and who may send: a member of the stage before, or a source, that is not
// among them is gone.
func (h *Holder) Members(now time.Duration, next []topology.PeerID, senders func(topology.PeerID) bool) (do []Action) {
	h.set(next)
	from := h.config.Stages - h.config.Stage
	if h.held = from + 1; len(next) > 1 {
		h.held += from
	}
	for _, i := range slices.Clone(h.items) {
		i.orphan = i.orphan || !senders(i.key.From)
		if homeless := h.config.Home && !slices.Contains(next, i.id.Source); (homeless || i.orphan) && i.state != computing {
			do = h.lose(i, do)
		}
	}
	return h.goOn(now, do)
}

// lose gives a micro-batch up, and tells who sent it.
func (h *Holder) lose(i *item, do []Action) []Action {
	h.counts.Lost++
	return h.finish(i, GivenUp, do)
}

// finish answers who sent a micro-batch, and forgets it.
func (h *Holder) finish(i *item, answer Answer, do []Action) []Action {
	h.end(&i.leg)
	h.items = slices.DeleteFunc(h.items, func(other *item) bool { return other == i })
	if !i.orphan {
		do = append(do, Action{Kind: Reply, At: i.key, ID: i.id, To: i.key.From, Number: i.key.Number, Answer: answer, Load: h.Load()})
	}
	return append(do, Action{Kind: Release, At: i.key, ID: i.id})
}

// Forward is a micro-batch that a member of the stage before, or a source, has sent under a number.
func (h *Holder) Forward(now time.Duration, from topology.PeerID, number uint64, id ID) []Action {
	key, waiting := Key{from, number}, 0
	for _, i := range h.items {
		if i.key == key {
			return nil // it has come already
		}
		if i.state == queued && h.now(i.id) == h.now(id) {
			waiting++
		}
	}
	if h.outdated(id) {
		return []Action{ // nobody waits for it
			{Kind: Reply, At: key, ID: id, To: from, Number: number, Answer: GivenUp, Load: h.Load()}, {Kind: Release, At: key, ID: id},
		}
	}
	far := h.config.Rounds && !id.Asks && (!h.entered || id.Round > h.version+1)
	if far || !h.turns.take(now, from, maxQueue-waiting) {
		return []Action{{Kind: Reply, At: key, ID: id, To: from, Number: number, Answer: NoRoom, Load: h.Load()}}
	}
	h.counts.Came++
	h.items = append(h.items, &item{key: key, id: id})
	return h.goOn(now, nil)
}

// Answer is what a member of the next stage says of a micro-batch that was sent to it under a number. With Done, at says
// whose errors, or outputs, have come; without, or if nobody waits for them, at is the zero Key.
func (h *Holder) Answer(now time.Duration, from topology.PeerID, number uint64, answer Answer, load Load) (at Key, do []Action) {
	l, ended := h.answered(now, from, number, answer, load)
	if ended {
		i := h.items[slices.IndexFunc(h.items, func(i *item) bool { return &i.leg == l })]
		if answer == Done {
			at, i.state = i.key, returned
			if h.end(l); i.id.Asks {
				h.counts.Done++
				do = h.finish(i, Done, do)
			}
		} else {
			do = h.lose(i, do)
		}
	}
	return at, h.goOn(now, do)
}

// Broken says that nothing will be heard of what was sent to a member under a number.
func (h *Holder) Broken(now time.Duration, number uint64) []Action {
	h.broken(now, number)
	return h.Tick(now)
}

// Computed says that the micro-batch which was last asked for is computed. Useless tells that its values were of no use,
// such as NaN, and that no gradient was added: it is given up.
func (h *Holder) Computed(now time.Duration, at Key, useless bool) (do []Action) {
	index := slices.IndexFunc(h.items, func(i *item) bool { return i.key == at && i.state == computing })
	if index < 0 {
		return nil
	}
	i, took := h.items[index], now-h.began
	h.busy = false
	switch {
	case useless || i.orphan && !i.back:
		do = h.lose(i, do)
	case i.id.Asks && h.last():
		h.counts.Done++
		do = h.finish(i, Done, do)
	case !i.back:
		h.forward.add(took)
		if i.state, i.leg = onwards, (leg{waits: true}); h.config.Home {
			i.leg.only = i.id.Source
		}
	default:
		if !h.last() {
			took += time.Duration(h.forward)
		}
		h.each.add(took)
		h.added++
		h.counts.Done++
		do = h.finish(i, Done, do)
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

// Enter begins a round, in the place of Stepped.
func (h *Holder) Enter(now time.Duration, round uint64) []Action {
	h.busy, h.entered, h.version, h.added = false, true, round, 0
	return h.goOn(now, nil)
}

// Follow is for a member that makes no steps any more: it begins the next round once a micro-batch of that has come, whose source
// has back all that is of this one.
func (h *Holder) Follow(now time.Duration) []Action {
	for _, i := range h.items {
		if !h.busy && !h.now(i.id) {
			return h.Enter(now, i.id.Round)
		}
	}
	return nil
}

// RoundOver says that all sources have back what they made in a round, or have given it up. What of it is still here came by two
// ways, and nobody waits for it.
func (h *Holder) RoundOver(now time.Duration, round uint64) []Action {
	h.over = max(h.over, round+1)
	return h.goOn(now, nil)
}

// due tells whether a step is.
func (h *Holder) due(stale int) bool {
	if h.config.Rounds {
		return h.over > h.version
	}
	return h.added >= h.config.Batch && stale == 0
}

// now tells whether a micro-batch is not of a later round.
func (h *Holder) now(id ID) bool { return !h.config.Rounds || id.Asks || id.Round <= h.version }

// outdated tells whether it is of a round that is over.
func (h *Holder) outdated(id ID) bool {
	return h.config.Rounds && !id.Asks && id.Round < max(h.over, h.version)
}

// Discard says that the gradients which were added since the last step are gone.
func (h *Holder) Discard() { h.added = 0 }

// Tick looks for answers that are overdue.
func (h *Holder) Tick(now time.Duration) (do []Action) {
	for _, i := range slices.Clone(h.items) {
		if h.overdue(now, &i.leg) {
			do = h.lose(i, do)
		}
	}
	return h.goOn(now, do)
}

// Next is when Tick is to be called; false if nothing is waited for.
func (h *Holder) Next(now time.Duration) (at time.Duration, any bool) {
	for _, i := range h.items {
		at, any = i.sooner(now, at, any)
	}
	return at, any
}

// goOn sends what can be sent, and has the next thing computed: a step if one is due, then what has come back, and only
// then what goes forward, if there is memory.
func (h *Holder) goOn(now time.Duration, do []Action) []Action {
	for _, i := range slices.Clone(h.items) {
		if i.state != computing && h.outdated(i.id) {
			do = h.lose(i, do)
		}
	}
	for _, i := range h.items {
		if to, number, ok := h.send(now, &i.leg); ok {
			do = append(do, Action{Kind: Send, At: i.key, ID: i.id, To: to, Number: number})
		}
	}
	if h.busy {
		return do
	}
	held, stale := h.holds()
	if h.due(stale) {
		h.busy = true
		return append(do, Action{Kind: Step})
	}
	if i := h.first(returned); i != nil {
		return h.compute(now, i, ComputeBack, do)
	}
	if i := h.first(queued); i != nil && held < h.held {
		if i.version = h.version; h.last() && !i.id.Asks {
			return h.compute(now, i, ComputeBack, do)
		}
		return h.compute(now, i, ComputeForward, do)
	}
	return do
}

func (h *Holder) first(s state) *item {
	for _, i := range h.items {
		if i.state == s && h.now(i.id) {
			return i
		}
	}
	return nil
}

func (h *Holder) compute(now time.Duration, i *item, kind Kind, do []Action) []Action {
	i.state, i.back = computing, kind == ComputeBack
	h.busy, h.began = true, now
	return append(do, Action{Kind: kind, At: i.key, ID: i.id})
}
