package rows

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// Prepared is how rows become what a neural model takes. It is fitted once, by all members
// together, and is the same at all: the layout of the model follows from it.
type Prepared struct {
	Pipeline *prepare.Pipeline `json:"pipeline"`
	Labels   *table.Labels     `json:"labels"`
	// Rows are those that train, of all members that have fitted.
	Rows int64 `json:"rows"`
	// Peers is how many members have fitted it just now; 0 if it was read.
	Peers int `json:"-"`
}

// LeftOut are the columns that had too many values, of those that were not dropped.
func (p *Prepared) LeftOut(schema *table.Schema, dropped []string) (out []string) {
	for _, name := range schema.Names() {
		if p.Pipeline.Input.Find(name) < 0 && name != p.Labels.Target.Column && !slices.Contains(dropped, name) {
			out = append(out, name)
		}
	}
	return out
}

// held are the held-out rows of a source, prepared once for all peers of a process.
type held struct {
	mutex sync.Mutex
	set   *dataset.Set
	by    string // the hash of what they were prepared by
}

// of prepares the rows unless that has been done.
func (h *held) of(ctx context.Context, p *Prepared, rows table.Source) (*dataset.Set, error) {
	by, err := p.Hash()
	if err != nil {
		return nil, err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.set == nil || h.by != by {
		if h.set, err = p.set(ctx, rows); err != nil {
			return nil, err
		}
		h.by = by
	}
	return h.set, nil
}

// set prepares rows.
func (p *Prepared) set(ctx context.Context, rows table.Source) (*dataset.Set, error) {
	var (
		numbers tensor.Vector
		labels  []uint8
		inputs  int
	)
	add := func(b *table.Batch) error {
		features, target, err := p.Labels.Of(b)
		if err != nil {
			return err
		}
		if features, err = p.Pipeline.Transform(features); err != nil {
			return err
		}
		inputs = len(features.Columns)
		from := len(numbers)
		numbers = append(numbers, make(tensor.Vector, features.Rows*inputs)...)
		for j, c := range features.Columns {
			for row, v := range c.Numbers {
				numbers[from+row*inputs+j] = float32(v)
			}
		}
		for _, class := range target {
			labels = append(labels, uint8(class))
		}
		return nil
	}
	for b, err := range rows(ctx) {
		if err == nil {
			err = add(b)
		}
		if err != nil {
			return nil, err
		}
	}
	if inputs == 0 { // there are no rows, but the columns are known
		columns, err := p.Pipeline.Transform(emptyOf(p.Pipeline.Input.Fields))
		if err != nil {
			return nil, err
		}
		inputs = len(columns.Columns)
	}
	return dataset.NewRows(numbers, labels, inputs, len(p.Labels.Classes))
}

// emptyOf is a batch of no rows.
func emptyOf(fields []table.Field) *table.Batch {
	none := &table.Batch{}
	for _, f := range fields {
		none.Columns = append(none.Columns, table.Column{Name: f.Name, Kind: f.Kind})
	}
	return none
}

// Hash tells preparations apart.
func (p *Prepared) Hash() (string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("writing the preparation of rows: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// Save writes a file that ReadPrepared reads.
func (p *Prepared) Save(path string) error {
	err := files.Replace(path, 0o644, func(out io.Writer) error { return json.NewEncoder(out).Encode(p) })
	if err != nil {
		return cli.Config(fmt.Errorf("writing the preparation of rows: %w", err))
	}
	return nil
}

// maxPrepared bounds the file of a preparation, in bytes.
const maxPrepared = 256 << 20

// ReadPrepared reads what Save has written. Where there is no file, the error is fs.ErrNotExist.
func ReadPrepared(path string) (*Prepared, error) {
	data, err := files.Read(path, maxPrepared)
	if err != nil {
		return nil, fmt.Errorf("reading the preparation of rows: %w", err)
	}
	p := &Prepared{}
	err = json.Unmarshal(data, p)
	if err == nil && (p.Pipeline == nil || p.Labels == nil || len(p.Labels.Classes) < 2) {
		err = errors.New("something is not there")
	}
	if err != nil {
		return nil, cli.Config(fmt.Errorf("%s is no preparation of rows, or not all of one (%w): copy it again, or move it away", path, err))
	}
	return p, nil
}
