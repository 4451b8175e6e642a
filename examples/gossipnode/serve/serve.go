// Package serve is the command serve: predictions over HTTP, of model files that may be replaced. Listen serves the
// model of a peer that trains, too.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/serve"
)

// options are the flags of serve.
type options struct {
	settings.Table
	models        []string
	heldOut       []string
	listen, token string
	combine       string
	every         time.Duration
	margin        float64
	verbose       bool
}

// Command makes the command serve.
func Command(std cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer predictions over HTTP, of a model that may change",
		Long: `Serve answers POST /predict with what a model says of rows, GET /model with what it is,
and /healthz and /metrics. The model is a file of fit, or a neural one, on a table or on
pictures, as export writes it; of several, the predictions are averaged, or the classes
voted. (A peer that trains serves its own model with run --serve.)

Rows are JSON: an array of rows, or {"rows": [...]}; a row is an object by column names,
or an array of values in the order that /model tells. A value that is not known is null.
A picture is a row of the levels of its pixels, 0 to 255, line by line.

The files are watched. A newer model is served once it is no worse on the rows of
--held-out, and the one before is served again as soon as it measures better there; without
--held-out a newer model is served as it comes. On other addresses than this machine's,
clients need a token.`,
		Example: `  gossipnode serve --model late.model --listen 127.0.0.1:8000
  curl -d '[{"carrier": "UA", "dep_delay": 12}]' http://127.0.0.1:8000/predict
  gossipnode serve --model a.model --model b.model --combine vote --held-out newest.csv`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := cli.Resolve(cmd)
			if err != nil {
				return err
			}
			if err := from.Usage(o.faults()...); err != nil {
				return err
			}
			ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
			defer release()
			return o.run(ctx, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&o.models, "model", nil, "`FILE` of a model, made by fit --out, or of a run by export; repeatable")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8000", "host:port to serve at; without a host on this machine only")
	flags.StringVar(&o.combine, "combine", combineAverage, "how several models are combined: "+cli.List([]string{combineAverage, combineVote}))
	flags.StringArrayVar(&o.heldOut, "held-out", nil, "`FILE` of rows with their target, on which newer models are measured; it is watched too; repeatable")
	flags.DurationVar(&o.every, "check-every", 2*time.Second, fmt.Sprintf("time between two looks at the files, %s to %s", serve.MinEvery, serve.MaxEvery))
	flags.Float64Var(&o.margin, "margin", 0, "how much less a newer model may get on --held-out: of accuracy, or of the explained variance of numbers, 0 to 1")
	flags.StringVar(&o.token, "token", "", "`FILE` of the token that clients need, instead of one that is drawn and logged")
	flags.StringVar(&o.Format, "format", "", "csv, tsv, jsonl or parquet, for files of rows whose names do not say")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "log each model that is served")
	o.RegisterReading(flags)
	cli.TakeFile(flags)
	return cmd
}

func (o options) faults() (faults cli.Faults) {
	faults.If(len(o.models) == 0, "model", "is missing: give the file that fit --out or export has written")
	faults.Add(cli.OneOf("combine", o.combine, []string{combineAverage, combineVote}))
	faults.If(o.every < serve.MinEvery || o.every > serve.MaxEvery, "check-every", "%s: want %s to %s", o.every, serve.MinEvery, serve.MaxEvery)
	faults.If(!(o.margin >= 0 && o.margin <= 1), "margin", "%v: want 0 to 1", o.margin)
	return append(faults, o.ReadingFaults()...)
}

// run serves until ctx ends.
func (o options) run(ctx context.Context, std cli.Streams) (err error) {
	level := zapcore.WarnLevel
	if o.verbose {
		level = zapcore.InfoLevel
	}
	log := cli.NewLog(level, std.Err)
	files := &modelFiles{watched{paths: o.models}, o.combine}
	first, err := files.next(ctx) // a fault of the files ends the command
	if err != nil {
		return cli.Config(fmt.Errorf("--model: %w", err))
	}
	checks := serve.Checks{Every: o.every, Margin: o.margin, Next: func(ctx context.Context) (serve.Model, error) {
		if m := first; m != nil {
			first = nil
			return m, nil
		}
		return files.next(ctx)
	}}
	if o.heldOut != nil {
		j := &judge{watched: watched{paths: o.heldOut}, reading: o.Reading()}
		if _, err := j.measure(ctx, first); err != nil {
			return cli.Config(err)
		}
		checks.Judge = j.measure
	} else {
		log.Warn("newer models are served as they come: with --held-out they are measured before")
	}
	s, err := Listen(o.listen, o.token)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	served := make(chan struct{})
	began := sync.OnceFunc(func() { close(served) })
	checks.Told = func(serve.Checked) { began() }
	s.Serve(checks, log, o.token == "")
	<-served
	if _, err := io.WriteString(std.Out, s.URL()+"\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
