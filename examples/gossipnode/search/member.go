package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/meetings"
	"github.com/seed-97356399/murmuration/peer/search"
)

const (
	// meetEvery is the time between two meetings: what was found is told then, and members get something else to train.
	meetEvery = 300 * time.Millisecond
	// reportEvery is the least time between two reports of progress.
	reportEvery = 200 * time.Millisecond
)

// member is one that searches with others.
type member struct {
	*sought
	*network
	options
	log    *zap.Logger
	tell   watch.Reporter
	report search.Report
	models map[search.Held][]byte
	job    *training            // nil if it trains nothing
	known  int                  // results that the journal has
	safe   map[search.Held]bool // models that are beside it
	most   int                  // members at once
	met    meetings.Meetings
}

// training is a job that this member trains.
type training struct {
	search.Job
	cancel  context.CancelFunc
	done    chan struct{} // closed when the others are set
	outcome search.Outcome
	model   []byte
	err     error
}

// begin sets what the member tells of itself.
func (m *member) begin() {
	m.report.Member, m.report.Addresses = string(m.node.Self()), m.node.JoinAddresses()
	if m.safe = map[search.Held]bool{}; m.models == nil {
		m.models = map[search.Held][]byte{}
	}
	for held := range m.models { // read beside the journal
		m.safe[held] = true
	}
	m.hold()
}

// run searches until all trials have ended.
func (m *member) run(ctx context.Context) (r Result, err error) {
	defer func() { err = errors.Join(err, m.stop()) }()
	began := time.Now()
	for {
		plan, err := m.meet(ctx)
		if err != nil {
			return r, err
		}
		if plan.Over {
			m.tell(watch.Report{Kind: watch.ReportNews, Said: "all trials have ended"})
			r, err := m.result(plan.Results, m.most, time.Since(began).Seconds())
			r.PeersLost = m.most - len(plan.Present)
			return r, err
		}
		if err := m.follow(ctx, plan); err != nil {
			return r, err
		}
		select {
		case <-time.After(meetEvery):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return r, cli.ErrInterrupted
		}
	}
}

// meet tells the others how far this member is, and makes the plan that all make.
func (m *member) meet(ctx context.Context) (plan search.Plan, err error) {
	m.report.Job, m.report.Outcome = nil, nil
	if j := m.job; j != nil {
		m.report.Job = &j.Job
		select {
		case <-j.done:
			if j.err != nil {
				m.job = nil // stop would say it again
				return plan, j.err
			}
			m.report.Outcome = &j.outcome
		default:
		}
	}
	block, err := m.report.Encode()
	if err != nil {
		return plan, err
	}
	all, err := m.met.Gather(ctx, m.node, "a search", block)
	if ctx.Err() != nil {
		return plan, cli.ErrInterrupted
	}
	if err != nil {
		return plan, err
	}
	plan, left := m.config.Meet(all)
	if left != nil {
		m.log.Warn("a member's report is not in the plan", zap.Error(left))
	}
	if !slices.ContainsFunc(plan.Present, func(p search.Member) bool { return p.Name == m.report.Member }) {
		return plan, fmt.Errorf("searching without this member: %w", left)
	}
	m.most = max(m.most, len(plan.Present))
	return plan, m.take(plan)
}

// take takes over what the others found, and the models that they brought; and brings what it is asked for.
func (m *member) take(plan search.Plan) error {
	m.report.Results = plan.Results
	want := map[search.Held]string{}
	for _, r := range plan.Results {
		held := search.Held{Trial: r.Trial, Steps: r.Steps}
		if want[held] = r.Model; m.job != nil && m.report.Outcome != nil && m.job.outcome.Model == r.Model && r.Model != "" {
			m.models[held] = m.job.model
		}
	}
	for _, came := range plan.Came {
		if hash := want[came.Held]; hash != "" && hashOf(came.Data) == hash {
			m.models[came.Held] = came.Data
		}
	}
	m.hold()
	for size, asked := 0, plan.Asked[m.report.Member]; len(asked) > 0; asked = asked[1:] {
		if size += len(m.models[asked[0]]); len(m.report.Brings) == 0 || size <= search.MaxBrought {
			m.report.Brings = append(m.report.Brings, search.Model{Held: asked[0], Data: m.models[asked[0]]})
		}
	}
	writes := !m.shared || plan.Present[0].Name == m.report.Member // of those on one machine one is enough
	if state := len(plan.Results) + len(m.models); m.Journal != "" && writes && state != m.known {
		if err := m.record(m.Journal, plan.Results, m.models, m.safe); err != nil {
			return cli.Config(fmt.Errorf("writing the journal: %w", err))
		}
		m.known = state
	}
	return nil
}

// hold keeps the last model of each trial, and tells which these are.
func (m *member) hold() {
	for held := range m.models {
		for later := range m.models {
			if later.Trial == held.Trial && later.Steps > held.Steps {
				delete(m.models, held)
			}
		}
	}
	m.report.Held = slices.SortedFunc(maps.Keys(m.models), func(a, b search.Held) int { return a.Trial - b.Trial })
	m.report.Brings = nil
}

// follow begins what the plan gives this member, and ends what it does not.
func (m *member) follow(ctx context.Context, plan search.Plan) error {
	next, any := plan.Of(m.report.Member)
	if m.job != nil && any && m.job.Same(next) {
		return nil
	}
	if err := m.stop(); err != nil || !any {
		return err
	}
	j := slice{
		Job: next, config: m.config, given: m.all(m.list[next.Trial]), model: m.models[search.Held{Trial: next.Trial, Steps: next.From}],
		number: placeOf(next, m.report.Member), shared: m.shared, network: m.subFlock(next, plan.Present),
	}
	var reported time.Time
	j.made = func(steps int) {
		if now := time.Now(); now.Sub(reported) >= reportEvery {
			reported = now
			m.tell(watch.Report{Kind: watch.ReportProgress, Status: &watch.Status{Sums: len(plan.Results), Doing: fmt.Sprintf("trial %d, step %d of %d", next.Trial, steps, next.To), Members: len(plan.Present)}})
		}
	}
	own, cancel := context.WithCancel(ctx)
	t := &training{Job: next, cancel: cancel, done: make(chan struct{})}
	m.job = t
	go func() {
		defer close(t.done)
		t.outcome, t.model, t.err = m.train(own, j)
	}()
	return nil
}

// stop ends what this member trains, and returns its error if that is not the end itself.
func (m *member) stop() error {
	t := m.job
	if t == nil {
		return nil
	}
	m.job = nil
	t.cancel()
	<-t.done
	if errors.Is(t.err, context.Canceled) {
		return nil
	}
	return t.err
}
