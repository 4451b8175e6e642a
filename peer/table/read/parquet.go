package read

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pages "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/zstd"

	"github.com/seed-97356399/murmuration/peer/table"
)

// parquetRows reads a Parquet file, column by column, a few thousand rows at a time. It reads the pages of columns
// without arrow-go's pqarrow, which would link gRPC into every service that reads a table.
type parquetRows struct {
	in      *os.File
	file    *pages.Reader
	columns []*parquetColumn
	places  []int // the sink's column of each column
	group   int   // the next row group
	left    int64 // rows of the current group that are not decoded yet
	n, at   int   // decoded rows, and index of the next
	row     int64 // number of the next row in the file
}

// parquetBatch is the number of rows that are decoded at a time.
const parquetBatch = 4096

// boundZstd makes arrow-go limit a page that is compressed by zstd to its declared size. Otherwise arrow-go checks
// the size only after decompressing all of the page into memory.
var boundZstd = sync.OnceFunc(func() {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if d, failed := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true)); errors.Join(err, failed) == nil {
		compress.RegisterCodec(compress.Codecs.Zstd, boundedZstd{codec, d})
	}
})

type boundedZstd struct {
	compress.Codec
	*zstd.Decoder
}

func (b boundedZstd) DecodeWithError(dst, src []byte) ([]byte, error) {
	return b.DecodeAll(src, dst[:0:len(dst)])
}

func openParquet(in *os.File, s sink) (r *parquetRows, err error) {
	defer func() { err = recovered(recover(), err) }()
	boundZstd()
	begin := make([]byte, len(magic["parquet"]))
	if _, err := in.ReadAt(begin, 0); err != nil || string(begin) != magic["parquet"] {
		return nil, errors.New("it is no Parquet file")
	}
	props := parquet.NewReaderProperties(memory.NewGoAllocator())
	props.BufferedStreamEnabled = true // reads a page at a time, not a row group
	props.MaxUncompressedPageSize = MaxPage
	whole, err := pages.NewParquetReader(in, pages.WithReadProps(props))
	if err != nil {
		return nil, fmt.Errorf("its end, where a Parquet file tells what is in it, is missing or damaged (is it cut off?): %w", err)
	}
	r = &parquetRows{in: in, file: whole}
	var all []*parquetColumn
	var names []string
	columns := whole.MetaData().Schema
	for i := range columns.NumColumns() {
		c, err := newParquetColumn(columns.Column(i))
		if err != nil {
			return nil, err
		}
		all, names = append(all, c), append(names, c.name)
	}
	if err := checkNames(names); err != nil {
		return nil, err
	}
	places, err := s.places(names)
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		if places[i] == ignored {
			continue
		}
		kind := table.Number
		if c.isText {
			kind = table.Category
		}
		s.typed(places[i], kind)
		c.at = i
		r.columns, r.places = append(r.columns, c), append(r.places, places[i])
	}
	return r, nil
}

func (r *parquetRows) next(s sink) (*Damage, error) {
	if r.at == r.n {
		if err := r.decode(); err == io.EOF {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("after row %d of %d: %w", r.row, r.file.NumRows(), err)
		}
	}
	at := r.at
	r.at++
	r.row++
	for i, c := range r.columns {
		if wrong := c.put(s, r.places[i], at); wrong != "" {
			return &Damage{Line: r.row, Column: c.name, Reason: wrong, Text: c.valueText(at)}, nil
		}
	}
	return nil, nil
}

// decode decodes the next rows of all columns.
func (r *parquetRows) decode() (err error) {
	defer func() { err = recovered(recover(), err) }()
	for r.left == 0 {
		if r.group == r.file.NumRowGroups() {
			return io.EOF
		}
		group := r.file.RowGroup(r.group)
		for _, c := range r.columns {
			if c.chunk, err = group.Column(c.at); err != nil {
				return fmt.Errorf("column %q: %w", c.name, err)
			}
		}
		r.group++
		r.left = group.NumRows()
	}
	r.n, r.at = int(min(parquetBatch, r.left)), 0
	r.left -= int64(r.n)
	for _, c := range r.columns {
		if err := c.decode(r.n); err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return nil
}

func (r *parquetRows) line() int64 { return r.row }

func (r *parquetRows) close() error { return r.in.Close() }

// recovered turns a panic into an error: the decoder is a library, and the file may come from anyone.
func recovered(panicked any, err error) error {
	if panicked != nil {
		return fmt.Errorf("the file is damaged: %v", panicked)
	}
	return err
}
