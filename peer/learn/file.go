package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Errors of model files.
var (
	// ErrModelFile is a file that holds no model, or not all of it.
	ErrModelFile = errors.New("learn: not a sound model file")
	// ErrModelKind is a model that this release cannot read or write.
	ErrModelKind = errors.New("learn: unknown kind of model")
)

const fileMagic = "murmuration model" // begins the first line

// sealed is a model file; Load takes no more than its most into memory.
var sealed = table.Sealed{Magic: fileMagic, Version: 1, Most: 1 << 30, Unsound: ErrModelFile, Other: ErrModelKind}

// File is all that predicting needs: what prepares the rows, and the model.
type File struct {
	// Pipeline is the table.Pipeline's JSON; nil if rows go into the model as they are.
	Pipeline json.RawMessage `json:"pipeline,omitempty"`
	// Target is the expression that was learned, as the user wrote it; "" without one.
	Target string `json:"target,omitempty"`
	// Classes are the names of the classes, in the order of the model's outputs; nil for numbers.
	Classes []string `json:"classes,omitempty"`
	// Features are the columns that Pipeline (or the model, without one) wants to be given,
	// and their kinds: what is to be predicted is read with these.
	Features []table.Field `json:"features,omitempty"`
	Model    Model         `json:"-"`
}

// fileContent is what stands after the first line.
type fileContent struct {
	File
	typedModel
}

// Save writes a file: a line that says what it is ("murmuration model 1 KIND BYTES SHA256"),
// then as many bytes of JSON. The same File gives the same bytes.
func Save(w io.Writer, f File) error {
	model, err := encodeModel(f.Model)
	if err != nil {
		return err
	}
	content, err := json.Marshal(fileContent{f, model})
	if err != nil {
		return fmt.Errorf("learn: saving a model: %w", err)
	}
	return sealed.Write(w, model.Kind, append(content, '\n'))
}

// Load reads what Save wrote. What is no such file, was cut or changed gives ErrModelFile; a
// kind or version of a newer release gives ErrModelKind.
func Load(r io.Reader) (File, error) {
	content, err := sealed.Read(r)
	if err != nil {
		return File{}, err
	}
	var c fileContent
	if err := json.Unmarshal(content, &c); err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrModelFile, err)
	}
	f := c.File
	if f.Model, err = c.decode(); err != nil {
		return File{}, err
	}
	if n := len(f.Classes); n > 0 && f.Model.Outputs() != n {
		return File{}, fmt.Errorf("%w: %d classes for a model of %d outputs", ErrModelFile, n, f.Model.Outputs())
	}
	return f, nil
}
