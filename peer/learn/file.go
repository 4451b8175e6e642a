package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Errors of model files.
var (
	// ErrModelFile: the file holds no model, or is incomplete.
	ErrModelFile = errors.New("learn: not a sound model file")
	// ErrModelKind: this release cannot read or write the model.
	ErrModelKind = errors.New("learn: unknown kind of model")
)

const fileMagic = "murmuration model" // begins the first line

// sealed is the format of model files. Load takes at most Most bytes into memory.
var sealed = table.Sealed{Magic: fileMagic, Version: 1, Most: 1 << 30, Unsound: ErrModelFile, Other: ErrModelKind}

// File has all that a prediction needs: the pipeline that prepares rows, and the model.
type File struct {
	// Pipeline prepares rows; nil if the model takes them as they are.
	Pipeline *prepare.Pipeline `json:"pipeline,omitempty"`
	// Target is the expression of the learned target, as the user wrote it; "" without a target.
	Target string `json:"target,omitempty"`
	// Classes are the names of the classes, in the order of the model's outputs; nil for numbers.
	Classes []string `json:"classes,omitempty"`
	// Features are the columns that Pipeline takes (or the model, without a pipeline) and their kinds: read the rows
	// for a prediction with these.
	Features []table.Field `json:"features,omitempty"`
	Model    Model         `json:"-"`
}

// Predict prepares rows, and appends the model's prediction for each to dst: see Model. Columns that are not
// Features are ignored. It is an error if a stage leaves rows out.
func (f File) Predict(dst []float64, rows *table.Batch) ([]float64, error) {
	if f.Pipeline == nil {
		return f.Model.Predict(dst, rows)
	}
	prepared, err := f.Pipeline.Transform(rows)
	if err != nil {
		return nil, err
	}
	if prepared.Rows != rows.Rows { // nobody could tell whose the predictions are
		return dst, fmt.Errorf("learn: predicting: the stages leave out rows, and keep %d of %d", prepared.Rows, rows.Rows)
	}
	return f.Model.Predict(dst, prepared)
}

// fileContent is the JSON that follows the first line.
type fileContent struct {
	File
	typedModel
}

// Kinds are the models and stages that a file may hold, and the learners of a task; a nil field means those of the
// library. A service with models of its own uses Kinds that include them: Kinds{Models: learn.Models().With("mine",
// …)}.
type Kinds struct {
	Models   table.Kinds[Model]
	Stages   table.Kinds[table.Stage]
	Learners table.Kinds[Learner]
}

// Save writes a file with the library's kinds.
func Save(w io.Writer, f File) error { return Kinds{}.Save(w, f) }

// Load reads a file with the library's kinds.
func Load(r io.Reader) (File, error) { return Kinds{}.Load(r) }

// Save writes a file: a line with its type ("murmuration model 1 KIND BYTES SHA256"), then BYTES bytes of JSON. The
// same File gives the same bytes.
func (k Kinds) Save(w io.Writer, f File) error {
	model, err := encodeModel(f.Model, k.Models)
	if err != nil {
		return err
	}
	if f.Pipeline != nil && k.Stages != nil {
		f.Pipeline = &prepare.Pipeline{Input: f.Pipeline.Input, Stages: f.Pipeline.Stages, Kinds: k.Stages}
	}
	content, err := json.Marshal(fileContent{f, model})
	if err != nil {
		return fmt.Errorf("learn: saving a model: %w", err)
	}
	return sealed.Write(w, model.Kind, append(content, '\n'))
}

// Load reads a file that Save wrote. It fails with ErrModelFile if the file is of another type, truncated or changed,
// and with ErrModelKind if its kind or version is of a newer release.
func (k Kinds) Load(r io.Reader) (File, error) {
	content, err := sealed.Read(r)
	if err != nil {
		return File{}, err
	}
	c := fileContent{File: File{Pipeline: &prepare.Pipeline{Kinds: k.Stages}}}
	if err := json.Unmarshal(content, &c); err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrModelFile, err)
	}
	f := c.File
	if p := f.Pipeline; p != nil && p.Input.Fields == nil && p.Stages == nil { // the file has no pipeline
		f.Pipeline = nil
	}
	if f.Model, err = c.decode(k.Models); err != nil {
		return File{}, err
	}
	if n := len(f.Classes); f.Classes != nil && (n == 0 || f.Model.Outputs() != n) {
		return File{}, fmt.Errorf("%w: %d classes for a model of %d outputs", ErrModelFile, n, f.Model.Outputs())
	}
	return f, nil
}
