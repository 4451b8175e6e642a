package rows

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/learn"
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
}

// maxClasses is how many classes a label of a data set can tell apart.
const maxClasses = 256

// Prepare fits the preparation for neural models together with the other members, and returns
// this member's rows beside it.
func (s Share) Prepare(ctx context.Context, flock table.Flock, shared map[string]string) (*Prepared, table.Source, error) {
	a, err := s.Agree(ctx, flock, shared)
	if err != nil {
		return nil, nil, err
	}
	if err := a.LearnTarget(ctx); err != nil {
		return nil, nil, err
	}
	switch n := len(a.Labels.Classes); {
	case n == 0:
		return nil, nil, cli.Usage(cli.Faultf("target", "is a number, but models learn classes: give a comparison, such as 'arr_delay>15', or use gossipnode fit"))
	case n > maxClasses:
		return nil, nil, cli.Usage(cli.Faultf("target", "has %d classes, and models learn at most %d", n, maxClasses))
	}
	train, _, err := s.Table.Parts()
	if err != nil {
		return nil, nil, err
	}
	training, err := a.Take(ctx, a.Rows, train)
	if err != nil {
		return nil, nil, err
	}
	if err := a.LimitValues(ctx, training); err != nil {
		return nil, nil, err
	}
	p := &Prepared{Labels: a.Labels}
	if p.Pipeline, err = a.Fit(ctx, flock, "fit/prepare", Numbers, training); err != nil {
		return nil, nil, err
	}
	count, _, err := flock.Sum(ctx, "fit/count", []float64{float64(len(training.Target))})
	if err != nil {
		return nil, nil, err
	}
	if p.Rows = int64(count[0]); p.Rows == 0 {
		return nil, nil, fmt.Errorf("preparing rows that train: %w", learn.ErrNoRows)
	}
	return p, a.Rows, nil
}

// Take reads this peer's rows for what was prepared already.
func (s Share) Take(ctx context.Context, p *Prepared) (table.Source, error) {
	schema := &table.Schema{Fields: append([]table.Field(nil), s.Files.Schema().Fields...)}
	wanted := append([]table.Field(nil), p.Pipeline.Input.Fields...)
	if at := schema.Find(p.Labels.Target.Column); at >= 0 && p.Labels.Target.Op == "" { // classes are of categories
		wanted = append(wanted, table.Field{Name: p.Labels.Target.Column, Kind: table.Category})
	}
	for _, f := range wanted {
		at := schema.Find(f.Name)
		if at < 0 {
			return nil, cli.Config(fmt.Errorf("--data has no column %q, which the rows were prepared with%s", f.Name, alike(f.Name, schema)))
		}
		schema.Fields[at].Kind = f.Kind
	}
	if err := s.Files.Pin(schema); err != nil {
		return nil, cli.Config(err)
	}
	return s.load(ctx, schema)
}

// Data are this peer's rows that train, and all that are held out in the files.
func (s Share) Data(ctx context.Context, p *Prepared, own table.Source) (*dataset.Data, error) {
	train, test, err := s.Table.Parts()
	if err != nil {
		return nil, err
	}
	data := &dataset.Data{Total: int(p.Rows)}
	if data.Train, err = p.set(ctx, table.Filtered(own, train)); err != nil {
		return nil, err
	}
	if data.HeldOut, err = p.set(ctx, table.Filtered(s.Rows, test)); err != nil {
		return nil, err
	}
	for what, set := range map[string]*dataset.Set{"train": data.Train, "are held out": data.HeldOut} {
		if set.Len() == 0 {
			return nil, fmt.Errorf("this peer has no rows that %s: look at --data, --split and --shard, or give fewer --peers", what)
		}
	}
	return data, nil
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
