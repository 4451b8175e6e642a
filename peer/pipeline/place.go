package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Place is what a newcomer is to train.
type Place struct {
	// Stage is a stage that has no members, or else the one that all others wait for. Where the ends stay with the data, it is none of
	// these: who has data takes part 0, and asks nobody.
	Stage int
	// Params are the parameters of a stage without members, as another member keeps them, and At is how many steps the flock
	// had made when they were copied. Nil if nobody does: then a member begins with Plan.Init, or copies what the others of
	// its stage have.
	Params *tensor.Params
	At     uint64
	// Fault says why a copy that members keep of a stage without members could not be had, if so; Params is nil then. Its
	// stage begins anew: whoever would rather wait does not train.
	Fault error
}

const (
	// settled is for how long a choice stands before it counts: others may choose at the same moment.
	settled = 2 * time.Second
	// maxAsked bounds the members that a newcomer asks.
	maxAsked = 64
	// askFor and copyFor bound the wait for what one has to do, and for the copy that it keeps.
	askFor  = 10 * time.Second
	copyFor = 10 * time.Minute
	// look is how often a chooser looks at the members, and taken counts for so many of a part that is not to be chosen.
	look  = 100 * time.Millisecond
	taken = 1 << 30
)

// Choose finds a stage for a node that does not train yet. Of nodes that choose at the same time, as when a run begins, each
// sees what the others are about to take, so that no stage stays empty while another has two. The node's record says
// the stage from then on: call Node.Train soon.
func Choose(ctx context.Context, n *peer.Node, plan Plan) (Place, error) {
	service, err := peer.Serve(n, transport.ProtocolStages, nil)
	if err != nil {
		return Place{}, err
	}
	defer service.Close()
	c, place := chooser{node: n, plan: plan, service: service}, Place{}
	if err = c.arrive(ctx); err == nil {
		place.Stage, err = c.settle(ctx)
	}
	if err == nil {
		if place.Params, place.At, place.Fault = c.kept(ctx, place.Stage); place.Params == nil {
			err = context.Cause(ctx) // nil while it lasts: once it has ended, members may keep copies that have not come
		}
	}
	if err != nil {
		service.Choose(0)
		return Place{}, fmt.Errorf("choosing a stage: %w", err)
	}
	return place, nil
}

// chooser chooses a stage.
type chooser struct {
	node    *peer.Node
	plan    Plan
	service *peer.Service
}

// arrive waits until the node has joined the run: before, it knows nobody.
func (c chooser) arrive(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for c.node.State() == control.Joining {
		if err := c.node.WaitMembers(ctx, 1); err != nil {
			return err // the run will never admit it
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("joining the run: %w", context.Cause(ctx))
		}
	}
	return nil
}

// settle chooses until the choice has stood for a while.
func (c chooser) settle(ctx context.Context) (stage int, err error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	began := time.Now()
	stage, since := c.bottleneck(ctx), began
	for {
		c.service.Choose(uint8(stage + 1))
		if time.Since(since) >= settled && (time.Since(began) > 6*settled || !c.chosenOnly(c.service.Records(), stage)) {
			return stage, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		records := c.service.Records()
		if time.Since(began) > 5*settled { // who has chosen, and does not train, does not keep others away for ever
			records = slices.DeleteFunc(records, func(r transport.Record) bool { return !flock.Trains(r) })
		}
		if next := c.better(records, stage); next != stage {
			stage, since = next, time.Now()
		}
	}
}

// chosenOnly tells whether a run that has begun has another stage that nobody trains, though somebody has chosen it, and is
// about to train it, or never will.
func (c chooser) chosenOnly(records []transport.Record, own int) bool {
	begun, trained := false, make([]bool, c.plan.Parts())
	trained[own], trained[0] = true, own == 0 || c.plan.ends
	for _, r := range records {
		begun = begun || r.Steps > 0
		if at := int(r.Stage) - 1; at >= 0 && at < len(trained) && flock.Trains(r) {
			trained[at] = true
		}
	}
	return begun && slices.Contains(trained, false)
}

// counts has room to count the members of each part.
func (c chooser) counts() []int {
	counts := make([]int, c.plan.Parts())
	if c.plan.ends {
		counts[0] = taken
	}
	return counts
}

// better is the stage that a node should choose which has chosen one: another if that has nobody, or, before anybody has made a
// step, two members fewer, and this node is the last of those that could leave theirs for it.
func (c chooser) better(records []transport.Record, stage int) int {
	counts, last, begun := c.counts(), true, false
	counts[stage] = 1
	for _, r := range records {
		at := int(r.Stage) - 1
		if at < 0 || at >= len(counts) {
			continue
		}
		counts[at]++
		begun = begun || r.Steps > 0
		last = last && (at != stage || flock.Trains(r) || r.Peer < c.node.Self())
	}
	fewest := slices.Index(counts, slices.Min(counts))
	if last && counts[stage] > counts[fewest]+1 && (counts[fewest] == 0 || !begun) {
		return fewest
	}
	return stage
}

// bottleneck is the first stage without members, those included that are about to train it; if all have some, the one that
// computes the fewest micro-batches a second.
func (c chooser) bottleneck(ctx context.Context) int {
	records := slices.DeleteFunc(c.service.Records(), func(r transport.Record) bool { return r.Stage == 0 || int(r.Stage) > c.plan.Parts() })
	counts := c.counts()
	for _, r := range records {
		counts[r.Stage-1]++
	}
	if empty := slices.Index(counts, 0); empty >= 0 {
		return empty
	}
	each := c.each(ctx, records)
	capacity := make([]float64, len(counts))
	for stage := range capacity {
		if capacity[stage] = math.Inf(1); counts[stage] >= taken {
			continue
		}
		known, sum := 0.0, 0.0
		for i, r := range records {
			if int(r.Stage) == stage+1 && each[i] > 0 {
				known, sum = known+1, sum+1/each[i].Seconds()
			}
		}
		if known > 0 {
			capacity[stage] = sum * float64(counts[stage]) / known // who does not know is as fast as the others
		}
	}
	slowest := slices.Index(capacity, slices.Min(capacity))
	if math.IsInf(capacity[slowest], 1) {
		return slices.Index(counts, slices.Min(counts)) // nobody knows
	}
	return slowest
}

// each asks members how long they take for a micro-batch; 0 if they do not know, or do not answer.
func (c chooser) each(ctx context.Context, records []transport.Record) []time.Duration {
	each := make([]time.Duration, len(records))
	c.all(ctx, askFor, len(records), func(ctx context.Context, i int) {
		_ = c.service.Ask(ctx, records[i].Peer, func(s *framed.Stream) error {
			if err := framed.Say(s, 0, wire.Batch{Kind: wire.BatchLoad, Stage: records[i].Stage}); err != nil {
				return err
			}
			o, err := readOutcome(s, raw())
			each[i] = o.load.Each
			return err
		})
	})
	return each
}

// kept is the newest copy that can be had of a stage that has no members, if others keep one; one is in memory at a time.
func (c chooser) kept(ctx context.Context, stage int) (params *tensor.Params, at uint64, fault error) {
	ctx, cancel := context.WithTimeout(ctx, copyFor)
	defer cancel()
	for _, o := range c.offers(ctx, stage) {
		var got kept
		err := c.patiently(ctx, func() (err error) {
			got, err = fetch(ctx, c.service, o.from, c.plan, stage)
			return err
		})
		if err == nil {
			var values tensor.Vector
			if values, err = got.values.decode(); err == nil {
				params, err = tensor.WrapParams(c.plan.Layout(stage), values) // fails if it has none any more
			}
		}
		if err == nil {
			return params, got.at, nil
		}
		fault = errors.Join(fault, fmt.Errorf("copying stage %d from %s: %w", stage+1, o.from, err))
	}
	return nil, 0, fault
}

// offer is a copy that a member says to have, of a step of the flock.
type offer struct {
	from transport.PeerID
	at   uint64
}

// offers are the copies that members have of a stage which none of them trains, the newest first.
func (c chooser) offers(ctx context.Context, stage int) (offers []offer) {
	records := c.service.Records()
	if slices.ContainsFunc(records, func(r transport.Record) bool { return flock.Trains(r) && int(r.Stage) == stage+1 }) {
		return nil // that has the parameters themselves
	}
	records = slices.DeleteFunc(records, func(r transport.Record) bool { return !flock.Trains(r) || r.Stage == 0 })
	var mu sync.Mutex
	most := newest(c.node) // a copy of a later step is a lie
	c.all(ctx, askFor, len(records), func(ctx context.Context, i int) {
		_ = c.patiently(ctx, func() error {
			return offered(ctx, c.service, records[i].Peer, stage, func(s *framed.Stream, m wire.Batch) error {
				mu.Lock()
				defer mu.Unlock()
				if m.Values > 0 && m.Number <= most {
					offers = append(offers, offer{records[i].Peer, m.Number})
				}
				return errEnough
			})
		})
	})
	slices.SortFunc(offers, func(a, b offer) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.from, b.from)) })
	return offers
}

// errEnough ends a stream once it has told what was asked.
var errEnough = errors.New("it is known what the member has")

// patiently asks again while a member is busy.
func (c chooser) patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if busy, refused := errors.AsType[*wire.Refusal](err); !refused || busy.Reason != wire.ReasonBusy {
			return err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// all talks with so many members, with all at once, for a while.
func (c chooser) all(ctx context.Context, within time.Duration, members int, talk func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var asking sync.WaitGroup
	for i := range min(members, maxAsked) {
		asking.Go(func() { talk(ctx, i) })
	}
	asking.Wait()
}
