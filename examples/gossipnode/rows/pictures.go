package rows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// PicturesKey and NormKey are the keys, in the metadata of a neural model's file, of what its pictures are like: their shape
// and number of classes as dataset.Set.Format has them, and their normalization.
const PicturesKey, NormKey = "examples", "norm"

// About adds to the metadata of a model's file what it was trained on: pictures as those of a set, or rows that were
// prepared, unless p is nil.
func About(metadata map[string]string, set *dataset.Set, p *prepare.Prepared) error {
	if set.Norm() != nil {
		metadata[PicturesKey], metadata[NormKey] = set.Format(), dataset.FormatNorm(set.Norm())
	}
	if p == nil {
		return nil
	}
	text, err := json.Marshal(p)
	metadata[PreparedKey] = string(text)
	return err
}

// ofPictures makes the model of a file that was trained on pictures. A row has a column for each value of a picture: pixel0,
// pixel1 and so on, line by line, the channels of a pixel side by side. Classes are numbers, in the column label.
func ofPictures(file *checkpoint.File) (learn.File, error) {
	norm, err := dataset.ParseNorm(file.Metadata[NormKey])
	var like *dataset.Set
	reader, fault := dataset.NewReader(file.Metadata[PicturesKey], norm, dataset.Augment{}, 0)
	if err = cmp.Or(err, fault); err == nil {
		like, err = reader.Set(nil)
	}
	if err != nil {
		return learn.File{}, fmt.Errorf("what it says of its pictures is damaged (%w): export it again", err)
	}
	m := &neural{name: file.Metadata["model"], sizes: sizesOf(file), shape: like.Shape(), classes: like.Classes()}
	made := learn.File{Target: "label", Model: m}
	for class := range m.classes {
		made.Classes = append(made.Classes, strconv.Itoa(class))
	}
	for i := range like.Inputs() {
		made.Features = append(made.Features, table.Field{Name: "pixel" + strconv.Itoa(i)})
	}
	m.set = func(rows *table.Batch) (*dataset.Set, error) {
		pixels, err := pixelsOf(rows, made.Features)
		if err != nil {
			return nil, err
		}
		return dataset.NewSet(pixels, make([]uint8, rows.Rows), m.shape, m.classes, norm...)
	}
	err = m.fill(file.Load)
	if err == nil && !tensor.Finite(m.params.Vector()) {
		err = errors.New("it holds values that are not finite")
	}
	return made, err
}

// pixelsOf are the levels of pictures, one picture after the other.
func pixelsOf(rows *table.Batch, columns []table.Field) ([]uint8, error) {
	pixels := make([]uint8, rows.Rows*len(columns))
	for i, column := range columns {
		c := rows.FindNear(column.Name, i)
		if c == nil || c.Kind != table.Number {
			return nil, fmt.Errorf("there is no column %q of numbers: a picture has %d, from pixel0 on", column.Name, len(columns))
		}
		for row, v := range c.Numbers {
			if v != float64(uint8(v)) {
				return nil, fmt.Errorf("%s of row %d is %v: want a whole number from 0 to 255", column.Name, row+1, v)
			}
			pixels[row*len(columns)+i] = uint8(v)
		}
	}
	return pixels, nil
}
