package read

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/peer/table"
)

// sink takes the values of a row, column by column. Methods that return a text return what is wrong with the value,
// or "".
type sink interface {
	// places maps a file's columns to the sink's, or to ignored. It returns an error if the file's columns do not
	// fit.
	places(names []string) ([]int, error)
	// place returns the index of the sink's column with that name, ignored or unknown.
	place(name []byte) int
	// typed tells the kind that the file itself gives a column.
	typed(column int, kind table.Kind)
	// blank makes all columns of the row missing.
	blank()
	// field takes a value of a text file, which may stand for a missing value.
	field(column int, value []byte) string
	// none, text and number take a value of a file with types.
	none(column int)
	text(column int, value []byte) string
	number(column int, value float64) string
	// long tells that the value is an integer beyond maxExact.
	long(column int)
}

// Results of place for names that are no column of the sink.
const (
	ignored = -1
	unknown = -2
)

// builder is the sink that makes batches.
type builder struct {
	schema  *table.Schema
	others  bool // ignores columns that the schema does not have
	point   byte
	index   map[string]int
	markers *markers
	columns []values
	rows    int     // of a full batch
	n       int     // rows of the current batch
	keys    []int64 // keys of these rows
	gaps    bool    // whether these keys are not consecutive
}

// values has the values of one column.
type values struct {
	kind    table.Kind
	long    bool // some integer was beyond maxExact
	numbers []float64
	codes   []int32
	dictionary
}

func newBuilder(schema *table.Schema, c Config, rows int) *builder {
	b := &builder{
		schema: schema, others: c.Others, point: c.point(), index: map[string]int{}, markers: newMarkers(c.Missing),
		columns: make([]values, len(schema.Fields)), rows: min(rows, max(1, maxBatchValues/max(1, len(schema.Fields)))),
	}
	for i, f := range schema.Fields {
		b.index[f.Name] = i
		b.columns[i].kind = f.Kind
	}
	b.begin()
	return b
}

// begin starts a batch in new memory: the caller owns that of the last batch.
func (b *builder) begin() {
	values, bytes := 0, 0
	for i := range b.columns {
		values, bytes = values+len(b.columns[i].list), bytes+b.columns[i].bytes
	}
	anew := values > maxAllValues || bytes > maxAllBytes
	for i := range b.columns {
		c := &b.columns[i]
		if c.kind == table.Number {
			c.numbers = make([]float64, b.rows)
		} else {
			c.codes = make([]int32, b.rows)
			c.dictionary.begin(anew)
		}
	}
	b.n, b.keys, b.gaps = 0, make([]int64, b.rows), false
}

func (b *builder) places(names []string) ([]int, error) {
	places, found := make([]int, len(names)), 0
	for i, name := range names {
		if places[i] = b.place([]byte(name)); places[i] >= 0 {
			found++
		}
	}
	if found < len(b.schema.Fields) || !b.others && found < len(names) {
		return nil, schemaError(b.schema, names, b.others)
	}
	return places, nil
}

func (b *builder) place(name []byte) int {
	if i, ok := b.index[string(name)]; ok {
		return i
	}
	if b.others {
		return ignored
	}
	return unknown
}

func (b *builder) long(column int) { b.columns[column].long = true }

func (b *builder) typed(int, table.Kind) {}

func (b *builder) blank() {
	for i := range b.columns {
		b.none(i)
	}
}

func (b *builder) none(column int) {
	if c := &b.columns[column]; c.kind == table.Number {
		c.numbers[b.n] = math.NaN()
	} else {
		c.codes[b.n] = table.Missing
	}
}

func (b *builder) field(column int, value []byte) string {
	if b.markers.has(value) {
		b.none(column)
		return ""
	}
	c := &b.columns[column]
	if c.kind != table.Number {
		return b.category(c, value)
	}
	v, ok := number(value, b.point)
	if !ok {
		return "not a number"
	}
	c.long = c.long || isLong(value, v)
	return b.number(column, v)
}

func (b *builder) text(column int, value []byte) string {
	c := &b.columns[column]
	if c.kind == table.Number {
		return b.field(column, value)
	}
	return b.category(c, value)
}

func (b *builder) category(c *values, value []byte) string {
	code, ok := c.code(value)
	if !ok {
		return "a text that is not UTF-8"
	}
	c.codes[b.n] = code
	return ""
}

func (b *builder) number(column int, v float64) string {
	if math.IsInf(v, 0) {
		return "an infinite number"
	}
	c := &b.columns[column]
	if c.kind == table.Number {
		c.numbers[b.n] = v
		return ""
	}
	if v != v {
		b.none(column)
		return ""
	}
	var space [32]byte
	format := byte('f')
	if math.Abs(v) >= 1e15 {
		format = 'g'
	}
	return b.category(c, strconv.AppendFloat(space[:0], v, format, -1, 64))
}

// end completes a row, after all its columns are set.
func (b *builder) end(key int64) {
	b.keys[b.n] = key
	b.gaps = b.gaps || b.n > 0 && key != b.keys[b.n-1]+1
	b.n++
}

func (b *builder) full() bool {
	if b.n == b.rows {
		return true
	}
	for i := range b.columns {
		if b.columns[i].fresh > maxBatchText {
			return true
		}
	}
	return false
}

// batch returns the rows so far and begins a new batch.
func (b *builder) batch() *table.Batch {
	out := &table.Batch{Columns: make([]table.Column, len(b.columns)), Rows: b.n, First: b.keys[0]}
	if b.gaps {
		out.Keys = b.keys[:b.n:b.n]
	}
	for i := range b.columns {
		c := &b.columns[i]
		out.Columns[i] = table.Column{Name: b.schema.Fields[i].Name, Kind: c.kind}
		if c.kind == table.Number {
			out.Columns[i].Numbers = c.numbers[:b.n:b.n]
		} else {
			out.Columns[i].Codes = c.codes[:b.n:b.n]
			out.Columns[i].Values = c.list[:len(c.list):len(c.list)]
		}
	}
	b.begin()
	return out
}

// A dictionary serves further batches until it is larger than these bounds.
const (
	maxValues     = 1 << 16
	maxValueBytes = 16 << 20
	// maxAllValues and maxAllBytes are of all columns together.
	maxAllValues = 1 << 22
	maxAllBytes  = 256 << 20
)

// dictionary numbers the texts of a column. It only grows or starts anew, so lists that batches already have stay
// valid.
type dictionary struct {
	codes map[string]int32
	list  []string
	bytes int // length of all texts
	fresh int // length of the texts that are new in this batch
}

func (d *dictionary) begin(anew bool) {
	if anew || d.codes == nil || len(d.list) > maxValues || d.bytes > maxValueBytes {
		*d = dictionary{codes: map[string]int32{}}
	}
	d.fresh = 0
}

// code returns the number of a text. The text must be UTF-8, like the JSON in which members send their categories.
func (d *dictionary) code(text []byte) (code int32, ok bool) {
	if code, ok := d.codes[string(text)]; ok {
		return code, true
	}
	if !utf8.Valid(text) {
		return 0, false
	}
	value := string(text)
	code = int32(len(d.list))
	d.list = append(d.list, value)
	d.codes[value] = code
	d.bytes, d.fresh = d.bytes+len(value), d.fresh+len(value)
	return code, true
}

// markers are the texts that stand for a missing value.
type markers struct {
	empty bool
	first [256]bool // first bytes of the texts
	texts []string
}

func newMarkers(texts []string) *markers {
	m := &markers{}
	for _, t := range texts {
		if t = strings.TrimSpace(t); t == "" {
			m.empty = true
			continue
		}
		m.first[t[0]] = true
		m.texts = append(m.texts, t)
	}
	return m
}

func (m *markers) has(value []byte) bool {
	if len(value) > 0 && value[0] > ' ' && !m.first[value[0]] {
		return false
	}
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return m.empty
	}
	return slices.ContainsFunc(m.texts, func(t string) bool { return string(value) == t })
}
