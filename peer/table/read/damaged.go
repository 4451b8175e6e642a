package read

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MaxKept is how many damaged rows Damaged describes.
const MaxKept = 1000

// maxText is how many bytes of a damaged row are kept.
const maxText = 200

// Damage is a row that could not be read.
type Damage struct {
	File   string `json:"file"`
	Line   int64  `json:"line"` // from 1, in the file; for Parquet the number of the row
	Row    int64  `json:"row"`  // the key that the row would have had
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"` // the start of the line or of the value
}

func (d Damage) String() string {
	column := ""
	if d.Column != "" {
		column = fmt.Sprintf(" column %q", d.Column)
	}
	return fmt.Sprintf("%s line %d%s: %s: %q", d.File, d.Line, column, d.Reason, d.Text)
}

// Damaged counts the rows that could not be read, and describes the first of them.
type Damaged struct {
	// Rows is the number of all rows; Count of them could not be read and were left out.
	Rows  int64 `json:"rows"`
	Count int64 `json:"count"`
	// First has the first MaxKept of the damaged rows.
	First []Damage `json:"first,omitempty"`

	tolerance float64
}

// maxShown is how many damaged rows String describes.
const maxShown = 5

// String says how many rows were left out, and describes the first of them, one a line; "" if none were.
func (d Damaged) String() string {
	if d.Count == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Rows that could not be read, and were set aside: %d of %d.\n", d.Count, d.Rows)
	shown := d.First[:min(len(d.First), maxShown)]
	for _, row := range shown {
		fmt.Fprintf(&text, "  %v\n", row)
	}
	if more := d.Count - int64(len(shown)); more > 0 && len(shown) > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	return text.String()
}

// WriteTo writes the rows that were left out as CSV: file, line, row, column, reason, text.
func (d Damaged) WriteTo(w io.Writer) (int64, error) {
	var text bytes.Buffer
	c := csv.NewWriter(&text)
	c.Write([]string{"file", "line", "row", "column", "reason", "text"})
	for _, r := range d.First {
		c.Write([]string{r.File, strconv.FormatInt(r.Line, 10), strconv.FormatInt(r.Row, 10), r.Column, r.Reason, r.Text})
	}
	c.Flush()
	return text.WriteTo(w)
}

// add counts a damaged row. It returns a *DamageError if there are more than tolerated.
func (d *Damaged) add(row Damage) error {
	d.Count++
	if len(d.First) < MaxKept {
		d.First = append(d.First, row)
	}
	tolerated := int64(d.tolerance * float64(d.Rows))
	if d.tolerance > 0 {
		tolerated = max(tolerated, MinTolerated)
	}
	if d.Count > max(tolerated, 0) {
		return &DamageError{Damaged: *d}
	}
	return nil
}

// all returns an error if all rows were damaged.
func (d *Damaged) all() error {
	if d.Count > 0 && d.Count == d.Rows {
		return &DamageError{Damaged: *d}
	}
	return nil
}

// DamageError: more rows are damaged than Config.Tolerance allows.
type DamageError struct {
	Damaged
}

func (e *DamageError) Error() string {
	first := e.First[0]
	if e.Count == 1 {
		return fmt.Sprintf("%v; no damaged row is tolerated here", first)
	}
	return fmt.Sprintf("%v; with it %d of the first %d rows are damaged, more than are tolerated (%g of all): repair them, or tolerate more", first, e.Count, e.Rows, max(e.tolerance, 0))
}

// cut returns the start of a text.
func cut(text []byte) string {
	return string(text[:min(len(text), maxText)])
}
