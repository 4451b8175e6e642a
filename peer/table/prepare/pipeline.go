package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Pipeline is stages one after the other. It is written and read by encoding/json, and by
// Write and Read as a file of its own. Transform may be called by many goroutines at once.
type Pipeline struct {
	// Input are the columns that it takes: those that it was fitted on. Others that a batch
	// has are left out.
	Input table.Schema
	// Stages are the kinds of this package.
	Stages []table.Stage
}

// ErrPipeline is a pipeline that cannot be read: not one, cut, changed, or of a newer release.
var ErrPipeline = errors.New("not a sound pipeline")

// checked is a stage of a file, or one that was fitted: its settings and what it has learned are held
// against what Transform can do.
type checked interface{ check() error }

func (s *Standardize) check() error { return checkScales(s.Learned) }
func (s *MinMax) check() error      { return checkScales(s.Learned) }
func (s *Buckets) check() error     { return bucketsOf(&s.Count, len(s.Learned)) }

// maxMade is how many columns a stage makes of all that it takes: a batch of them is 2 GB.
const maxMade = MaxValues + 1

// checkMade says if they are more.
func checkMade(columns int) error {
	if columns > maxMade {
		return fmt.Errorf("%d columns are made, at most %d: drop some, or make fewer buckets", columns, maxMade)
	}
	return nil
}

// kinds makes a stage of each kind.
func kinds() map[string]table.Stage {
	all := make(map[string]table.Stage)
	for _, s := range []table.Stage{
		&Standardize{}, &MinMax{}, &Impute{}, &Bins{}, &Outliers{}, &OneHot{}, &Codes{}, &Buckets{}, &NGrams{}, &DropUseless{}, &Dates{},
	} {
		all[kindOf(s)] = s
	}
	return all
}

func kindOf(s table.Stage) string { return strings.ToLower(reflect.TypeOf(s).Elem().Name()) }

// Fit fits the stages on the rows of all members, one after the other, each on what those
// before it make. All members have the schema Input, of which they may have no rows.
func (p *Pipeline) Fit(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	for i, stage := range p.Stages {
		before := Pipeline{Input: p.Input, Stages: p.Stages[:i]}
		if err := stage.Fit(ctx, flock, fmt.Sprintf("%s/%d", name, i), before.Over(rows)); err != nil {
			return fmt.Errorf("stage %d, %s: %w", i+1, kindOf(stage), err)
		}
	}
	return nil
}

// Transform sends a batch through all stages. A column of Input that is not there, or is of
// another kind, is an error that names it.
func (p *Pipeline) Transform(b *table.Batch) (*table.Batch, error) {
	in := &table.Batch{Rows: b.Rows, First: b.First, Keys: b.Keys}
	for i, f := range p.Input.Fields {
		c, err := find(b, f.Name, f.Kind, i)
		if err != nil {
			return nil, err
		}
		in.Columns = append(in.Columns, *c)
	}
	for i, stage := range p.Stages {
		var err error
		if in, err = stage.Transform(in); err != nil {
			return nil, fmt.Errorf("stage %d, %s: %w", i+1, kindOf(stage), err)
		}
	}
	return in, table.DistinctNames(in.Names())
}

// Over gives what the pipeline makes of the rows of a source.
func (p *Pipeline) Over(rows table.Source) table.Source {
	return func(ctx context.Context) iter.Seq2[*table.Batch, error] {
		return func(yield func(*table.Batch, error) bool) {
			for b, err := range rows(ctx) {
				if err == nil {
					b, err = p.Transform(b)
				}
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

type stageJSON struct {
	Kind  string          `json:"kind"`
	Stage json.RawMessage `json:"stage"`
}

type pipelineJSON struct {
	Version int          `json:"version"`
	Input   table.Schema `json:"input"`
	Stages  []stageJSON  `json:"stages"`
}

const version = 1

// MarshalJSON writes the pipeline with the kinds of its stages.
func (p Pipeline) MarshalJSON() ([]byte, error) {
	out := pipelineJSON{Version: version, Input: p.Input}
	for _, s := range p.Stages {
		if kinds()[kindOf(s)] == nil {
			return nil, fmt.Errorf("a stage of type %T cannot be written: it is none of this package's", s)
		}
		data, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", kindOf(s), err)
		}
		out.Stages = append(out.Stages, stageJSON{kindOf(s), data})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote. A kind or a version that this release does not
// know is an ErrPipeline.
func (p *Pipeline) UnmarshalJSON(data []byte) error {
	var in pipelineJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("%w: %w", ErrPipeline, err)
	}
	if in.Version != version {
		return fmt.Errorf("%w: of version %d, this release reads version %d", ErrPipeline, in.Version, version)
	}
	read := Pipeline{Input: in.Input}
	for i, s := range in.Stages {
		stage := kinds()[s.Kind]
		if stage == nil {
			return fmt.Errorf("%w: stage %d is of kind %q, which this release does not know", ErrPipeline, i+1, s.Kind)
		}
		err := json.Unmarshal(s.Stage, stage)
		if c, ok := stage.(checked); ok && err == nil {
			err = c.check()
		}
		if err != nil {
			return fmt.Errorf("%w: stage %d, %s: %w", ErrPipeline, i+1, s.Kind, err)
		}
		read.Stages = append(read.Stages, stage)
	}
	*p = read
	return nil
}

const fileMagic = "murmuration pipeline"

var sealed = table.Sealed{Magic: fileMagic, Version: version, Most: 1 << 28, Unsound: ErrPipeline, Other: ErrPipeline}

// Write writes a file: a line that says what it is ("murmuration pipeline 1 BYTES SHA256"), then as
// many bytes of JSON.
func (p *Pipeline) Write(w io.Writer) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("writing a pipeline: %w", err)
	}
	return sealed.Write(w, "", data)
}

// Read reads what Write wrote; anything else is an ErrPipeline.
func Read(r io.Reader) (*Pipeline, error) {
	data, err := sealed.Read(r)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, err
	}
	return p, nil
}
