package serve

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Model is one version of what is served. It never changes: a model that is trained on is another Model, with a copy
// of the parameters (peer.Trainer's Snapshot makes one). Many goroutines call its methods at once.
type Model interface {
	About() About
	// Predict appends About().Outputs finite numbers for each row to dst: probabilities of the classes, or numbers. An
	// error is told to the client as a fault of its rows.
	Predict(dst []float64, rows Rows) ([]float64, error)
}

// About says what a Model is.
type About struct {
	// Kind names the model, such as "logistic"; Version differs between any two versions.
	Kind    string `json:"kind"`
	Version string `json:"version"`
	// Step is how many steps it was trained for; 0 is unknown.
	Step uint64 `json:"step,omitempty"`
	// Fields are the columns of a row. Without Fields a row is Width numbers, such as the pixels of a picture of
	// Shape (height, width, channels), line by line.
	Fields []table.Field `json:"inputs,omitempty"`
	Width  int           `json:"width,omitempty"`
	Shape  []int         `json:"shape,omitempty"`
	// Target is what is predicted. Classes are the names of the outputs if these are probabilities.
	Target  string   `json:"target,omitempty"`
	Classes []string `json:"classes,omitempty"`
	Outputs int      `json:"outputs"`
	// Figure says what the held-out figure is, such as "accuracy".
	Figure string `json:"figure,omitempty"`
}

// takes tells whether another model takes the same rows.
func (a About) takes(other About) bool {
	return a.Width == other.Width && slices.Equal(a.Fields, other.Fields)
}

// values is the number of values in a row.
func (a About) values() int { return max(len(a.Fields), a.Width) }

// Rows are rows to predict, in the form that the model's About asks for.
type Rows struct {
	Len int
	// Table has a column for each of About.Fields, in that order; null is a missing value.
	Table *table.Batch
	// Numbers are Len rows of About.Width finite numbers, one row after the other.
	Numbers []float32
}

// Served is a model while it is served.
type Served struct {
	Model
	Figure float64 // on held-out rows, at the last check; NaN is unknown
	Since  time.Time
}

// Holder holds the model that is served. Whoever takes a model from it keeps that one whole, however often it is
// swapped meanwhile. The zero value has none. It is safe for concurrent use.
type Holder struct {
	current atomic.Pointer[Served]
	came    [decisions]atomic.Uint64 // checks, by what came of them
}

// Served is the model that is served now; nil before the first.
func (h *Holder) Served() *Served { return h.current.Load() }

// Swap serves a model from now on. Only one goroutine may swap.
func (h *Holder) Swap(m Model, figure float64) { h.current.Store(&Served{m, figure, time.Now()}) }
