package read

import (
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/peer/table"
)

// infer looks at the first rows of a file and says what its columns are: Numbers if all values
// seen are numbers, else Categories.
func infer(f file, missing []string) (*table.Schema, error) {
	g := &guesser{index: map[string]int{}, markers: newMarkers(missing)}
	r, err := f.open(g)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for range InferRows {
		if f.format == "parquet" { // it has told its types
			break
		}
		if _, err := r.next(g); err == io.EOF { // a damaged row is told when rows are read
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the first rows of %s: %w", f.path, err)
		}
	}
	if len(g.columns) == 0 {
		return nil, fmt.Errorf("%s has no columns", f.path)
	}
	if len(g.columns) > MaxColumns {
		return nil, fmt.Errorf("%s has more than %d columns", f.path, MaxColumns)
	}
	return g.schema(), nil
}

// guesser is the sink that looks what kinds values are of.
type guesser struct {
	columns []guess
	index   map[string]int
	markers *markers
}

// guess is what is known of a column.
type guess struct {
	name          string
	texts, values bool // seen
}

func (g *guesser) schema() *table.Schema {
	s := &table.Schema{}
	for _, c := range g.columns {
		f := table.Field{Name: c.name, Unseen: !c.texts && !c.values}
		if c.texts {
			f.Kind = table.Category
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}

func (g *guesser) places(names []string) ([]int, error) {
	places := make([]int, len(names))
	for i, name := range names {
		places[i] = g.place([]byte(name))
	}
	return places, nil
}

func (g *guesser) place(name []byte) int {
	if i, ok := g.index[string(name)]; ok {
		return i
	}
	if len(g.columns) > MaxColumns {
		return -1
	}
	g.index[string(name)] = len(g.columns)
	g.columns = append(g.columns, guess{name: string(name)})
	return len(g.columns) - 1
}

func (g *guesser) blank() {}

func (g *guesser) none(int) {}

func (g *guesser) field(column int, value []byte) string {
	c := &g.columns[column]
	if c.texts || g.markers.has(value) {
		return ""
	}
	if v, ok := number(value); !ok {
		c.texts = true
	} else if v == v {
		c.values = true
	}
	return ""
}

func (g *guesser) typed(column int, kind table.Kind) {
	c := &g.columns[column]
	c.texts, c.values = kind == table.Category, kind == table.Number
}

func (g *guesser) text(column int, _ []byte) string {
	g.columns[column].texts = true
	return ""
}

func (g *guesser) number(column int, _ float64) string {
	g.columns[column].values = true
	return ""
}
