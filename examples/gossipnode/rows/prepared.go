package rows

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// LeftOut returns the columns that stages have left out, such as those with too many values. dropped are columns that
// no member learns from.
func LeftOut(p *prepare.Prepared, schema *table.Schema, dropped ...string) (out []string) {
	for _, name := range schema.Names() {
		target := p.Labels != nil && name == p.Labels.Target.Column
		if p.Pipeline.Input.Find(name) < 0 && !target && !slices.Contains(dropped, name) {
			out = append(out, name)
		}
	}
	return out
}

// held has the held-out rows of a source, prepared once for all peers of a process.
type held struct {
	mutex sync.Mutex
	set   *dataset.Set
	by    string // hash of their preparation
}

// of prepares the rows, unless they are prepared already.
func (h *held) of(ctx context.Context, p *prepare.Prepared, rows table.Source) (*dataset.Set, error) {
	by, err := Hash(p)
	if err != nil {
		return nil, err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.set == nil || h.by != by {
		if h.set, err = setOf(ctx, p, rows); err != nil {
			return nil, err
		}
		h.by = by
	}
	return h.set, nil
}

// setOf prepares rows, a batch at a time.
func setOf(ctx context.Context, p *prepare.Prepared, rows table.Source) (*dataset.Set, error) {
	columns, err := p.Columns()
	if err != nil {
		return nil, err
	}
	var numbers tensor.Vector
	var labels []uint8
	inputs := len(columns.Columns)
	for b, err := range rows(ctx) {
		var classes []float64
		if err == nil {
			b, classes, err = p.Of(b)
		}
		if err != nil {
			return nil, err
		}
		if numbers, err = appendRows(numbers, b); err != nil {
			return nil, err
		}
		for _, class := range classes {
			labels = append(labels, uint8(class))
		}
	}
	return dataset.NewRows(numbers, labels, inputs, len(p.Labels.Classes))
}

// appendRows appends the numbers of prepared rows, row after row.
func appendRows(numbers tensor.Vector, b *table.Batch) (tensor.Vector, error) {
	from, inputs := len(numbers), len(b.Columns)
	numbers = append(numbers, make(tensor.Vector, b.Rows*inputs)...)
	for j, c := range b.Columns {
		if c.Kind != table.Number || slices.ContainsFunc(c.Numbers, math.IsNaN) {
			return nil, cli.Config(fmt.Errorf("column %q is of categories as it is prepared, or has numbers missing: let --stages have onehot and impute for it", c.Name))
		}
		for row, v := range c.Numbers {
			numbers[from+row*inputs+j] = float32(v)
		}
	}
	return numbers, nil
}

// Hash is equal for equal preparations.
func Hash(p *prepare.Prepared) (string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("writing the preparation of rows: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// Save writes a file for ReadPrepared. Several peers of one machine may write the same file at the same time.
func Save(p *prepare.Prepared, path string) error {
	own := fmt.Sprintf("%s.%x.partial", path, rand.Uint64())
	err := files.Create(own, 0o644, func(out io.Writer) error { return json.NewEncoder(out).Encode(p) })
	if err == nil {
		err = os.Rename(own, path)
	}
	if err != nil {
		err = errors.Join(err, files.Remove(own))
		return cli.Config(fmt.Errorf("writing the preparation of rows: %w", err))
	}
	return nil
}

// maxPrepared bounds the file of a preparation, in bytes.
const maxPrepared = 256 << 20

// ReadPrepared reads a file of Save. If it does not exist, the error is fs.ErrNotExist.
func ReadPrepared(path string) (*prepare.Prepared, error) {
	data, err := files.Read(path, maxPrepared)
	if err != nil {
		return nil, fmt.Errorf("reading the preparation of rows: %w", err)
	}
	p := &prepare.Prepared{}
	err = json.Unmarshal(data, p)
	if err == nil {
		err = whole(p)
	}
	if err != nil {
		return nil, cli.Config(fmt.Errorf("%s is no complete preparation of rows (%w): copy it again, or move it away", path, err))
	}
	return p, nil
}

// Shape is how many numbers and classes prepared rows have; it is an error if a part of the preparation is missing.
func Shape(p *prepare.Prepared) (numbers, classes int, err error) {
	if err := whole(p); err != nil {
		return 0, 0, err
	}
	made, err := p.Columns()
	if err != nil {
		return 0, 0, err
	}
	return len(made.Columns), len(p.Labels.Classes), nil
}

// whole returns an error if a part of the preparation is missing.
func whole(p *prepare.Prepared) error {
	if p == nil || p.Pipeline == nil || p.Labels == nil || len(p.Labels.Classes) < 2 {
		return errors.New("a part of it is missing")
	}
	return nil
}
