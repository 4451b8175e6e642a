package rows

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// OpenModel reads the file of a learner, or of a neural model that was trained on a table.
func OpenModel(path string) (learn.File, error) {
	in, err := os.Open(path)
	if err != nil {
		return learn.File{}, err
	}
	file, err := learn.Load(in)
	err = errors.Join(err, in.Close())
	if errors.Is(err, learn.ErrModelFile) {
		neural, fault := OpenNeural(path)
		if _, another := errors.AsType[*tensor.FormatError](fault); !another {
			file, err = neural, fault
		}
	}
	return file, err
}

// KindOf names the kind of a model.
func KindOf(m learn.Model) string {
	if n, is := m.(*neural); is {
		return n.name
	}
	return learn.Models().NameOf(m)
}

// batchValues is about how many values of prepared rows are in memory at a time.
const batchValues = 1 << 20

// BatchRows is how many rows are predicted at a time, most or fewer if they are wide as the model takes them.
func BatchRows(f learn.File, most int) (int, error) {
	if f.Pipeline == nil {
		return most, nil
	}
	made, err := (&prepare.Prepared{Pipeline: f.Pipeline}).Columns()
	if err != nil {
		return 0, fmt.Errorf("preparing rows: %w", err)
	}
	return max(1, min(most, batchValues/max(1, len(made.Columns)))), nil
}
