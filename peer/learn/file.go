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

// sealed is a model file; Load takes no more than its most into memory.
var sealed = table.Sealed{Magic: fileMagic, Version: 1, Most: 1 << 30, Unsound: ErrModelFile, Other: ErrModelKind}

// File is everything needed to predict: the pipeline that prepares rows, and the model.
type File struct {
	// Pipeline prepares rows; nil if the model takes the rows unchanged.
	Pipeline *prepare.Pipeline `json:"pipeline,omitempty"`
	// Target is the expression that was learned, as the user wrote it; "" without one.
	Target string `json:"target,omitempty"`
	// Classes are the names of the classes, in the order of the model's outputs; nil for numbers.
	Classes []string `json:"classes,omitempty"`
	// Features are the input columns of Pipeline (or of the model, without one), and their
	// kinds: read rows for prediction with these.
	Features []table.Field `json:"features,omitempty"`
	Model    Model         `json:"-"`
}

// Predict prepares rows, and appends the model's prediction for each to dst: see Model. Columns that are not
// Features are ignored.
func (f File) Predict(dst []float64, rows *table.Batch) ([]float64, error) {
	if f.Pipeline == nil {
		return f.Model.Predict(dst, rows)
	}
	prepared, err := f.Pipeline.Transform(rows)
	if err != nil {
		return nil, err
	}
	return f.Model.Predict(dst, prepared)
}

// fileContent is what stands after the first line.
type fileContent struct {
	File
	typedModel
}

// Kinds are the models and stages that a file may hold, and the learners of a task: nil means those of the library. A
// service with its own ones saves and loads by Kinds that contain them: Kinds{Models: learn.Models().With("mine",
// …)}.
type Kinds struct {
	Models   table.Kinds[Model]
	Stages   table.Kinds[table.Stage]
	Learners table.Kinds[Learner]
}

// Save writes a file of the library's kinds.
func Save(w io.Writer, f File) error { return Kinds{}.Save(w, f) }

// Load reads one.
func Load(r io.Reader) (File, error) { return Kinds{}.Load(r) }

// Save writes a file: a line that says what it is ("murmuration model 1 KIND BYTES SHA256"),
// then as many bytes of JSON. The same File gives the same bytes.
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

// Load reads what Save wrote. It fails with ErrModelFile if the file is of another type,
// truncated or changed, and with ErrModelKind for a kind or version of a newer release.
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
	if p := f.Pipeline; p != nil && p.Input.Fields == nil && p.Stages == nil { // there is none
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
