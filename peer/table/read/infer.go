package read

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-97356399/murmuration/peer/table"
)

// infer reads the first rows of a file and returns the kinds of its columns: Number if all values are numbers, else
// Category. Its notes say which of these may be wrong.
func infer(f file, c Config) (*table.Schema, []Note, error) {
	g := &guesser{index: map[string]int{}, point: c.point(), markers: newMarkers(c.Missing)}
	r, err := f.open(g)
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	for range InferRows {
		if f.format == "parquet" { // the file itself has the types
			break
		}
		if _, err := r.next(g); err == io.EOF { // damaged rows are reported by later passes
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("reading the first rows of %s: %w", f.path, err)
		}
		g.at(r.line())
	}
	if len(g.columns) == 0 {
		return nil, nil, fmt.Errorf("%s has no columns", f.path)
	}
	if len(g.columns) > MaxColumns {
		return nil, nil, fmt.Errorf("%s has more than %d columns", f.path, MaxColumns)
	}
	if name := g.headless(); f.comma != 0 && name != "" {
		return nil, nil, fmt.Errorf("opening %s: line 1 has numbers where the names of the columns should be (%s, for one): put a line of names before it", f.path, name)
	}
	return g.schema(), g.notes(f), nil
}

// guesser is the sink that guesses the kinds of columns from their values.
type guesser struct {
	columns []guess
	index   map[string]int
	point   byte
	markers *markers
	fresh   []int // columns whose first text is in the current row
}

// guess has the counts of one column.
type guess struct {
	name          string
	texts, values int    // how many were seen; values are numbers
	pointed       int    // texts that are numbers with the other decimal point
	first         string // the first text and its line
	line          int64
}

// at tells the line of the last row.
func (g *guesser) at(line int64) {
	for _, i := range g.fresh {
		g.columns[i].line = line
	}
	g.fresh = g.fresh[:0]
}

// headless detects a file without a line of column names. It returns the first name that is a fraction, if the name
// of each column of numbers is a number. Whole numbers alone may be names, such as years or column numbers.
func (g *guesser) headless() (fraction string) {
	for _, c := range g.columns {
		if c.texts > 0 || c.values == 0 {
			continue
		}
		if _, ok := number([]byte(c.name), g.point); !ok {
			return ""
		}
		if fraction == "" && strings.Trim(c.name, "0123456789") != "" {
			fraction = c.name
		}
	}
	return fraction
}

// mostly is the share of numbers above which the texts in a column may be mistakes.
const mostlyNumbers = 0.95

// notes returns notes on the columns that are categories only due to a few texts or another decimal point.
func (g *guesser) notes(f file) (notes []Note) {
	mayPoint := f.comma != 0 && f.comma != g.otherPoint()
	for _, c := range g.columns {
		all := c.texts + c.values
		n := Note{Column: c.name, File: f.path, Line: c.line, Text: c.first, Numbers: c.values, Values: all}
		if c.texts > 0 && float64(c.values) > mostlyNumbers*float64(all) {
			notes = append(notes, n)
		} else if mayPoint && c.pointed > 0 && float64(c.values+c.pointed) > mostlyNumbers*float64(all) {
			n.Point, n.Numbers = g.otherPoint(), c.values+c.pointed
			notes = append(notes, n)
		}
	}
	return notes
}

// Note is a warning about a column.
type Note struct {
	Column string
	// Long: the column has integers beyond 2^53, whose last digits are lost in a number.
	Long bool
	// Otherwise the column is of categories, though Numbers of its first Values values are numbers. Text is the first
	// value that is not, at Line of File.
	File            string
	Line            int64
	Text            string
	Numbers, Values int
	// Point, if not 0, is the decimal point with which they are numbers (Config.Point).
	Point byte
}

func (n Note) String() string {
	if n.Long {
		return fmt.Sprintf("column %q has integers beyond 2^53, which as numbers lose their last digits", n.Column)
	}
	if n.Point != 0 {
		return fmt.Sprintf("column %q is of categories, for line %d of %s has %q, though with a decimal %q %d of the first %d values are numbers", n.Column, n.Line, n.File, n.Text, n.Point, n.Numbers, n.Values)
	}
	return fmt.Sprintf("column %q is of categories, for line %d of %s has %q, though %d of the first %d values are numbers", n.Column, n.Line, n.File, n.Text, n.Numbers, n.Values)
}

// otherPoint is the other decimal point: a comma if this file has dots, else a dot.
func (g *guesser) otherPoint() byte { return '.' + ',' - g.point }

func (g *guesser) schema() *table.Schema {
	s := &table.Schema{}
	for _, c := range g.columns {
		f := table.Field{Name: c.name, Unseen: c.texts == 0 && c.values == 0}
		if c.texts > 0 {
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
		return unknown
	}
	g.index[string(name)] = len(g.columns)
	g.columns = append(g.columns, guess{name: string(name)})
	return len(g.columns) - 1
}

func (g *guesser) blank() {}

func (g *guesser) none(int) {}

func (g *guesser) field(column int, value []byte) string {
	c := &g.columns[column]
	if g.markers.has(value) {
		return ""
	}
	if v, ok := number(value, g.point); !ok {
		return g.text(column, value)
	} else if v == v {
		c.values++
	}
	return ""
}

func (g *guesser) typed(column int, kind table.Kind) {
	if kind == table.Category {
		g.columns[column].texts++
	} else {
		g.columns[column].values++
	}
}

func (g *guesser) text(column int, value []byte) string {
	c := &g.columns[column]
	if _, ok := number(value, g.otherPoint()); ok {
		c.pointed++
	}
	if c.texts++; c.texts == 1 {
		c.first = cut(value)
		g.fresh = append(g.fresh, column)
	}
	return ""
}

func (g *guesser) number(column int, _ float64) string {
	g.columns[column].values++
	return ""
}

func (g *guesser) long(int) {}
