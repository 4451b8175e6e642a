package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/topology"
)

// Pipeline cuts the model of a world into stages: each member holds one (Member.Stage), and averages it with those who hold
// the same; micro-batches of all members' rows go through the stages, as the machines of internal/stages decide. A member's
// step is then made of micro-batches, and Task.Duration and Task.Gradient are not asked.
type Pipeline struct {
	// Terms are those of exchanges within each stage, in the place of Config.Terms.
	Terms []replica.Terms
	// Batch is how many micro-batches make a step; 0: as package stages says.
	Batch int
	// Rounds: a round is Batch micro-batches of each member's rows, which all stages compute with parameters of one version,
	// as Rounds in package stages says. With AllReduce in each stage that comes to what whole models do.
	Rounds bool
	// Chains: micro-batches go from each member to one of the next stage alone, that of the same place among those of its
	// stage. Nobody would do so but to see what it costs.
	Chains bool
	// Work is what members compute.
	Work Staged
}

// Staged is what members of a pipeline compute. Vectors that it returns are the world's, but for those of a Flow.
type Staged interface {
	// Began: a peer begins a step; Stepped: it has computed one, of a mean loss over its samples.
	Began(peer int)
	Stepped(peer int, loss float64)
	// Rows are the next micro-batch of a peer: inputs of the first stage, targets of the last, and their bytes on a link.
	Rows(peer int) (Parcel, error)
	// Takes is how long the next pass of a micro-batch takes at a peer.
	Takes(peer, stage int, back bool) time.Duration
	// Flow is memory for a micro-batch at a stage.
	Flow(stage int) Flow
	// Code makes values what they are after they went over a link, and tells their bytes there.
	Code(values []float32) (coded []float32, bytes int)
}

// Flow is the memory of a micro-batch at a stage. Vectors that it returns are its own, until its next call. Each method is
// false if values are of no use, as NaN is.
type Flow interface {
	Forward(params, in []float32, seed uint64) (out []float32, useful bool)
	// Loss is that of outputs of the last stage, with the gradient over them.
	Loss(out, targets []float32) (loss float64, errors []float32, useful bool)
	// Backward adds the gradient of all examples to sum, and returns that over the inputs.
	Backward(params, sum, errors []float32) (below []float32, useful bool)
}

// Parcel is what goes from stage to stage: values, the targets that belong to them, of so many examples and bytes.
type Parcel struct {
	Values, Targets []float32
	Examples, Bytes int
}

// StageCounts are what has happened at all peers that have held a stage.
type StageCounts struct {
	// Counts are of the micro-batches that reached the stage, and Here how many of those had no end when their holder went,
	// or the run was over: Came is Done, Lost and Here.
	stages.Counts
	Here uint64
	// Busy is for how long its holders have computed, of the time Present for which they were there; in all worlds.
	Busy, Present time.Duration
	// Copies is how many copies of its parameters a holder that was alone has given to members of other stages.
	Copies int
}

func (c *StageCounts) add(o StageCounts) {
	c.Came, c.Done, c.Lost, c.Again, c.Late = c.Came+o.Came, c.Done+o.Done, c.Lost+o.Lost, c.Again+o.Again, c.Late+o.Late
	c.Here, c.Busy, c.Present, c.Copies = c.Here+o.Here, c.Busy+o.Busy, c.Present+o.Present, c.Copies+o.Copies
}

// of are the stages of a world's model: the terms of exchanges within each. Without a Pipeline the model is one.
func (p *Pipeline) of(whole replica.Terms) []replica.Terms {
	if p == nil {
		return []replica.Terms{whole}
	}
	return p.Terms
}

func (p *Pipeline) validate(c Config) error {
	var faults []error
	if p != nil && (len(p.Terms) == 0 || p.Work == nil || p.Batch < 0 || p.Rounds && p.Batch == 0) {
		return errors.New("Pipeline: Terms of at least one stage and Work are needed, and a Batch of at least 0, or of 1 with Rounds")
	}
	terms := p.of(c.Terms)
	for _, t := range terms {
		if len(t.Plan.Codecs()) == 0 {
			faults = append(faults, errors.New("Terms.Plan has no codec"))
		}
	}
	for i, m := range c.Members {
		if m.Stage < 0 || m.Stage >= len(terms) {
			faults = append(faults, fmt.Errorf("member %d holds stage %d of %d", i, m.Stage, len(terms)))
		}
	}
	return errors.Join(faults...)
}

// stages is how many the model has.
func (w *World) stages() int { return len(w.overlays) }

// members are those that hold a stage, in the order of the view.
func (w *World) members(stage int) (ids []topology.PeerID) {
	if stage >= len(w.overlays) {
		return nil
	}
	for _, m := range w.overlays[stage].View().Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

// chained are the members that one with a place among those of its stage may send to.
func (w *World) chained(self topology.PeerID, stage int, next []topology.PeerID) []topology.PeerID {
	if at := slices.Index(w.members(stage), self); w.config.Pipeline.Chains && at >= 0 && len(next) > 0 {
		return next[at%len(next):][:1]
	}
	return next
}

// Neediest is the stage that a newcomer should take: the first that nobody holds, else the one that computes the fewest
// micro-batches a second. Those who do not know yet how many are as fast as the others of their stage.
func (w *World) Neediest() int {
	of := w.stages()
	present, known, rates := make([]float64, of), make([]float64, of), make([]float64, of)
	for _, p := range w.peers {
		if p.gone || p.staged == nil {
			continue
		}
		present[p.stage]++
		if each := p.staged.holder.Load().Each; each > 0 {
			known[p.stage]++
			rates[p.stage] += 1 / each.Seconds()
		}
	}
	if empty := slices.Index(present, 0); empty >= 0 {
		return empty
	}
	if slices.Contains(known, 0) { // somebody has yet to compute one
		return slices.Index(present, slices.Min(present))
	}
	for stage := range rates {
		rates[stage] *= present[stage] / known[stage]
	}
	return slices.Index(rates, slices.Min(rates))
}

// Holders is how many peers hold a stage, or copy its parameters in order to.
func (w *World) Holders(stage int) (n int) {
	for _, p := range w.peers {
		if !p.gone && p.stage == stage {
			n++
		}
	}
	return n
}

// StageCounts are those of a stage, and of the rows that were sent into the first.
func (w *World) StageCounts(stage int) StageCounts {
	all := w.past[stage]
	for _, p := range w.peers {
		if p.staged != nil && !p.gone && p.stage == stage {
			all.add(p.staged.counts())
		}
	}
	return all
}

// RowCounts are what became of all peers' own micro-batches: Here is those on their way.
func (w *World) RowCounts() StageCounts {
	all := w.past[w.stages()]
	for _, p := range w.peers {
		if p.staged != nil && !p.gone {
			all.add(p.staged.rows())
		}
	}
	return all
}
