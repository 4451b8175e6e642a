package fit

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/table"
)

// processes makes each peer a process of this program.
func processes(o options, cmd *cobra.Command) supervise.Config {
	return supervise.Config{Launch: func(number int, join []string, events chan<- supervise.Event) (*supervise.Member, error) {
		return supervise.Process(number, o.Peers, arguments(cmd.Flags(), number, o.Peers, join), events)
	}}
}

// goroutines makes peers goroutines of this process, which read each row once.
func goroutines(ctx context.Context, o options) (supervise.Config, error) {
	source, err := rows.Open(ctx, o.Table, o.Peers > 1 && !o.OnDisk)
	if err != nil {
		return supervise.Config{}, err
	}
	o.Columns = source.Columns()
	members := make([]func(table.Flock), o.Peers)
	launch := func(number int, _ []string, events chan<- supervise.Event) (*supervise.Member, error) {
		here, handle := supervise.InProcess(number, events)
		members[number] = func(flock table.Flock) {
			m := &member{options: o, number: number, source: source, join: o.Joiner(here.Log()), tell: here.Tell}
			if !o.apart() {
				m.join = func(context.Context, watch.Reporter) (table.Flock, func() (uint64, error), error) {
					return flock, func() (uint64, error) { return 0, nil }, nil
				}
			}
			here.Tell(outcome(m.run(here.Context)))
			here.End(nil)
		}
		if number == o.Peers-1 { // peers start in their order, and train at once
			go table.Together(o.Peers, func(flock table.Flock, i int) { members[i](flock) })
		}
		return handle, nil
	}
	return supervise.Config{Launch: launch, AtOnce: true}, nil
}

// lineOf is the line for a peer's report: all peers have the same columns, and no other peers will join.
func lineOf(peers int) func(int, *watch.Report) string {
	return func(number int, r *watch.Report) string {
		if number > 0 || r.Kind == watch.ReportStarted && peers > 1 {
			return ""
		}
		return r.Said
	}
}

// combine makes the result of all peers; bytes are those of all peers. The first peer writes its model to out, if
// set.
func combine(p *supervise.Peers, out string) (Result, error) {
	if p.Fault != nil {
		return Result{}, p.Fault
	}
	var total Result
	lost := 0
	for number, row := range p.Rows {
		if row.Done == nil {
			lost++
			continue
		}
		var r Result
		if err := json.Unmarshal(row.Done.Fitted, &r); err != nil {
			return Result{}, fmt.Errorf("reading the result of peer %d: %w", number, err)
		}
		if number == lost { // the first peer with a result
			total = r
			continue
		}
		if r.Hash != total.Hash {
			return Result{}, fmt.Errorf("peer %d has another model than the others: %s, not %s", number, r.Hash, total.Hash)
		}
		total.BytesSent += r.BytesSent
		total.Seconds = max(total.Seconds, r.Seconds)
		total.Damaged = max(total.Damaged, r.Damaged) // all have read the same file
	}
	if lost == len(p.Rows) {
		return Result{}, supervise.ErrAllKilled
	}
	total.PeersLost = lost
	if total.Out != out {
		return total, fmt.Errorf("the model is not in %s: the peer that was to write it is lost", out)
	}
	return total, nil
}
