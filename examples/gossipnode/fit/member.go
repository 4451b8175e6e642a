package fit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// The kinds of report.
const (
	reportStarted  = "started"  // others can join it
	reportProgress = "progress" // it takes part in a sum
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
	echo := errors.Is(err, learn.ErrMember) || errors.Is(err, cli.ErrInterrupted) || errors.Is(err, context.Canceled)
	return report{Kind: reportFailed, Failure: err.Error(), Code: cli.ExitCode(err), Echo: echo}
}

// reportEvery is the least time between two reports of progress.
const reportEvery = 100 * time.Millisecond

// joiner takes part with the others: leave ends that, and tells how many bytes it has sent.
type joiner func(ctx context.Context, tell func(report)) (flock table.Flock, leave func() (sent uint64, err error), err error)

// member is one peer of a fit.
type member struct {
	options
	number int // of a local fit, from 0
	table  *read.Table
	rows   table.Source // of all peers of a local fit, else of this one
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
	w := &work{options: m.options, all: m.rows, flock: counted{flock, func(name string) {
		sums++
		if now := time.Now(); now.Sub(told) >= reportEvery {
			told = now
			m.tell(report{Kind: reportProgress, Sums: sums, Doing: name})
		}
	}}}
	done, file, err := m.work(ctx, w)
	sent, left := leave()
	if err != nil {
		return Result{}, remedied(err)
	}
	done.BytesSent, done.Sums = sent, sums
	done.setAside(m.table.Damaged())
	if m.Out != "" && m.number == 0 {
		done.Out = m.Out
		return done, errors.Join(save(m.Out, file), left)
	}
	return done, left
}

// work agrees with the others on what is done, reads the rows, and fits.
func (m *member) work(ctx context.Context, w *work) (Result, learn.File, error) {
	if err := agreeSettings(ctx, w.flock, m.Shared); err != nil {
		return Result{}, learn.File{}, err
	}
	schema, err := table.Agree(ctx, w.flock, "fit/schema", m.table.Schema())
	if err != nil {
		return Result{}, learn.File{}, err
	}
	w.schema = schema
	local := m.table.Pin(schema)
	if local == nil {
		w.rows, local = m.load(ctx, schema)
	}
	if err := ready(ctx, w.flock, local); err != nil {
		return Result{}, learn.File{}, err
	}
	return w.run(ctx)
}

// load reads this member's rows into memory.
func (m *member) load(ctx context.Context, schema *table.Schema) (table.Source, error) {
	for _, name := range m.Table.Drop {
		if schema.Find(name) < 0 {
			return nil, cli.Usage(cli.Faultf("drop", "%s: there is no such column%s", name, alike(name, schema)))
		}
	}
	source := m.rows
	if m.Peers > 1 {
		shard, err := table.ParseShard(m.Table.Shard)
		if err != nil {
			return nil, err
		}
		parts, err := shard.Among(ctx, source, m.Peers, m.Learner.Seed)
		if err != nil {
			return nil, err
		}
		source = table.Filtered(source, parts[m.number])
	}
	var batches []*table.Batch
	for b, err := range source(ctx) {
		if err != nil {
			return nil, cli.Config(err)
		}
		batches = append(batches, b)
	}
	return table.InMemory(batches...), nil
}

// alike is a hint at the column that was meant.
func alike(name string, schema *table.Schema) string {
	if near, ok := cli.Nearest(name, schema.Names()); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// ready tells the others of a member that cannot go on, or they would wait for it.
func ready(ctx context.Context, flock table.Flock, local error) error {
	failed := []float64{0}
	if local != nil {
		failed[0] = 1
	}
	failed, _, err := flock.Max(ctx, "fit/ready", failed)
	switch {
	case local != nil:
		return local
	case err != nil:
		return err
	case failed[0] != 0:
		return learn.ErrMember
	}
	return nil
}

// agreeSettings refuses members that are to fit something else.
func agreeSettings(ctx context.Context, flock table.Flock, mine map[string]string) error {
	data, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	all, err := flock.Gather(ctx, "fit/settings", data)
	if err != nil {
		return err
	}
	var first map[string]string
	for i, data := range all {
		var theirs map[string]string
		if err := json.Unmarshal(data, &theirs); err != nil {
			return fmt.Errorf("the settings of member %d of %d: %w", i+1, len(all), err)
		}
		if first == nil {
			first = theirs
		}
		for _, flag := range slices.Sorted(maps.Keys(first)) {
			if first[flag] != theirs[flag] {
				return fmt.Errorf("--%s is %q at one member and %q at another (%d of %d): give all the same", flag, first[flag], theirs[flag], i+1, len(all))
			}
		}
	}
	return nil
}

// remedied adds to an error of the library which flag to change.
func remedied(err error) error {
	var (
		schema *table.SchemaError
		damage *read.DamageError
	)
	remedy := ""
	switch {
	case errors.As(err, &damage):
		remedy = "see --tolerance"
	case errors.As(err, &schema):
		remedy = "give all members --data of the same columns, and the same --categories and --numbers where kinds differ"
	case errors.Is(err, learn.ErrOneClass):
		remedy = "change --target"
	case errors.Is(err, learn.ErrNoRows):
		remedy = "look at --data, --target and --split"
	}
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}
