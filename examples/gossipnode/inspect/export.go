package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/tensor"
)

// ExportCommand makes the command that writes a checkpoint's model for other programs.
func ExportCommand(std cli.Streams) *cobra.Command {
	var (
		out, pipeline string
		force, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "export FILE...",
		Short: "Write the model of a checkpoint as a plain safetensors file",
		Long: `Export reads a checkpoint, or the newest of a folder, and writes the model in it for
other programs: the model's tensors as F32, without the optimizer's state and this
program's metadata. It writes into the file what serve and predict need too: of a model on
a table how rows are prepared, from pipeline.json beside the checkpoints or --pipeline; of
one on pictures their shape, number of classes and normalization, from the checkpoint. Where
the model was cut into stages, give a checkpoint of each: they are joined.`,
		Example: `  gossipnode export DIR/checkpoint-000042.safetensors --out model.safetensors
  python -c 'from safetensors.numpy import load_file; print(load_file("model.safetensors").keys())'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return cli.Usagef("export needs --out, the file to write")
			}
			file, model, err := export(args, out, pipeline, force)
			if err != nil {
				return err
			}
			return cli.Print(exported{out, file, model.Layout().Count(), model.Layout().Len()}, asJSON, std)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	cmd.Flags().StringVar(&pipeline, "pipeline", "", "`FILE` of how the rows of a table are prepared, if it is not beside the checkpoints")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// exported is the result of export.
type exported struct {
	File    string `json:"file"`
	From    string `json:"from"`
	Tensors int    `json:"tensors"`
	Values  int    `json:"values"`
}

func (e exported) String() string {
	return fmt.Sprintf("%s: %s, %s of %s\n", e.File, cli.Plural(uint64(e.Tensors), "tensor"), cli.Plural(uint64(e.Values), "value"), e.From)
}

// export writes the model of a checkpoint, or of those of all stages, to a file.
func export(from []string, to, pipeline string, force bool) (file string, model *tensor.Params, err error) {
	file, read, model, err := modelIn(from[0])
	if err == nil {
		model, err = joined(read, model, from[1:])
	}
	if err != nil {
		return "", nil, err
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return "", nil, cli.Usagef("%s is a folder: give a file with --out", to)
	}
	if _, err := os.Lstat(to); !force && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, cli.Usagef("%s is there already: give another file with --out, or --force to replace it", to)
	}
	// Other programs look for this: the tensors are like those of a PyTorch model.
	plain := map[string]string{"format": "pt"}
	for _, key := range []string{rows.PicturesKey, rows.NormKey, "run", "dataset", "model", "steps", "flock_steps"} {
		if text := read.Metadata[key]; text != "" {
			plain[key] = text
		}
	}
	untold := map[string]string{nets.GPT: nets.HeadsKey, nets.GRU: nets.ContextKey}[read.Metadata["model"]]
	if size := valueIn(read, untold); size != "" {
		plain[untold] = size
	}
	if plain[rows.PreparedKey], err = preparedFor(read, file, pipeline); err != nil {
		return "", nil, err
	}
	if plain[rows.PreparedKey] == "" {
		delete(plain, rows.PreparedKey)
	}
	if err := files.Replace(to, 0o644, func(w io.Writer) error { return model.WriteSafetensors(w, plain) }); err != nil {
		return "", nil, fmt.Errorf("exporting to %s: %w", to, err)
	}
	return file, model, nil
}

// modelIn reads the model of a checkpoint.
func modelIn(from string) (file string, read *checkpoint.File, model *tensor.Params, err error) {
	if file, read, err = open(from); err != nil {
		return "", nil, nil, err
	}
	if err := read.Intact(); err != nil {
		return "", nil, nil, orBefore(from, file, fmt.Errorf("reading %s: %w", file, err))
	}
	if model, err = read.Model(); err != nil {
		return "", nil, nil, fmt.Errorf("exporting %s: %w", file, err)
	}
	return file, read, model, nil
}

// joined joins the model of a checkpoint with those of the other stages, if there are any.
func joined(of *checkpoint.File, model *tensor.Params, more []string) (*tensor.Params, error) {
	stages := 1
	field := valueIn(of, rundescription.StagesField)
	if text, _, cut := strings.Cut(field, " "); cut {
		if stages, _ = strconv.Atoi(text); strings.HasSuffix(field, rundescription.EndsStay) {
			stages-- // both ends are in one checkpoint
		}
	}
	if len(more)+1 != stages {
		return nil, cli.Usagef("the model was trained in %s, and %d are given: give a checkpoint of each", cli.Plural(uint64(stages), "stage"), len(more)+1)
	}
	var specs []tensor.Spec
	var values tensor.Vector
	for i := 0; ; i++ {
		for _, r := range model.Layout().Ranges() {
			specs = append(specs, tensor.Spec{Name: r.Name, Shape: r.Shape})
		}
		if values = append(values, model.Vector()...); i == len(more) {
			break
		}
		file, other, next, err := modelIn(more[i])
		if err != nil {
			return nil, err
		}
		if other.Metadata["run"] != of.Metadata["run"] || other.Metadata["model"] != of.Metadata["model"] {
			return nil, cli.Usagef("%s is of another run, or another model", file)
		}
		model = next
	}
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("joining stages: %w: give one checkpoint of each stage", err))
	}
	return tensor.WrapParams(layout, values)
}

// preparedFor returns the preparation of rows for the model of a checkpoint, as JSON; "" if the model is not of a
// table, or no file has it.
func preparedFor(read *checkpoint.File, file, pipeline string) (string, error) {
	if !slices.Contains(settings.TableFormats(), read.Metadata["dataset"]) {
		return "", nil
	}
	dir, places := filepath.Dir(file), []string{pipeline}
	if pipeline == "" { // in a local run the folder of a peer is within that of the run
		places = []string{filepath.Join(dir, settings.PipelineName), filepath.Join(dir, "..", settings.PipelineName)}
	}
	p, err := rows.Beside(valueIn(read, "preparation"), places...)
	switch {
	case err != nil:
		return "", err
	case p == nil && pipeline != "":
		return "", cli.Config(fmt.Errorf("--pipeline %s: it does not exist, or is not how the rows of this model were prepared", pipeline))
	case p == nil:
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// valueIn returns the value of a setting in the run of a checkpoint; "" if the checkpoint does not have it.
func valueIn(read *checkpoint.File, setting string) string {
	progress, err := read.Progress()
	if err != nil {
		return "" // the weights are valid without it
	}
	var run description.Description
	_ = json.Unmarshal(progress.Description.Text, &run) // without a description, run stays empty
	value, _ := run.Value(setting)
	return value
}
