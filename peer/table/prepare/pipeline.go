package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Pipeline is stages one after the other. It is written and read by encoding/json, and by
// Write and Read as a file of its own. Transform may be called by many goroutines at once.
type Pipeline struct {
	// Input are the columns that it takes: those that it was fitted on. Others that a batch
	// has are left out.
	Input  table.Schema
	Stages []table.Stage
	// Kinds are the stages that are written and read; nil are those of this package.
	Kinds table.Kinds[table.Stage]
}

// ErrPipeline says that a file holds no pipeline, or a cut or changed one, or one of a newer release.
var ErrPipeline = errors.New("not a sound pipeline")

// checked is a stage that was fitted or read from a file: check tells whether Transform can use its
// settings and what it has learned.
type checked interface{ check() error }

// Check returns the faults of a stage's settings, before it is fitted.
func Check(s table.Stage) error {
	if c, ok := s.(checked); ok {
		return c.check()
	}
	return nil
}

func (s *Standardize) check() error { return checkScales(s.Learned) }
func (s *MinMax) check() error      { return checkScales(s.Learned) }
func (s *Buckets) check() error     { return bucketsOf(&s.Count, len(s.Learned)) }

// maxMade is how many columns a stage makes of all that it takes: a batch of them is 2 GB.
const maxMade = MaxValues + 1

// checkMade returns an error if a stage makes more.
func checkMade(columns int) error {
	if columns > maxMade {
		return fmt.Errorf("%d columns are made, at most %d: drop some, or make fewer buckets", columns, maxMade)
	}
	return nil
}

// Kinds are the kinds of stages in this package, each under its name in lower case.
func Kinds() table.Kinds[table.Stage] {
	return table.Kinds[table.Stage]{
		"bins":        func() table.Stage { return &Bins{} },
		"buckets":     func() table.Stage { return &Buckets{} },
		"codes":       func() table.Stage { return &Codes{} },
		"dates":       func() table.Stage { return &Dates{} },
		"dropmany":    func() table.Stage { return &DropMany{} },
		"dropuseless": func() table.Stage { return &DropUseless{} },
		"impute":      func() table.Stage { return &Impute{} },
		"minmax":      func() table.Stage { return &MinMax{} },
		"ngrams":      func() table.Stage { return &NGrams{} },
		"onehot":      func() table.Stage { return &OneHot{} },
		"outliers":    func() table.Stage { return &Outliers{} },
		"standardize": func() table.Stage { return &Standardize{} },
	}
}

// at names a stage in errors.
func at(i int, s table.Stage) string { return fmt.Sprintf("stage %d, %s", i+1, kindOf(s)) }

func kindOf(s table.Stage) string {
	return strings.ToLower(reflect.Indirect(reflect.ValueOf(s)).Type().Name())
}

// Fit fits the stages on the rows of all members, one after the other, each on the output
// of those before it. All members have the schema Input, of which they may have no rows.
func (p *Pipeline) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	for i, stage := range p.Stages {
		before := Pipeline{Input: p.Input, Stages: p.Stages[:i]}
		made := before.Over(rows)
		if s, is := stage.(*DropUseless); is && s.Target == "" {
			made = before.withTarget(rows)
		}
		if err := stage.Fit(ctx, table.Scope(flock, fmt.Sprint(i)), made); err != nil {
			return fmt.Errorf("%s: %w", at(i, stage), err)
		}
	}
	return nil
}

// Transform sends a batch through all stages. If a column of Input is absent or of another
// kind, the error names it.
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
			return nil, fmt.Errorf("%s: %w", at(i, stage), err)
		}
	}
	return in, table.DistinctNames(in.Names())
}

// targetColumn is the name of the target among the columns on which a pipeline is fitted.
const targetColumn = "\x00target"

// withTarget is Over, with the target as a further column.
func (p *Pipeline) withTarget(rows table.Source) table.Source {
	return table.Filtered(rows, func(b *table.Batch) (*table.Batch, error) {
		made, err := p.Transform(b)
		if target := b.Find(targetColumn); err == nil && target != nil {
			kept := *target
			kept.Numbers = stay(target.Numbers, b, made)
			made.Columns = append(slices.Clone(made.Columns), kept)
		}
		return made, err
	})
}

// Over is a source of the rows that the pipeline makes of another source's.
func (p *Pipeline) Over(rows table.Source) table.Source { return table.Filtered(rows, p.Transform) }

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
	for i, s := range p.Stages {
		kind := p.Kinds.Or(Kinds).NameOf(s)
		if kind == "" {
			return nil, fmt.Errorf("a stage of type %T cannot be written: give Kinds that have it", s)
		}
		data, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at(i, s), err)
		}
		out.Stages = append(out.Stages, stageJSON{kind, data})
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
	read := Pipeline{Input: in.Input, Kinds: p.Kinds, Stages: []table.Stage{}} // none, rather than not said
	for i, s := range in.Stages {
		make := p.Kinds.Or(Kinds)[s.Kind]
		if make == nil {
			return fmt.Errorf("%w: stage %d is of kind %q, which this release does not know", ErrPipeline, i+1, s.Kind)
		}
		stage := make()
		err := json.Unmarshal(s.Stage, stage)
		if err == nil {
			err = Check(stage)
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
