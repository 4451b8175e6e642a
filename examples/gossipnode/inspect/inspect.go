// Package inspect has the commands that read checkpoints and model files: inspect and export.
package inspect

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// Inspection describes a safetensors file.
type Inspection struct {
	File string `json:"file"`
	// Kind is checkpoint or model. Sound tells whether the checksum is right and all values are finite.
	Kind     string            `json:"kind"`
	Sound    bool              `json:"sound"`
	Run      string            `json:"run,omitempty"`
	Dataset  string            `json:"dataset,omitempty"`
	Model    string            `json:"model,omitempty"`
	Peer     string            `json:"peer,omitempty"`
	Saved    string            `json:"saved,omitempty"`
	Progress *Progress         `json:"progress,omitempty"`
	Layout   string            `json:"layout"`
	Values   int               `json:"values"`
	Norm     cli.Number        `json:"norm"`
	Tensors  []Tensor          `json:"tensors"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Progress is the progress of the peer and its flock.
type Progress struct {
	Step        uint64          `json:"step"`
	Age         uint64          `json:"age"`
	FlockSteps  uint64          `json:"flock_steps"`
	Incarnation uint64          `json:"incarnation"`
	Others      int             `json:"others"` // number of other incarnations in the checkpoint
	Optimizer   string          `json:"optimizer,omitempty"`
	Schedule    json.RawMessage `json:"schedule,omitempty"`
}

// Tensor is a tensor and the size of its values.
type Tensor struct {
	Name     string     `json:"name"`
	Shape    []int      `json:"shape"`
	Values   int        `json:"values"`
	Norm     cli.Number `json:"norm"`
	MaxAbs   cli.Number `json:"max_abs"`
	Finite   bool       `json:"finite"`
	Optimize bool       `json:"optimizer,omitempty"` // of the optimizer, not of the model
}

// Command makes the command inspect.
func Command(std cli.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Tell what is in a checkpoint or a model file",
		Long: `Inspect reads a safetensors file and prints whose it is and how far that peer and its
flock were, if it is a checkpoint of this program, and name, shape and norm of every
tensor. Of a folder of checkpoints it reads the newest. It checks the file as run
does; the exit code is 1 if it is damaged or holds values that are not finite, 78 if
there is none. Of a model of fit, or a pipeline.json, it tells target, features, stages,
and which columns gain or weigh most.`,
		Example: `  gossipnode inspect DIR/checkpoint-000042.safetensors
  gossipnode inspect DIR --json`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if known, ok, err := fitted(args[0]); err != nil {
				return err
			} else if ok {
				return known.print(asJSON, std.Out)
			}
			found, err := Inspect(args[0])
			if err != nil {
				return err
			}
			if err := found.print(asJSON, std.Out); err != nil {
				return err
			}
			if !found.Sound {
				return orBefore(args[0], found.File, fmt.Errorf("%s is damaged: its checksum does not fit, or values are not finite", found.File))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// oneFile returns an error unless there is exactly one argument.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("%s takes one file or folder, and %d are given", cmd.Name(), len(args))
	}
	return nil
}

// newestIn returns path, or the newest checkpoint if that is a folder.
func newestIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", cli.Config(fmt.Errorf("looking for a checkpoint: %w", err))
	}
	if !info.IsDir() {
		return path, nil
	}
	names, err := checkpoint.Folder{Dir: path}.Names()
	if err != nil {
		return "", cli.Config(fmt.Errorf("looking for a checkpoint: %w", err))
	}
	if len(names) == 0 {
		return "", cli.Config(fmt.Errorf("no checkpoint in %s: of a local run each peer has a folder, such as %s", path, filepath.Join(path, "peer-0")))
	}
	return filepath.Join(path, names[len(names)-1]), nil
}

// orBefore adds to an error about the newest file of a folder that run would use the one before it. path is the
// argument of the command.
func orBefore(path, file string, err error) error {
	if path == file {
		return err
	}
	names, _ := checkpoint.Folder{Dir: path}.Names()
	at := slices.Index(names, filepath.Base(file))
	if at < 1 {
		return err
	}
	return fmt.Errorf("%w; the one before it is %s", err, filepath.Join(path, names[at-1]))
}

// open reads a safetensors file, or the newest one of a folder.
func open(path string) (file string, read *checkpoint.File, err error) {
	if file, err = newestIn(path); err != nil {
		return "", nil, err
	}
	if read, err = checkpoint.Open(file); err != nil {
		return "", nil, orBefore(path, file, err)
	}
	return file, read, nil
}

// Inspect reads a safetensors file, or the newest checkpoint of a folder, and describes it.
func Inspect(path string) (Inspection, error) {
	file, read, err := open(path)
	if err != nil {
		return Inspection{}, err
	}
	params, metadata := read.Tensors, read.Metadata
	found := Inspection{File: file, Kind: "model", Sound: read.Intact() == nil, Layout: metadata["layout"]}
	if read.IsCheckpoint() {
		found.Kind, found.Run, found.Dataset, found.Model = "checkpoint", metadata["run"], metadata["dataset"], metadata["model"]
		found.Peer, found.Saved = metadata["peer"], metadata["saved"]
		if found.Progress, err = progressIn(read); err != nil {
			return found, fmt.Errorf("reading %s: %w", file, err)
		}
	} else {
		hash := params.Layout().Hash()
		found.Layout, found.Metadata = hex.EncodeToString(hash[:]), metadata
	}
	squares := 0.0
	for _, at := range params.Layout().Ranges() {
		values := params.Vector()[at.Offset : at.Offset+at.Len]
		t := Tensor{
			Name: at.Name, Shape: append([]int{}, at.Shape...), Values: at.Len, Finite: tensor.Finite(values),
			Norm: cli.Number(tensor.Norm2(values)), MaxAbs: cli.Number(tensor.MaxAbs(values)),
			Optimize: read.IsCheckpoint() && checkpoint.IsOptimizers(at.Name),
		}
		found.Sound = found.Sound && t.Finite
		found.Tensors = append(found.Tensors, t)
		if !t.Optimize {
			found.Values += at.Len
			squares += tensor.SumSquares(values)
		}
	}
	found.Norm = cli.Number(math.Sqrt(squares))
	return found, nil
}

// progressIn reads the progress in a checkpoint's metadata.
func progressIn(read *checkpoint.File) (*Progress, error) {
	c, err := read.Progress()
	if err != nil {
		return nil, err
	}
	found := &Progress{
		Step: c.Steps, Age: c.Age, FlockSteps: c.FlockSteps, Incarnation: c.Incarnation, Others: len(c.Past), Optimizer: read.Metadata["optimizer"],
	}
	if text := read.Metadata["schedule"]; json.Valid([]byte(text)) {
		found.Schedule = json.RawMessage(text)
	}
	return found, nil
}

func (i Inspection) print(asJSON bool, out io.Writer) error {
	if asJSON {
		return json.NewEncoder(out).Encode(i)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	line("file", i.File)
	for _, l := range [][2]string{
		{"kind", i.Kind}, {"run", i.Run}, {"data set", i.Dataset}, {"model", i.Model}, {"peer", i.Peer}, {"saved", i.Saved},
	} {
		line(l[0], Quoted(l[1]))
	}
	if p := i.Progress; p != nil {
		line("step", fmt.Sprintf("%d of this peer, %d of the flock, %d in the model; incarnation %d", p.Step, p.FlockSteps, p.Age, p.Incarnation))
		line("optimizer", Quoted(p.Optimizer))
		if len(p.Schedule) > 0 {
			line("schedule", InWords(string(p.Schedule)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(i.Metadata)) {
		line("metadata", fmt.Sprintf("%.64q: %.256q", key, i.Metadata[key]))
	}
	line("layout", Quoted(i.Layout))
	line("values", fmt.Sprintf("%d, norm %.6g", i.Values, float64(i.Norm)))
	fmt.Fprintf(w, "\nTENSOR\tSHAPE\tVALUES\tNORM\tLARGEST\n")
	for _, t := range i.Tensors {
		note := ""
		if !t.Finite {
			note = "\tnot finite"
		}
		fmt.Fprintf(w, "%s\t%v\t%d\t%.6g\t%.6g%s\n", Quoted(t.Name), t.Shape, t.Values, float64(t.Norm), float64(t.MaxAbs), note)
	}
	return w.Flush()
}

// InWords describes a learning rate's schedule, an optim.Schedule in JSON, in words. It returns any other text as it
// is, or quoted if it could control a terminal.
func InWords(course string) string {
	var s optim.Schedule
	shapes := map[optim.Shape]string{optim.Cosine: "cosine", optim.Constant: "constant", optim.Stepped: "step"} // as in --schedule
	if err := json.Unmarshal([]byte(course), &s); err != nil || shapes[s.Shape] == "" {
		return Quoted(course)
	}
	text := fmt.Sprintf("%s, rate %g, warm-up %g", shapes[s.Shape], s.Rate, s.Warmup)
	if s.Floor > 0 {
		text += fmt.Sprintf(", floor %g", s.Floor)
	}
	return text
}

// Quoted makes a text from a file safe for a terminal: it is quoted unless it is plain.
func Quoted(text string) string {
	if q := fmt.Sprintf("%.256q", text); strings.ContainsAny(q, `\`) {
		return q
	}
	return text
}
