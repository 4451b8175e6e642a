package fit

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/meet"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// options are the flags of fit.
type options struct {
	meet.Peer // has settings as in run, and the table
	Learner   learnerOptions
	OnDisk    bool
	Peers     int
	InProcess bool
	Alone     bool
	Out       string
	// Unrelated is the share of the target that a column must predict to be used; 0 uses all.
	Unrelated float64
	// Part is the number of this process among the peers of a local fit, from 0; -1 outside of one.
	Part int
}

const (
	maxLocalPeers = 64

	topicRows    = "Rows"
	topicLearner = "Learner"
)

func (o *options) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	t, l := &o.Table, &o.Learner
	flags.StringArrayVar(&t.Data, "data", nil, "`FILE` of rows, a folder or a pattern of such: CSV, TSV, JSON lines or Parquet, plain, gzip or zstd; repeatable")
	t.Register(flags)
	flags.Float64Var(&o.Unrelated, "drop-unrelated", 0, "leave out columns that tell at most this share of the target, of the rows that train, as describe --unrelated names them")
	flags.StringVar(&t.Format, "format", "", "csv, tsv, jsonl or parquet, for files whose names do not say")
	flags.BoolVar(&o.OnDisk, "on-disk", false, "read the files again for each pass over the rows until they are prepared, instead of holding them in memory")
	flags.IntVar(&t.Memory, "memory", settings.DefaultTableMemory, "MiB that the rows of --data may take as they are read; preparing them takes several times as much")
	cli.Group(flags, topicRows, "data", "target", "drop", "split")
	flags.StringVar(&l.Name, "learner", learnerNames()[0], "one of "+cli.List(learnerNames()))
	flags.IntVar(&l.Trees, "trees", 100, "trees of forest and boost")
	flags.IntVar(&l.Leaves, "leaves", 0, "most leaves of a tree (default: 31 of boost, any number of tree)")
	flags.IntVar(&l.Depth, "depth", 0, "most depth of a tree (default: 10 of tree, 14 of forest, any of boost)")
	flags.IntVar(&l.LeafRows, "leaf-rows", 0, "least rows of a leaf (default: 20 of tree and boost, 1 of forest)")
	flags.Float64Var(&l.Rate, "rate", 0.1, "learning rate of boost")
	flags.Float64Var(&l.Penalty, "penalty", 1, "how much weights of ridge, logistic, softmax and svm cost")
	flags.Float64Var(&l.L1, "l1", 0, "share of the penalty of logistic and softmax that is of absolute values, 0 to 1: sets weights to 0")
	flags.IntVar(&l.Clusters, "clusters", 8, "clusters of kmeans")
	flags.IntVar(&l.Components, "components", 0, "components of pca (default: 10, or as many as columns)")
	flags.IntVar(&l.Iterations, "iterations", 0, "most iterations of "+cli.List(iterating)+" (default: the learner's own)")
	flags.Float64Var(&l.Smoothing, "smoothing", 0, "what is added to each count of multinomial-nb and bernoulli-nb, word of a topic of lda, variance of gaussian-nb (default: the learner's own)")
	flags.StringVar(&l.User, "user", "user", "column of users, for als and implicit-als; a user's rows are all at one peer")
	flags.StringVar(&l.Item, "item", "item", "column of items, for als, where --target is a rating, and implicit-als, where it is how often (default: once a row)")
	flags.IntVar(&l.Factors, "factors", 10, "factors of a user and of an item, for als and implicit-als")
	flags.Float64Var(&l.Confidence, "confidence", 40, "by how much more having had an item once counts than never, for implicit-als")
	flags.StringVar(&l.Text, "text", "text", "column of texts, for lda")
	flags.IntVar(&l.Topics, "topics", 10, "topics of lda")
	flags.StringVar(&l.Apart, "apart", "", "also combine models that peers fit on their own rows alone, for comparison: "+cli.List(combinations()))
	flags.IntVar(&l.Folds, "folds", 0, "also cross-validate: fit on all but one of so many parts of the rows that train, for each part")
	flags.Uint64Var(&l.Seed, "seed", 1, "for what is drawn by chance")
	cli.Group(flags, topicLearner, "learner", "trees", "leaves", "depth", "clusters", "components", "iterations", "smoothing")
	flags.IntVar(&o.Peers, "peers", 1, "peers on this machine, each with its part of the rows; 1 is one process with all")
	flags.StringVar(&t.Shard, "shard", settings.DefaultShard, "how the rows are divided among --peers: rows (at random) or by=COLUMN (each value at one peer)")
	flags.BoolVar(&o.InProcess, "in-process", false, "peers of --peers are goroutines of this process, which reads each row once")
	flags.BoolVar(&o.Alone, "alone", false, "fit each peer of --peers alone with its own rows too, for comparison")
	o.Register(flags)
	cli.Group(flags, "Peers", "peers", "shard", "listen", "join", "min-peers")
	flags.StringVar(&o.Out, "out", "", "`FILE` to write the model to, for predict")
	flags.IntVar(&o.Part, "member", -1, "number of this peer of a local fit")
	_ = flags.MarkHidden("member") // fails only for a flag that does not exist
	cli.Group(flags, "Results", "out", "json")
}

// load resolves the flags, takes over those of the fit to join, and returns their errors.
func (o *options) load(cmd *cobra.Command, std cli.Streams) error {
	from, err := o.Load(cmd)
	if err != nil {
		return err
	}
	if err := from.Usage(o.SumFaults()...); err != nil {
		return err
	}
	o.Doing, o.Topics, o.Local = "fit", []string{topicRows, topicLearner}, o.Part >= 0
	o.Share(cmd.Flags())
	if len(o.Join) > 0 && o.Part < 0 {
		ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
		err := o.TakeOver(ctx, from, cmd.Flags(), std)
		if release(); err != nil {
			return err
		}
	}
	var faults cli.Faults
	faults.Add(o.SumFaults()...) // some flags may have been taken over
	t, l := o.Table, o.Learner
	faults.Add(t.Faults()...)
	faults.Add(cli.Within("memory", t.Memory, 1, 1<<20), cli.Unwritable("out", o.Out))
	faults.Add(cli.OneOf("learner", l.Name, learnerNames()), l.faults())
	faults.If(l.hasTarget() && l.Name != preferences && t.Target == "", "target", "is missing: give the column that %s is to learn, or a comparison such as 'arr_delay>15'", l.Name)
	faults.If(!(o.Unrelated >= 0 && o.Unrelated < 1) || o.Unrelated > 0 && (!l.hasTarget() || l.columns() != nil), "drop-unrelated", "%g: want 0 or more, below 1, and a learner with a target and no users", o.Unrelated)
	faults.If(o.Unrelated > 0 && t.Distinct, "drop-unrelated", "with --distinct, rows that differ only in columns left out would count as equal: give the names as describe --unrelated tells them, with --drop, if that is meant")
	faults.If(l.Apart != "" && !slices.Contains(combinations(), l.Apart), "apart", "%q: want %s", l.Apart, cli.List(combinations()))
	faults.If(l.Apart != "" && (!l.hasTarget() || l.columns() != nil), "apart", "is for learners with a target and no users: leave it out for %s", l.Name)
	_, err = l.parts()
	faults.If(l.Folds != 0 && err != nil, "folds", "%d: want 2 or more parts, or 0 for none", l.Folds)
	faults.If(l.Folds != 0 && (!l.hasTarget() || l.Name == preferences), "folds", "is for learners with a target: leave it out for %s", l.Name)
	o.Learner.Floor, o.Table.Categories = t.Floor, append(slices.Clone(t.Categories), l.columns()...)
	if (l.Name == ratings || l.Name == preferences) && from.Source("shard") == cli.FromDefault {
		o.Table.Shard = "by=" + l.User
	}
	faults.Add(cli.Within("peers", o.Peers, 1, maxLocalPeers))
	apart := from.Source("listen") != cli.FromDefault || len(o.Join) > 0
	faults.If(apart && o.Part < 0 && o.Peers > 1, "peers", "is for peers on this machine: leave it out where --listen or --join are given")
	faults.If(o.Alone && apart && o.Part < 0, "alone", "needs --peers: held-out rows of others are not seen here")
	if !apart {
		o.Listen = nil
	}
	return from.Usage(faults...)
}

// apart tells whether the other peers are elsewhere.
func (o *options) apart() bool { return len(o.Listen) > 0 }

// arguments returns the flags of a peer of a local fit.
func arguments(flags *pflag.FlagSet, number, peers int, join []string) []string {
	args := []string{"fit", "--report", fmt.Sprintf("--member=%d", number), "--listen=" + settings.Loopback, fmt.Sprintf("--min-peers=%d", peers)}
	for _, address := range join {
		args = append(args, "--join="+address)
	}
	own := []string{"report", "member", "listen", "join", "json", "min-peers", cli.ConfigFlag}
	if number > 0 {
		own = append(own, "out")
	}
	return append(args, cli.Arguments(flags, own...)...)
}
