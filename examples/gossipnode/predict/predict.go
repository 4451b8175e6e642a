// Package predict is the command predict: what a model file says of rows.
package predict

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// options are the flags of predict.
type options struct {
	model, out, format string
	data               []string
	tolerance          float64
	json               bool
}

// toStdout is the --out that is standard output.
const toStdout = "-"

// Command makes the command that predicts.
func Command(std cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "predict",
		Short: "Predict the rows of a table with a model of fit",
		Long: `Predict prepares the rows of a table as fit prepared those that it fitted, and writes
what the model says of each as CSV: the number of the row in --data, from 0, then the
likeliest class and the probability of each, or a number, the index of a cluster, or
coordinates along components.

The table has the columns that fit was given, in any order; the target and others are not
looked at. Rows that cannot be read are left out and counted, up to --tolerance of them.`,
		Example: `  gossipnode predict --model late.model --data tomorrow.csv --out late.csv
  gossipnode predict --model late.model --data tomorrow.parquet --out -`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := cli.Resolve(cmd)
			if err != nil {
				return err
			}
			var faults cli.Faults
			faults.If(o.model == "", "model", "is missing: give the file that fit --out has written")
			faults.If(len(o.data) == 0, "data", "is missing: give the file of rows to predict")
			faults.If(o.json && o.out == toStdout, "json", "needs --out FILE: the predictions go to standard output")
			if err := from.Usage(faults...); err != nil {
				return err
			}
			ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
			defer release()
			return o.run(ctx, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.model, "model", "", "`FILE` of a model, made by fit --out")
	flags.StringArrayVar(&o.data, "data", nil, "`FILE` of rows, a folder or a pattern of such, as fit takes; repeatable")
	flags.StringVar(&o.out, "out", toStdout, "`FILE` to write to; - is standard output")
	flags.StringVar(&o.format, "format", "", "csv, tsv, jsonl or parquet, for files whose names do not say")
	flags.Float64Var(&o.tolerance, "tolerance", 0, fmt.Sprintf("share of the rows that may be damaged and are left out (default %g)", read.DefaultTolerance))
	flags.BoolVar(&o.json, "json", false, "print what was done as one JSON object; it is the last line of standard output")
	cli.TakeFile(flags)
	return cmd
}

// done is what --json prints.
type done struct {
	Rows    int64  `json:"rows"`
	Damaged int64  `json:"damaged"`
	Out     string `json:"out"`

	leftOut read.Damaged
}

// String tells it in words.
func (d done) String() string {
	text := fmt.Sprintf("%s predicted: %s\n", cli.Plural(uint64(d.Rows), "row"), d.Out)
	return text + d.leftOut.String()
}

func (o options) run(ctx context.Context, std cli.Streams) error {
	p, err := load(o.model)
	if err != nil {
		return cli.Config(fmt.Errorf("--model %s: %w", o.model, err))
	}
	rows, err := o.open(p.Features)
	if err != nil {
		return cli.Config(err)
	}
	told := done{Out: o.out}
	write := func(out io.Writer) error {
		told.Rows, err = p.write(ctx, rows.Rows, out)
		return err
	}
	if o.out == toStdout {
		err = write(std.Out)
	} else {
		err = files.Replace(o.out, 0o644, write)
	}
	if err != nil {
		return err
	}
	told.leftOut = rows.Damaged()
	told.Damaged = told.leftOut.Count
	if o.out == toStdout {
		_, err = io.WriteString(std.Err, told.String())
		return err
	}
	return cli.Print(told, o.json, std)
}

func load(path string) (predictor, error) {
	in, err := os.Open(path)
	if err != nil {
		return predictor{}, err
	}
	file, err := learn.Load(in)
	if err = errors.Join(err, in.Close()); err != nil {
		return predictor{}, err
	}
	return newPredictor(file)
}

// open looks at the rows, whose columns are of the kinds that the model was fitted with.
func (o options) open(features []table.Field) (*read.Table, error) {
	t, err := read.Open(o.data, read.Config{Format: o.format, Tolerance: o.tolerance})
	if err != nil {
		return nil, err
	}
	schema := table.Schema{Fields: append([]table.Field(nil), t.Schema().Fields...)}
	for _, f := range features {
		at := schema.Find(f.Name)
		if at < 0 {
			return nil, fmt.Errorf("--data has no column %q, which the model was fitted with", f.Name)
		}
		schema.Fields[at].Kind = f.Kind
	}
	return t, t.Pin(&schema)
}
