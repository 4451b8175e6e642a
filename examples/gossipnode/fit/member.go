package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/meet"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// outcome is the last report of a peer.
func outcome(done Result, err error) watch.Report {
	fitted, unwritten := json.Marshal(done)
	if err = cmp.Or(err, unwritten); err == nil {
		return watch.Report{Kind: watch.ReportResult, Fitted: fitted}
	}
	r := watch.Failed(err)
	r.Echo = r.Echo || errors.Is(err, context.Canceled)
	return r
}

// reportEvery is the least time between two reports of progress.
const reportEvery = 100 * time.Millisecond

// member is one peer of a fit.
type member struct {
	options
	number int          // in a local fit, from 0
	source *rows.Source // shared in a local fit, otherwise of this peer alone
	join   meet.Joiner
	tell   watch.Reporter
}

// run takes part in a fit and returns the result.
func (m *member) run(ctx context.Context) (done Result, err error) {
	flock, leave, err := m.join(ctx, m.tell)
	if err != nil {
		return Result{}, err
	}
	sums, reported := 0, time.Time{}
	seen := counted{flock, func(name string) {
		sums++
		if now := time.Now(); now.Sub(reported) >= reportEvery {
			reported = now
			m.tell(watch.Report{Kind: watch.ReportProgress, Status: &watch.Status{Sums: sums, Doing: name}})
		}
	}}
	done, file, err := m.work(ctx, seen)
	sent, left := leave()
	if err != nil {
		return Result{}, rows.Remedied(err)
	}
	done.BytesSent, done.Sums = sent, sums
	done.setAside(m.source.Files.Damaged())
	if m.Out != "" && m.number == 0 {
		done.Out = m.Out
		return done, errors.Join(save(m.Out, file), left)
	}
	return done, left
}

// work agrees with the others on the task, reads the rows, and fits.
func (m *member) work(ctx context.Context, flock table.Flock) (Result, learn.File, error) {
	w := work{options: m.options, learner: m.Learner.chosen(), flock: table.Scope(flock, "fit")}
	w.tell = func(said string) { m.tell(watch.Report{Kind: watch.ReportNews, Said: said}) }
	w.share = rows.Share{Source: m.source, Table: m.Table, Number: m.number, Peers: m.Peers, Seed: m.Learner.Seed}
	if w.learner.name == ratings {
		w.share.Named = map[string]string{"user": m.Learner.User, "item": m.Learner.Item}
	}
	return w.run(ctx)
}

// counted is a flock that reports each sum.
type counted struct {
	table.Flock
	// seen is called when a sum begins.
	seen func(name string)
}

func (c counted) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	c.seen(name)
	return c.Flock.Sum(ctx, name, vector)
}

func (c counted) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	c.seen(name)
	return c.Flock.Max(ctx, name, vector)
}

func (c counted) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	c.seen(name)
	return c.Flock.Gather(ctx, name, data)
}
