package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// PreparedKey is the key, in the metadata of a neural model's file, of how its rows are prepared.
const PreparedKey = "prepared"

// Beside returns how rows were prepared for a model, from the first of the files at paths that exists. If hash is not
// "", the file must have that hash. The result is nil if no file exists.
func Beside(hash string, paths ...string) (*prepare.Prepared, error) {
	for _, path := range paths {
		p, err := ReadPrepared(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if have, err := Hash(p); err != nil || hash == "" || have == hash {
			return p, err
		}
	}
	return nil, nil
}

// neural makes a learn.Model of a neural model.
type neural struct {
	name    string
	sizes   nets.Sizes
	params  *tensor.Params
	shape   dataset.Shape
	classes int
	set     func(*table.Batch) (*dataset.Set, error) // of rows
	models  sync.Pool                                // of nets.Model, each for one goroutine at a time
}

// Neural makes a model of a name and sizes with parameters, for rows prepared by p, a File. Fill sets the parameters.
func Neural(name string, sizes nets.Sizes, p *prepare.Prepared, fill func(*tensor.Params) error) (learn.File, error) {
	columns, err := p.Columns()
	if err != nil {
		return learn.File{}, err
	}
	m := &neural{name: name, sizes: sizes, shape: dataset.Shape{Height: 1, Width: len(columns.Columns), Channels: 1}, classes: len(p.Labels.Classes)}
	m.set = func(features *table.Batch) (*dataset.Set, error) {
		numbers, err := appendRows(nil, features)
		if err != nil {
			return nil, err
		}
		return dataset.NewRows(numbers, make([]uint8, features.Rows), len(features.Columns), m.classes)
	}
	err = m.fill(fill)
	return learn.File{Pipeline: p.Pipeline, Target: p.Labels.Target.String(), Classes: p.Labels.Classes, Features: p.Pipeline.Input.Fields, Model: m}, err
}

// fill makes the parameters.
func (m *neural) fill(fill func(*tensor.Params) error) error {
	model, err := m.another()
	if err != nil {
		return err
	}
	m.models.Put(model)
	m.params = tensor.NewParams(model.Layout())
	return fill(m.params)
}

func (m *neural) another() (nets.Model, error) {
	return nets.Sized(m.name, m.shape, m.classes, m.sizes)
}

// OpenNeural reads the file of a neural model that was trained on a table, or on pictures, whose rows are of pixels.
func OpenNeural(path string) (learn.File, error) {
	file, err := checkpoint.Open(path)
	switch {
	case err != nil:
		return learn.File{}, err
	case file.IsCheckpoint():
		return learn.File{}, errors.New("it is a checkpoint: write its model with gossipnode export, and give that")
	case strings.HasPrefix(file.Metadata[PicturesKey], "pixels "):
		return ofPictures(file)
	case file.Metadata[PreparedKey] == "":
		return learn.File{}, fmt.Errorf("it says neither how rows are prepared nor what its pictures are like: export it again, with %s beside its checkpoint if it is of a table", settings.PipelineName)
	}
	p := &prepare.Prepared{}
	err = json.Unmarshal([]byte(file.Metadata[PreparedKey]), p)
	if err == nil {
		err = whole(p)
	}
	if err != nil {
		return learn.File{}, fmt.Errorf("its preparation of rows is damaged (%w)", err)
	}
	return Neural(file.Metadata["model"], sizesOf(file), p, file.Load)
}

// sizesOf are the sizes of a model for pictures or rows, as its file tells them: those of an mlp by its first layer.
func sizesOf(file *checkpoint.File) (sizes nets.Sizes) {
	if all := file.Tensors.Layout().Ranges(); file.Metadata["model"] == "mlp" && len(all) > 0 && len(all[0].Shape) == 2 {
		sizes.Hidden = all[0].Shape[0]
	}
	return sizes
}

// Outputs implements learn.Model.
func (m *neural) Outputs() int { return m.classes }

// Predict implements learn.Model.
func (m *neural) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	set, err := m.set(features)
	if err != nil {
		return dst, err
	}
	model, _ := m.models.Get().(nets.Model)
	if model == nil {
		if model, err = m.another(); err != nil {
			return dst, err
		}
	}
	defer m.models.Put(model)
	return append(dst, model.Probabilities(m.params.Vector(), set)...), nil
}
