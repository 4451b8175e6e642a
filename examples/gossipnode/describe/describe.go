// Package describe is the command describe: statistics of the rows, pictures or texts of all members, by sums. Begin
// with job.
package describe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/meet"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// options are the flags of describe.
type options struct {
	meet.Peer
	Peers, Least int
	Unrelated    float64
	HTML         string
}

const (
	topicData     = "Data"
	maxLocalPeers = 64
)

// Command makes the command that describes the data of all members.
func Command(std cli.Streams) *cobra.Command {
	o := options{Peer: meet.Peer{Doing: "description", Topics: []string{topicData}}}
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Tell what the data of all members are like, by sums",
		Long: `Describe tells what the rows of all members are like: how many there are, how the
numbers lie, which values are frequent, what is missing, what is correlated, and what a
column tells of a target; of pictures the classes and the levels of their channels, of texts
the bytes and symbols. No row leaves its member, and all are told the same. What fewer than
--least rows have in common is merged, or not told.`,
		Annotations: map[string]string{cli.Details: `Members on several machines: the first begins with --listen and --min-peers, and prints how to
join it; the others need that and --data of their own, and take over the rest.`},
		Example: `  gossipnode describe --data flights.csv.gz --target 'arr_delay>15' --html flights.html
  gossipnode describe --data flights.csv.gz --peers 4 --shard by=carrier --json
  gossipnode describe --dataset mnist --data DIR
  gossipnode describe --data mine.parquet --listen 0.0.0.0:4001 --min-peers 2
  gossipnode describe --data theirs.parquet --join 192.0.2.7:4001`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
			defer release()
			if err := o.load(ctx, cmd, std); err != nil {
				return err
			}
			done, err := o.run(ctx, std)
			if err == nil && o.HTML != "" {
				err = cli.Config(files.Replace(o.HTML, 0o644, func(out io.Writer) error { return write(out, done) }))
			}
			if err != nil {
				return rows.Remedied(err)
			}
			return cli.Print(done, o.JSON, std)
		},
	}
	o.register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	return cmd
}

// sets returns the names of all data sets.
func sets() []string { return append(settings.TableFormats(), dataset.Datasets()...) }

func (o *options) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	t := &o.Table
	flags.StringArrayVar(&t.Data, "data", nil, "`FILE` of rows, a folder or a pattern of such, repeatable; of pictures and texts their folder")
	flags.StringVar(&o.Dataset, "dataset", "", cli.List(sets())+" (default: a table, as the files' names say)")
	flags.StringVar(&t.Target, "target", "", "what columns are related to: a column, or a comparison such as 'arr_delay>15' or 'carrier=UA'")
	flags.StringSliceVar(&t.Drop, "drop", nil, "columns to leave out, separated by commas; repeatable")
	flags.StringSliceVar(&t.Categories, "categories", nil, "columns that are categories, although their first values are numbers; separated by commas")
	flags.StringSliceVar(&t.Numbers, "numbers", nil, "columns that are numbers, although some value is none; rows with one are damaged")
	t.RegisterReading(flags)
	flags.IntVar(&o.Least, "least", summary.DefaultLeast, "merge cells of fewer rows with others, or do not tell them")
	flags.Float64Var(&o.Unrelated, "unrelated", -1, "name the columns that tell at most this share of the target, 0 to 1; -1 names none")
	cli.Group(flags, topicData, "data", "dataset", "target", "drop", "least", "unrelated")
	flags.IntVar(&o.Peers, "peers", 1, "members on this machine, each with its part of the data")
	flags.StringVar(&t.Shard, "shard", "", "how the data are divided among --peers: of tables rows (the default) or by=COLUMN, else iid, files or dirichlet=ALPHA")
	flags.Uint64Var(&o.Seed, "seed", 1, "for what is divided or drawn by chance")
	o.Register(flags)
	o.Dataset = "" // the command run has another default
	cli.Group(flags, "Members", "peers", "shard", "listen", "join", "min-peers")
	flags.StringVar(&o.HTML, "html", "", "`FILE` to write as a page with plots, which needs nothing else")
	cli.Group(flags, "Results", "html", "json")
}

// load resolves the flags, takes over those of the description to join, and returns their errors.
func (o *options) load(ctx context.Context, cmd *cobra.Command, std cli.Streams) error {
	from, err := o.Load(cmd)
	if err == nil {
		err = from.Usage(o.SumFaults()...)
	}
	if err != nil {
		return err
	}
	if o.Share(cmd.Flags()); len(o.Join) > 0 {
		if err := o.TakeOver(ctx, from, cmd.Flags(), std); err != nil {
			return err
		}
	}
	asTable := o.Dataset == "" || o.IsTable()
	if o.Table.Format = ""; o.IsTable() {
		o.Table.Format = o.Dataset
	}
	if o.Table.Shard == "" {
		o.Table.Shard = map[bool]string{true: settings.DefaultShard, false: "iid"}[asTable]
	}
	faults := append(cli.Faults(o.SumFaults()), o.Table.ReadingFaults()...)
	if o.Dataset != "" {
		faults.Add(cli.OneOf("dataset", o.Dataset, sets()))
	}
	drawn := slices.Contains([]string{dataset.Datasets()[0], dataset.GoSource}, o.Dataset)
	faults.If(len(o.Table.Data) == 0 && !drawn || len(o.Table.Data) > 1 && !asTable, "data", "is given %d times: want files of rows, or one folder of pictures or texts", len(o.Table.Data))
	_, err = table.ParseTarget(o.Table.Target)
	faults.If(o.Table.Target != "" && (err != nil || !asTable), "target", "%q: want a column of a table, or a comparison such as 'delay>15'", o.Table.Target)
	if _, err = dataset.ParseShard(o.Table.Shard); asTable {
		_, err = table.ParseShard(o.Table.Shard)
	}
	faults.If(err != nil, "shard", "%q: %v", o.Table.Shard, err)
	faults.Add(cli.Within("least", o.Least, 1, 1<<30), cli.Within("peers", o.Peers, 1, maxLocalPeers))
	faults.If(o.Unrelated != -1 && !(o.Unrelated >= 0 && o.Unrelated < 1 && o.Table.Target != ""), "unrelated", "%g: want 0 or more, below 1, and a --target; or -1", o.Unrelated)
	if from.Source("listen") == cli.FromDefault && len(o.Join) == 0 {
		o.Listen = nil
	}
	faults.If(o.Listen != nil && o.Peers > 1, "peers", "is for members on this machine: leave it out where --listen or --join are given")
	return from.Usage(faults...)
}

// job is the work of one member.
type job func(ctx context.Context, flock table.Flock) (*summary.Summary, error)

// run describes data on this machine, or together with members elsewhere.
func (o *options) run(ctx context.Context, std cli.Streams) (done Result, err error) {
	jobs, source, err := o.jobs(ctx, std)
	if err != nil {
		return done, err
	}
	all, errs := make([]*summary.Summary, len(jobs)), make([]error, len(jobs))
	if o.Listen != nil {
		flock, leave, err := o.Joiner(std.Err)(ctx, func(r watch.Report) { fmt.Fprintln(std.Err, r.Said) })
		if err != nil {
			return done, err
		}
		all[0], err = jobs[0](ctx, table.Scope(flock, "describe"))
		sent, left := leave()
		done.BytesSent, errs[0] = sent, errors.Join(err, left)
	} else {
		table.Together(len(jobs), func(flock table.Flock, i int) { all[i], errs[i] = jobs[i](ctx, table.Scope(flock, "describe")) })
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, table.ErrMember) {
			return done, err
		}
	}
	if all[0] == nil { // another member has failed, and reports it there
		return done, errors.Join(errs...)
	}
	if done.Summary = all[0]; source != nil {
		damaged := source.Files.Damaged()
		if done.Damaged = damaged.Count; damaged.Count > 0 {
			fmt.Fprint(std.Err, damaged.String())
		}
		for _, note := range source.ColumnNotes(o.Table.Drop) {
			fmt.Fprintln(std.Err, note)
		}
	}
	if o.Unrelated >= 0 {
		done.Tolerance, done.Unrelated = &o.Unrelated, append([]string{}, done.Summary.Unrelated(o.Unrelated)...)
	}
	return done, errors.Join(errs...)
}

// jobs returns the jobs of all members on this machine; source has the rows of a table.
func (o *options) jobs(ctx context.Context, std cli.Streams) (jobs []job, source *rows.Source, err error) {
	if o.Dataset != "" && !o.IsTable() {
		jobs, err = o.counting(ctx)
		return jobs, nil, err
	}
	if source, err = rows.Open(ctx, o.Table, o.Peers > 1); err != nil {
		return nil, nil, err
	}
	o.Columns = source.Columns()
	c := summary.Config{Target: o.Table.Target, Drop: o.Table.Drop, Least: o.Least}
	for i := range o.Peers {
		share := rows.Share{Source: source, Table: o.Table, Number: i, Peers: o.Peers, Seed: o.Seed}
		jobs = append(jobs, func(ctx context.Context, flock table.Flock) (*summary.Summary, error) {
			return c.Describe(ctx, flock, share)
		})
	}
	return jobs, source, nil
}
