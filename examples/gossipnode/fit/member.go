package fit

import (
	"context"
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// The kinds of report.
const (
	reportStarted  = "started"  // others can join it
	reportProgress = "progress" // it takes part in a sum
	reportNews     = "news"     // who watches should know what is said
	reportResult   = "result"   // it is done; nothing follows
	reportFailed   = "failed"   // it has given up; nothing follows
)

// report is what a peer tells whoever watches it; a process tells its parent a line of JSON.
type report struct {
	Kind      string   `json:"kind"`
	Addresses []string `json:"addresses,omitempty"`
	Said      string   `json:"said,omitempty"`
	Sums      int      `json:"sums,omitempty"`
	Doing     string   `json:"doing,omitempty"` // the name of the sum
	Result    *Result  `json:"result,omitempty"`
	Failure   string   `json:"failure,omitempty"`
	Code      int      `json:"code,omitempty"`
	// Echo: the fault is another peer's, which tells it itself.
	Echo bool `json:"echo,omitempty"`
}

// outcome is the last report of a peer.
func outcome(done Result, err error) report {
	if err == nil {
		return report{Kind: reportResult, Result: &done}
	}
	echo := errors.Is(err, table.ErrMember) || errors.Is(err, cli.ErrInterrupted) || errors.Is(err, context.Canceled)
	return report{Kind: reportFailed, Failure: err.Error(), Code: cli.ExitCode(err), Echo: echo}
}

// reportEvery is the least time between two reports of progress.
const reportEvery = 100 * time.Millisecond

// joiner takes part with the others: leave ends that, and tells how many bytes it has sent.
type joiner func(ctx context.Context, tell func(report)) (flock table.Flock, leave func() (sent uint64, err error), err error)

// member is one peer of a fit.
type member struct {
	options
	number int          // of a local fit, from 0
	source *rows.Source // of all peers of a local fit, else of this one
	join   joiner
	tell   func(report)
}

// run takes part from the settings to the result.
func (m *member) run(ctx context.Context) (done Result, err error) {
	flock, leave, err := m.join(ctx, m.tell)
	if err != nil {
		return Result{}, err
	}
	sums, told := 0, time.Time{}
	seen := counted{flock, func(name string) {
		sums++
		if now := time.Now(); now.Sub(told) >= reportEvery {
			told = now
			m.tell(report{Kind: reportProgress, Sums: sums, Doing: name})
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

// work agrees with the others on what is done, reads the rows, and fits.
func (m *member) work(ctx context.Context, flock table.Flock) (Result, learn.File, error) {
	share := rows.Share{Source: m.source, Table: m.Table, Number: m.number, Peers: m.Peers, Seed: m.Learner.Seed}
	agreed, err := share.Agree(ctx, flock, m.Shared)
	news := func(said string) { m.tell(report{Kind: reportNews, Said: said}) }
	for _, line := range m.source.Told(m.Table.Drop) {
		news(line)
	}
	if err != nil {
		return Result{}, learn.File{}, err
	}
	return (&work{Agreed: agreed, learner: m.Learner.chosen(), options: m.options, tell: news, all: m.source.Rows}).run(ctx)
}

// counted tells of the sums that a member takes part in.
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
