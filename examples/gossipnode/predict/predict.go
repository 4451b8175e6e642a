// Package predict is the command predict: the predictions of a model file for rows.
package predict

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// options are the flags of predict.
type options struct {
	settings.Table
	model, out string
	json       bool
}

// toStdout is the value of --out for standard output.
const toStdout = "-"

// Command makes the command predict.
func Command(std cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "predict",
		Short: "Predict the rows of a table with a model of fit, or a neural one",
		Long: `Predict prepares the rows of a table as fit prepared those that it fitted, and writes
what the model says of each as CSV: the number of the row in --data, from 0, then the
likeliest class and the probability of each, or a number, the index of a cluster, or
coordinates along components. A neural model that local or run has trained is given as
export writes it. If that was on pictures, a row has columns pixel0, pixel1 and so on: the
levels of its pixels, 0 to 255, line by line, the channels of a pixel side by side.

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
			faults.If(o.model == "", "model", "is missing: give the file that fit --out or export has written")
			faults.If(len(o.Data) == 0, "data", "is missing: give the file of rows to predict")
			faults.If(o.json && o.out == toStdout, "json", "needs --out FILE: the predictions go to standard output")
			if err := from.Usage(append(faults, o.ReadingFaults()...)...); err != nil {
				return err
			}
			ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
			defer release()
			return o.run(ctx, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.model, "model", "", "`FILE` of a model, made by fit --out, or of a run by export")
	flags.StringArrayVar(&o.Data, "data", nil, "`FILE` of rows, a folder or a pattern of such, as fit takes; repeatable")
	flags.StringVar(&o.out, "out", toStdout, "`FILE` to write to; - is standard output")
	flags.StringVar(&o.Format, "format", "", "csv, tsv, jsonl or parquet, for files whose names do not say")
	o.RegisterReading(flags)
	flags.BoolVar(&o.json, "json", false, "print what was done as one JSON object; it is the last line of standard output")
	cli.TakeFile(flags)
	return cmd
}

// done is the output of --json.
type done struct {
	Rows    int64  `json:"rows"`
	Damaged int64  `json:"damaged"`
	Out     string `json:"out"`

	leftOut read.Damaged
}

// String describes the result.
func (d done) String() string {
	text := fmt.Sprintf("%s predicted: %s", cli.Plural(uint64(d.Rows), "row"), d.Out)
	return strings.TrimSuffix(text, ": "+toStdout) + "\n" + d.leftOut.String()
}

func (o options) run(ctx context.Context, std cli.Streams) error {
	file, err := rows.OpenModel(o.model)
	if err != nil {
		return cli.Config(fmt.Errorf("--model %s: %w", o.model, err))
	}
	table, err := o.open(ctx, file)
	if err != nil {
		return cli.Config(rows.Remedied(err))
	}
	result := done{Out: o.out}
	write := func(out io.Writer) error {
		result.Rows, err = predictor{file}.write(ctx, table.Rows, out)
		return err
	}
	if o.out == toStdout {
		err = write(std.Out)
	} else {
		err = files.Replace(o.out, 0o644, write)
	}
	if err != nil {
		return rows.Remedied(err)
	}
	result.leftOut = table.Damaged()
	result.Damaged = result.leftOut.Count
	if o.out == toStdout {
		_, err = io.WriteString(std.Err, result.String())
		return err
	}
	return cli.Print(result, o.json, std)
}

// open opens the rows. It reads the columns that the model was fitted with, with the kinds that they had then.
func (o options) open(ctx context.Context, file learn.File) (*read.Table, error) {
	features, reading := file.Features, o.Reading()
	reading.Others = true
	most, err := rows.BatchRows(file, read.DefaultBatchRows)
	if err != nil {
		return nil, err
	}
	reading.BatchRows = most
	t, err := read.Open(ctx, o.Data, reading)
	if err != nil {
		return nil, err
	}
	for _, f := range features {
		if t.Schema().Find(f.Name) < 0 {
			return nil, fmt.Errorf("--data has no column %q, which the model was fitted with", f.Name)
		}
	}
	return t, t.Pin(&table.Schema{Fields: features})
}
