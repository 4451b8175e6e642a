package inspect

import (
	"bytes"
	"cmp"
	"encoding/json"
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

// Fitted describes a model of fit, or a preparation of rows.
type Fitted struct {
	File     string        `json:"file"`
	Kind     string        `json:"kind"` // fitted model, or preparation of rows
	Model    string        `json:"model,omitempty"`
	Target   string        `json:"target,omitempty"`
	Classes  []string      `json:"classes,omitempty"`
	Features []table.Field `json:"features"`
	Stages   []string      `json:"stages"`
	Columns  []Column      `json:"columns,omitempty"` // those with the most weight first
}

// Column is a prepared column of a model: either the total gain of all splits by it, or its weight in each output.
type Column struct {
	Name    string    `json:"name"`
	Weights []float64 `json:"weights"`
}

// fitted reads a file of fit, or of the rows of a run; ok is false for other files.
func fitted(path string) (f Fitted, ok bool, err error) {
	in, err := os.Open(path)
	if err != nil {
		return f, false, nil // the caller reports that
	}
	defer in.Close()
	head := make([]byte, 64)
	n, _ := in.ReadAt(head, 0)
	head = head[:n]
	f = Fitted{File: path, Kind: "preparation of rows"}
	stages := &prepare.Pipeline{}
	switch {
	case bytes.HasPrefix(head, []byte("murmuration model ")):
		var file learn.File
		if file, err = learn.Load(in); err == nil && file.Pipeline != nil {
			stages = file.Pipeline
		}
		f.Kind, f.Target, f.Classes, f.Features, f.Columns = "fitted model", file.Target, file.Classes, file.Features, columnsOf(file.Model)
		fmt.Sscanf(string(head), "murmuration model 1 %s", &f.Model)
	case bytes.HasPrefix(head, []byte("murmuration pipeline ")):
		stages, err = prepare.Read(in)
	case bytes.HasPrefix(head, []byte("{\"pipeline\"")):
		var p *prepare.Prepared
		if p, err = rows.ReadPrepared(path); err == nil {
			stages, f.Target, f.Classes = p.Pipeline, p.Labels.Target.String(), p.Labels.Classes
		}
	default:
		return f, false, nil
	}
	if err != nil {
		return f, true, fmt.Errorf("reading %s: %w", path, err)
	}
	if f.Features == nil {
		f.Features = stages.Input.Fields
	}
	for _, s := range stages.Stages {
		f.Stages = append(f.Stages, strings.TrimPrefix(fmt.Sprintf("%T", s), "*prepare."))
	}
	return f, true, nil
}

// columnsOf returns the columns of a model with the weight of each, if it has weights.
func columnsOf(model learn.Model) (columns []Column) {
	var linear learn.Coefficients // several kinds of models have these
	if trees, ok := model.(*learn.TreeModel); ok {
		for name, gain := range trees.Gain() {
			columns = append(columns, Column{name, []float64{gain}})
		}
	} else if text, err := json.Marshal(model); err == nil && json.Unmarshal(text, &linear) == nil && len(linear.Weights) > 0 {
		for i, name := range linear.Columns {
			c := Column{Name: name}
			for _, weights := range linear.Weights {
				c.Weights = append(c.Weights, weights[i])
			}
			columns = append(columns, c)
		}
	}
	size := func(c Column) float64 { return max(math.Abs(slices.Max(c.Weights)), math.Abs(slices.Min(c.Weights))) }
	slices.SortFunc(columns, func(a, b Column) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), strings.Compare(a.Name, b.Name))
	})
	return columns
}

func (f Fitted) print(asJSON bool, out io.Writer) error {
	if asJSON {
		return json.NewEncoder(out).Encode(f)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "file\t%s\nkind\t%s %s\ntarget\t%s\n", f.File, f.Kind, Quoted(f.Model), Quoted(f.Target))
	fmt.Fprintf(w, "classes\t%s\nstages\t%s\n\nFEATURE\tKIND\n", Quoted(strings.Join(f.Classes, ", ")), strings.Join(f.Stages, ", "))
	for _, c := range f.Features {
		fmt.Fprintf(w, "%s\t%s\n", Quoted(c.Name), c.Kind)
	}
	if len(f.Columns) > 0 {
		fmt.Fprintf(w, "\nCOLUMN AS PREPARED\tGAIN OR WEIGHTS\n")
	}
	for _, c := range f.Columns {
		fmt.Fprintf(w, "%s\t%s\n", Quoted(c.Name), strings.Trim(fmt.Sprintf("%.6g", c.Weights), "[]"))
	}
	return w.Flush()
}
