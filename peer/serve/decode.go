package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/seed-97356399/murmuration/peer/table"
)

// maxValues bounds the values of the rows of a request, and those that are answered.
const maxValues = 1 << 20

// errTooMany: the request has more rows than are predicted at once.
var errTooMany = errors.New("too many rows for one request")

// decode reads rows as JSON: an array of rows, the same as {"rows": [...]}, or one row. A row is an object by column
// names, or an array of values. Memory grows with the values of rows that fit the model, and with one more row.
func decode(body io.Reader, about About, most int) (Rows, error) {
	b := &builder{About: about, most: min(most, maxValues/max(about.values(), about.Outputs, 1))}
	if about.Fields != nil {
		b.rows.Table = &table.Batch{Columns: make([]table.Column, len(about.Fields))}
		b.codes = make([]map[string]int32, len(about.Fields))
		for i, f := range about.Fields {
			b.rows.Table.Columns[i], b.codes[i] = table.Column{Name: f.Name, Kind: f.Kind}, make(map[string]int32)
		}
	}
	d := json.NewDecoder(body)
	err := b.all(d)
	if err == nil && b.rows.Len == 0 {
		err = errors.New("there is no row")
	}
	if err != nil {
		return Rows{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return Rows{}, errors.Join(err, errors.New("something follows the rows"))
	}
	if b.rows.Table != nil {
		b.rows.Table.Rows = b.rows.Len
	}
	return b.rows, nil
}

// builder makes Rows.
type builder struct {
	About
	most  int
	rows  Rows
	codes []map[string]int32 // of each column's Values
}

// all reads the rows of a request.
func (b *builder) all(d *json.Decoder) error {
	switch t, err := d.Token(); t {
	case json.Delim('{'):
		return b.object(d)
	case json.Delim('['):
		return b.array(d)
	default:
		return cmp.Or(err, errors.New("want an array of rows, or one row"))
	}
}

// array reads the rest of an array: rows, or the values of one.
func (b *builder) array(d *json.Decoder) error {
	var one []any
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			return err
		}
		switch v.(type) {
		case map[string]any, []any:
			if one != nil {
				return errors.New("values stand beside rows")
			}
			if err := b.add(v); err != nil {
				return fmt.Errorf("row %d: %w", b.rows.Len, err)
			}
		default:
			if one = append(one, v); len(one) > b.values() || b.rows.Len > 0 {
				return fmt.Errorf("more values than the %d of a row, or values beside rows", b.values())
			}
		}
	}
	if one != nil {
		return errors.Join(b.add(one), end(d))
	}
	return end(d)
}

// object reads the rest of an object: one row, or the rows under the name "rows".
func (b *builder) object(d *json.Decoder) error {
	row := make(map[string]any)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if name == "rows" && len(row) == 0 && b.rows.Len == 0 && (&table.Schema{Fields: b.Fields}).Find("rows") < 0 { // a column may have that name
			if t, err := d.Token(); err != nil || t != json.Delim('[') {
				return errors.Join(err, errors.New(`"rows" is no array`))
			}
			return errors.Join(b.array(d), end(d))
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return err
		}
		row[name.(string)] = v // the names of an object are texts
	}
	return errors.Join(b.add(row), end(d))
}

// end reads the end of an array or an object.
func end(d *json.Decoder) error {
	t, err := d.Token()
	if _, is := t.(json.Delim); err == nil && !is {
		err = fmt.Errorf("%.40q stands where the rows end", fmt.Sprint(t))
	}
	return err
}

// add adds a row.
func (b *builder) add(row any) error {
	if b.rows.Len++; b.rows.Len > b.most {
		return fmt.Errorf("%w: at most %d", errTooMany, b.most)
	}
	list, _ := row.([]any)
	named, _ := row.(map[string]any)
	if named == nil && len(list) != b.values() {
		return fmt.Errorf("%d values: want %d", len(list), b.values())
	}
	if named != nil && b.Fields == nil {
		return fmt.Errorf("an object: want an array of %d numbers", b.values())
	}
	for _, f := range b.Fields {
		if v, is := named[f.Name]; is {
			list = append(list, v)
		} else if named != nil {
			return fmt.Errorf("no column %q: give it, as null if it is unknown", f.Name)
		}
	}
	for i := range b.values() {
		if err := b.value(i, list[i]); err != nil {
			return err
		}
	}
	return nil
}

// value adds a value in a column.
func (b *builder) value(i int, v any) error {
	number, isNumber := v.(float64)
	if b.Fields == nil {
		if !isNumber || math.Abs(number) > math.MaxFloat32 {
			return fmt.Errorf("value %d is %.40q: want a number", i+1, fmt.Sprint(v))
		}
		b.rows.Numbers = append(b.rows.Numbers, float32(number))
		return nil
	}
	c := &b.rows.Table.Columns[i]
	if c.Kind == table.Number {
		if v != nil && !isNumber {
			return fmt.Errorf("column %q is %.40q: want a number, or null", c.Name, fmt.Sprint(v))
		}
		if v == nil {
			number = math.NaN()
		}
		c.Numbers = append(c.Numbers, number)
		return nil
	}
	var text string
	switch v := v.(type) {
	case nil:
		c.Codes = append(c.Codes, table.Missing)
		return nil
	case float64:
		text = strconv.FormatFloat(v+0, 'g', -1, 64) // as package table writes it
	case string, bool:
		text = fmt.Sprint(v)
	default:
		return fmt.Errorf("column %q: want a text or null", c.Name)
	}
	code, known := b.codes[i][text]
	if !known {
		code = int32(len(c.Values))
		b.codes[i][text], c.Values = code, append(c.Values, text)
	}
	c.Codes = append(c.Codes, code)
	return nil
}
