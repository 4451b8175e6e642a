package read

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	pages "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// parquetColumn decodes one column.
type parquetColumn struct {
	name     string
	at       int // index in the file
	isText   bool
	optional bool
	unsigned bool
	times    float64 // a number is multiplied by this
	over     float64 // and divided by this
	chunk    pages.ColumnChunkReader

	// The decoded rows: numbers, or texts whose ends in the bytes are ends.
	numbers []float64
	text    []byte
	ends    []int
	null    []bool
	defined []int16
}

const secondsOfDay = 24 * 60 * 60

// newParquetColumn chooses the conversion for a column's type. Dates and times become numbers of seconds, since 1970
// or since midnight.
func newParquetColumn(c *schema.Column) (*parquetColumn, error) {
	out := &parquetColumn{
		name: c.Path(), optional: c.MaxDefinitionLevel() > 0, times: 1, over: 1,
		null: make([]bool, parquetBatch), defined: make([]int16, parquetBatch),
	}
	unread := fmt.Errorf("column %q is of type %s %s: a table has numbers, times, texts and truth values, and no lists", c.Path(), c.PhysicalType(), c.LogicalType())
	if c.MaxRepetitionLevel() > 0 || c.MaxDefinitionLevel() > 1 || len(c.ColumnPath()) > 1 {
		return nil, unread
	}
	decimal := false
	switch t := c.LogicalType().(type) {
	case schema.DecimalLogicalType:
		out.over, decimal = math.Pow10(int(t.Scale())), true
	case schema.DateLogicalType:
		out.times = secondsOfDay
	case interface{ TimeUnit() schema.TimeUnitType }:
		out.over = cmp.Or(perSecond[t.TimeUnit()], 1e9)
	case schema.IntLogicalType:
		out.unsigned = !t.IsSigned()
	}
	physical := c.PhysicalType()
	if physical == parquet.Types.FixedLenByteArray && !decimal {
		return nil, unread
	}
	out.isText = physical == parquet.Types.Boolean || physical == parquet.Types.ByteArray && !decimal
	if out.isText {
		out.ends = make([]int, parquetBatch)
	} else {
		out.numbers = make([]float64, parquetBatch)
	}
	return out, nil
}

// perSecond is how many of a unit of time are in a second; nanoseconds are the default.
var perSecond = map[schema.TimeUnitType]float64{schema.TimeUnitMillis: 1e3, schema.TimeUnitMicros: 1e6}

// put passes the value of a row to a sink.
func (c *parquetColumn) put(s sink, column, row int) string {
	switch {
	case c.null[row]:
		s.none(column)
		return ""
	case c.isText:
		return s.text(column, c.textOf(row))
	}
	if _, whole := c.chunk.(*pages.Int64ColumnChunkReader); whole && math.Abs(c.numbers[row]) >= maxExact {
		s.long(column)
	}
	return s.number(column, c.numbers[row])
}

func (c *parquetColumn) textOf(row int) []byte {
	begin := 0
	if row > 0 {
		begin = c.ends[row-1]
	}
	return c.text[begin:c.ends[row]]
}

// valueText is a row's value as a text for a report.
func (c *parquetColumn) valueText(row int) string {
	if c.isText {
		return cut(c.textOf(row))
	}
	return strconv.FormatFloat(c.numbers[row], 'g', -1, 64)
}

// decode decodes the next rows.
func (c *parquetColumn) decode(rows int) error {
	c.text = c.text[:0]
	switch chunk := c.chunk.(type) {
	case *pages.BooleanColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v bool) { c.text = strconv.AppendBool(c.text, v) })
	case *pages.Int32ColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v int32) { c.putInteger(row, float64(v), float64(uint32(v))) })
	case *pages.Int64ColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v int64) { c.putInteger(row, float64(v), float64(uint64(v))) })
	case *pages.Int96ColumnChunkReader: // nanoseconds and Julian day, as older programs write times
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v parquet.Int96) {
			day := float64(binary.LittleEndian.Uint32(v[8:])) - 2440588
			c.numbers[row] = day*secondsOfDay + float64(binary.LittleEndian.Uint64(v[:8]))*1e-9
		})
	case *pages.Float32ColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v float32) { c.numbers[row] = float64(v) })
	case *pages.Float64ColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v float64) { c.numbers[row] = v })
	case *pages.ByteArrayColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v parquet.ByteArray) {
			if c.isText {
				c.text = append(c.text, v...)
			} else {
				c.numbers[row] = bigEndian(v) * c.times / c.over
			}
		})
	case *pages.FixedLenByteArrayColumnChunkReader:
		return decode(c, rows, chunk.ReadBatchInPage, func(row int, v parquet.FixedLenByteArray) { c.numbers[row] = bigEndian(v) * c.times / c.over })
	}
	return fmt.Errorf("its pages are of a type that is not read: %T", c.chunk)
}

// putInteger stores an integer: signed or unsigned, depending on the type of the column.
func (c *parquetColumn) putInteger(row int, signed, unsigned float64) {
	if c.numbers[row] = signed * c.times / c.over; c.unsigned {
		c.numbers[row] = unsigned
	}
}

// decode reads values page by page. It passes the values of a page to put before it reads the next page, which reuses
// the memory.
func decode[T any](c *parquetColumn, rows int, read func(int64, []T, []int16, []int16) (int64, int, error), put func(row int, v T)) error {
	values := make([]T, rows)
	for row := 0; row < rows; {
		levels, n, err := read(int64(rows-row), values, c.defined, nil)
		if err != nil {
			return err
		}
		if levels == 0 {
			return errors.New("its pages end before the rows do")
		}
		next := 0
		for i := range int(levels) {
			c.null[row] = c.optional && c.defined[i] == 0
			if !c.null[row] {
				if next == n {
					return errors.New("a page has fewer values than it says")
				}
				put(row, values[next])
				next++
			}
			if c.isText {
				c.ends[row] = len(c.text)
			}
			row++
		}
	}
	return nil
}

// bigEndian is the value of a signed integer of any number of bytes.
func bigEndian(bytes []byte) float64 {
	if len(bytes) == 0 {
		return 0
	}
	v := float64(int8(bytes[0]))
	for _, b := range bytes[1:] {
		v = v*256 + float64(b)
	}
	return v
}
