package search

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/search"
	"github.com/seed-97356399/murmuration/tensor"
)

// virtual is a search in virtual time: its members meet whenever some have trained what they train. Meetings and models that travel take no
// time.
type virtual struct {
	*sought
	reports []search.Report
	models  map[search.Held][]byte
	data    *simulate.Simulated
	going   []ending
	now     float64
}

// ending is what a job will have come to, and when.
type ending struct {
	search.Job
	at      float64
	outcome search.Outcome
	model   []byte
}

// simulated searches with so many members.
func simulated(ctx context.Context, s *sought, peers int, progress io.Writer) (Result, error) {
	if _, trains := s.subject.(*neural); !trains {
		return Result{}, cli.Usage(cli.Faultf("simulate", "is for models that are trained: learners take no virtual time"))
	}
	v := &virtual{sought: s, models: map[search.Held][]byte{}}
	for i := range peers {
		v.reports = append(v.reports, search.Report{Member: fmt.Sprintf("peer %04d", i)})
	}
	for {
		blocks := make([][]byte, peers)
		for i, r := range v.reports {
			var err error
			if blocks[i], err = r.Encode(); err != nil {
				return Result{}, err
			}
		}
		plan, err := s.config.Meet(blocks)
		if err != nil {
			return Result{}, err
		}
		if plan.Over {
			return s.result(plan.Results, peers, v.now)
		}
		if err := v.begin(ctx, plan); err != nil {
			return Result{}, err
		}
		v.pass(progress)
	}
}

// begin trains the new jobs of a plan, several at a time.
func (v *virtual) begin(ctx context.Context, plan search.Plan) error {
	var fresh []ending
	for i := range v.reports {
		r := &v.reports[i]
		j, any := plan.Of(r.Member)
		if r.Results = plan.Results; !any {
			r.Job, r.Outcome = nil, nil
		} else if r.Job == nil || !r.Job.Same(j) {
			if r.Job, r.Outcome = &j, nil; placeOf(j, r.Member) == 0 {
				fresh = append(fresh, ending{Job: j})
			}
		}
	}
	var group sync.WaitGroup
	errs, turns := make([]error, len(fresh)), make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range fresh {
		s, world, err := v.world(v.all(v.list[fresh[i].Trial]), len(fresh[i].Members))
		if err != nil {
			return err
		}
		if v.data == nil {
			if v.data, err = simulate.PrepareAll(ctx, s.Settings, s.Peers); err != nil {
				return err
			}
		}
		group.Go(func() {
			turns <- struct{}{}
			errs[i] = v.train(ctx, &fresh[i], s, world)
			<-turns
		})
	}
	group.Wait()
	v.going = append(v.going, fresh...)
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return err
		}
	}
	return nil
}

// world is a simulated world of so many peers that train with these flags.
func (v *virtual) world(given map[string][]string, peers int) (s simulate.Settings, world peertest.World, err error) {
	cmd := &cobra.Command{Use: "simulate"}
	s.Register(cmd.Flags())
	given = maps.Clone(given)
	for name, values := range v.World {
		given[name] = values
	}
	given["peers"] = []string{fmt.Sprint(peers)}
	if err := cli.SetAll(cmd.Flags(), given); err != nil {
		return s, world, cli.Usage(fmt.Errorf("world: %w", err))
	}
	from, err := s.Load(cmd)
	if err != nil {
		return s, world, err
	}
	world, err = s.Check(from)
	return s, world, err
}

// train trains a job in a world of its own: members of others neither slow it nor are heard.
func (v *virtual) train(ctx context.Context, e *ending, s simulate.Settings, world peertest.World) error {
	j := slice{Job: e.Job, config: v.config, model: v.models[search.Held{Trial: e.Trial, Steps: e.From}]}
	task, err := v.data.With(s.Settings)
	if err != nil {
		return err
	}
	params := tensor.NewParams(task.First.Params.Layout())
	if copy(params.Vector(), task.First.Params.Vector()); j.From > 0 {
		if _, err := params.LoadSafetensors(bytes.NewReader(j.model)); err != nil {
			return err
		}
	}
	models := &judged{begins: params}
	s.Seed += orderOf(j) // batches that are no earlier rung's
	r, failed := task.Train(ctx, s, world, func(x *peertest.Simulation) {
		models.Task, models.Gradual, models.Factored = x.Task, x.Task.(peertest.Gradual), x.Task.(peertest.Factored)
		x.Task, x.Schedule, x.Work = models, courseOf(s.Settings, j), peer.Work{StepsPerPeer: uint64(j.To - j.From)}
		x.Watch.Evaluate, x.Watch.Points = x.Peers, points
	})
	e.at, e.outcome = v.now+r.Seconds, search.Outcome{Spent: int(r.Steps), Seconds: r.Seconds}
	for _, p := range r.Curve {
		if p.Progress > 0 && p.Progress < 1 {
			e.outcome.Curve = append(e.outcome.Curve, search.Point{Steps: j.From + int(p.Progress*float64(j.To-j.From)), Score: float64(p.TestAccuracy.Mean)})
		}
	}
	if failed == nil {
		e.outcome.Score = models.median(params.Vector())
	}
	e.outcome, e.model, err = finish(e.outcome, j, params, failed)
	return err
}

// pass lets time pass until the next job has ended, and tells its members.
func (v *virtual) pass(progress io.Writer) {
	slices.SortFunc(v.going, func(a, b ending) int { return cmp.Or(cmp.Compare(a.at, b.at), a.Trial-b.Trial) })
	e := v.going[0]
	v.going, v.now = v.going[1:], e.at
	held := search.Held{Trial: e.Trial, Steps: e.To}
	v.models[held] = e.model
	fmt.Fprintf(progress, "%8.2f s  trial %d at %d steps: %s\n", v.now, e.Trial, e.To, scoreOf(e.outcome))
	for i := range v.reports {
		r, own := &v.reports[i], e.outcome
		if e.model != nil {
			r.Held = append(r.Held, held)
		}
		if at := placeOf(e.Job, r.Member); at >= 0 {
			if own.Spent /= len(e.Members); at == 0 {
				own.Spent = e.outcome.Spent - own.Spent*(len(e.Members)-1)
			}
			r.Outcome = &own
		}
	}
}

// judged is a task that begins with a model, and keeps those at the end.
type judged struct {
	peertest.Task
	peertest.Gradual
	peertest.Factored
	begins *tensor.Params

	mu  sync.Mutex
	all []judgement
}

// judgement is a model and its accuracy.
type judgement struct {
	accuracy float64
	model    tensor.Vector
}

// Params implements peertest.Task.
func (j *judged) Params() *tensor.Params {
	params := tensor.NewParams(j.begins.Layout())
	copy(params.Vector(), j.begins.Vector())
	return params
}

// Evaluate implements peertest.Task.
func (j *judged) Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64) {
	if accuracy, loss = j.Task.Evaluate(x, glance); !glance {
		j.mu.Lock()
		j.all = append(j.all, judgement{accuracy, slices.Clone(x)})
		j.mu.Unlock()
	}
	return accuracy, loss
}

// median writes the model whose accuracy is the median, and returns that.
func (j *judged) median(into tensor.Vector) float64 {
	slices.SortFunc(j.all, func(a, b judgement) int {
		return cmp.Or(cmp.Compare(a.accuracy, b.accuracy), slices.Compare(a.model, b.model))
	})
	one := j.all[(len(j.all)-1)/2]
	copy(into, one.model)
	return one.accuracy
}
