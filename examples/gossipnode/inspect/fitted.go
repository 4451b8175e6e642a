package inspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Fitted is what there is to say of a model of fit, or of what prepares rows.
type Fitted struct {
	File     string        `json:"file"`
	Kind     string        `json:"kind"` // fitted model, or preparation of rows
	Model    string        `json:"model,omitempty"`
	Target   string        `json:"target,omitempty"`
	Classes  []string      `json:"classes,omitempty"`
	Features []table.Field `json:"features"`
	Stages   []string      `json:"stages"`
	Columns  []Column      `json:"columns,omitempty"` // that weigh most come first
}

// Column is one that a model knows, as the stages make it: what splits by it gain, or its weights
// by class.
type Column struct {
	Name    string    `json:"name"`
	Gain    float64   `json:"gain,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
}

// size is what columns are sorted by.
func (c Column) size() float64 {
	largest := c.Gain
	for _, w := range c.Weights {
		largest = max(largest, math.Abs(w))
	}
	return largest
}

// fitted reads a file of fit, or of the rows of a run; ok is false if it is another.
func fitted(path string) (f Fitted, ok bool, err error) {
	head := make([]byte, 64)
	in, err := os.Open(path)
	if err != nil {
		return f, false, nil // others say what is wrong
	}
	n, _ := io.ReadFull(in, head)
	_, err = in.Seek(0, io.SeekStart)
	f = Fitted{File: path, Kind: "preparation of rows"}
	var stages *prepare.Pipeline
	switch head = head[:n]; {
	case err != nil:
	case bytes.HasPrefix(head, []byte("murmuration model ")):
		var file learn.File
		if file, err = learn.Load(in); err == nil {
			err = f.of(file, &stages)
		}
		fmt.Sscanf(string(head), "murmuration model 1 %s", &f.Model)
	case bytes.HasPrefix(head, []byte("murmuration pipeline ")):
		stages, err = prepare.Read(in)
	case bytes.HasPrefix(head, []byte("{\"pipeline\"")):
		var p *rows.Prepared
		if p, err = rows.ReadPrepared(path); err == nil {
			stages, f.Target, f.Classes = p.Pipeline, p.Labels.Target.String(), p.Labels.Classes
		}
	default:
		return f, false, in.Close()
	}
	if err = errors.Join(err, in.Close()); err != nil {
		return f, true, fmt.Errorf("reading %s: %w", path, err)
	}
	if stages != nil {
		if f.Features == nil {
			f.Features = stages.Input.Fields
		}
		for _, s := range stages.Stages {
			f.Stages = append(f.Stages, strings.TrimPrefix(fmt.Sprintf("%T", s), "*prepare."))
		}
	}
	slices.SortStableFunc(f.Columns, func(a, b Column) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), strings.Compare(a.Name, b.Name))
	})
	return f, true, nil
}

// of takes over what a model file says.
func (f *Fitted) of(file learn.File, stages **prepare.Pipeline) error {
	f.Kind, f.Target, f.Classes, f.Features = "fitted model", file.Target, file.Classes, file.Features
	if len(file.Pipeline) > 0 {
		if err := json.Unmarshal(file.Pipeline, stages); err != nil {
			return err
		}
	}
	if trees, ok := file.Model.(*learn.TreeModel); ok {
		for name, gain := range trees.Gain() {
			f.Columns = append(f.Columns, Column{Name: name, Gain: gain})
		}
		return nil
	}
	var linear learn.Coefficients // which several kinds have
	if text, err := json.Marshal(file.Model); err != nil || json.Unmarshal(text, &linear) != nil || len(linear.Weights) == 0 {
		return nil // of other kinds, columns have no weights
	}
	for i, name := range linear.Columns {
		c := Column{Name: name}
		for _, weights := range linear.Weights {
			c.Weights = append(c.Weights, weights[i])
		}
		f.Columns = append(f.Columns, c)
	}
	return nil
}

func (f Fitted) print(asJSON bool, out io.Writer) error {
	if asJSON {
		return json.NewEncoder(out).Encode(f)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range [][2]string{
		{"file", f.File}, {"kind", f.Kind}, {"model", f.Model}, {"target", f.Target}, {"classes", strings.Join(f.Classes, ", ")}, {"stages", strings.Join(f.Stages, ", ")},
	} {
		if l[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", l[0], Quoted(l[1]))
		}
	}
	fmt.Fprintf(w, "\nFEATURE\tKIND\n")
	for _, c := range f.Features {
		fmt.Fprintf(w, "%s\t%s\n", Quoted(c.Name), c.Kind)
	}
	if len(f.Columns) > 0 {
		fmt.Fprintf(w, "\nCOLUMN AS PREPARED\tGAIN OR WEIGHTS\n")
	}
	for _, c := range f.Columns {
		text := fmt.Sprintf("%.6g", c.Gain)
		if c.Weights != nil {
			text = strings.Trim(fmt.Sprintf("%.6g", c.Weights), "[]")
		}
		fmt.Fprintf(w, "%s\t%s\n", Quoted(c.Name), text)
	}
	return w.Flush()
}
