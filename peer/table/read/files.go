package read

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/seed-97356399/murmuration/peer/table"
)

// The formats by the ends of file names.
var formats = map[string]string{
	".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
}

// The compressions by the ends of file names.
var packed = map[string]string{".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}

// magic has the first bytes of files by format.
var magic = map[string]string{"gzip": "\x1f\x8b", "zstd": "\x28\xb5\x2f\xfd", "parquet": "PAR1"}

// maxWindow bounds the memory that a zstd file may ask for.
const maxWindow = 128 << 20

// file is one file of a table.
type file struct {
	path     string
	format   string
	compress string // "" or one of packed
	comma    byte   // between the fields of a CSV or TSV file
	encoding string
}

// fileOf derives format and compression from the name of a file; format is "" if the name has neither.
func fileOf(path string) file {
	f := file{path: path}
	name := strings.ToLower(filepath.Base(path))
	if c, ok := packed[filepath.Ext(name)]; ok {
		f.compress = c
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	f.format = formats[filepath.Ext(name)]
	return f
}

// find lists the files of paths.
func find(paths []string, c Config) ([]file, error) {
	format := c.Format
	if format != "" && format != "csv" && format != "tsv" && format != "jsonl" && format != "parquet" {
		return nil, fmt.Errorf("no such format: %q (csv, tsv, jsonl or parquet)", format)
	}
	var files []file
	for _, path := range paths {
		some, err := expand(path, format)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	if len(files) == 0 {
		return nil, errors.New("no file to read a table from was named")
	}
	for i := range files {
		files[i].encoding = c.Encoding
		if format != "" {
			files[i].format = format
		}
		if files[i].format == "" {
			return nil, fmt.Errorf("%s: its name does not say whether it is csv, tsv, jsonl or parquet (and .gz or .zst): name the format", files[i].path)
		}
		files[i].comma = map[string]byte{"csv": ',', "tsv": '\t'}[files[i].format]
		if files[i].comma != 0 && c.Separator != 0 {
			files[i].comma = c.Separator
		}
		if comma := files[i].comma; c.point() == ',' && (comma == ',' || comma == 0) {
			return nil, fmt.Errorf("%s: a decimal comma needs csv with another separator, or tsv", files[i].path)
		}
	}
	return files, nil
}

// expand lists the files of a path, which may be a folder or a pattern.
func expand(path, format string) ([]file, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return []file{fileOf(path)}, nil
	}
	if err == nil {
		return folder(path, format)
	}
	matches, globErr := filepath.Glob(path)
	if globErr != nil {
		return nil, fmt.Errorf("the pattern %s: %w", path, globErr)
	}
	if len(matches) == 0 {
		return nil, fmt.Errorf("opening a table: %w", err)
	}
	var files []file
	for _, m := range matches {
		files = append(files, fileOf(m))
	}
	return files, nil
}

// folder lists the tables in a folder.
func folder(path, format string) ([]file, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("opening a folder of tables: %w", err)
	}
	var files []file
	for _, e := range entries {
		f := fileOf(filepath.Join(path, e.Name()))
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || f.format == "" || format != "" && f.format != format {
			continue
		}
		if len(files) > 0 && files[0].format != f.format {
			return nil, fmt.Errorf("%s has tables of several formats (%s, %s): name the files or the format", path, filepath.Base(files[0].path), e.Name())
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file named as a table (.csv, .tsv, .jsonl, .parquet, also with .gz or .zst)", path)
	}
	return files, nil
}

// rows reads the rows of one file.
type rows interface {
	// next passes a row to a sink, or returns its damage; io.EOF at the end.
	next(s sink) (*Damage, error)
	line() int64 // number of the line of that row
	close() error
}

// open opens a file, and names it in errors.
func (f file) open(s sink) (rows, error) {
	r, err := f.start(s)
	if err == nil {
		return r, nil
	}
	var differs *table.SchemaError
	if errors.As(err, &differs) {
		differs.Where = f.path
		return nil, err
	}
	return nil, fmt.Errorf("opening %s: %w", f.path, err)
}

func (f file) start(s sink) (rows, error) {
	in, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	var r rows
	if f.format == "parquet" {
		r, err = openParquet(in, s)
	} else {
		r, err = f.text(in, s)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return r, nil
}

// text opens a text file.
func (f file) text(in *os.File, s sink) (rows, error) {
	plain, err := f.unpack(in)
	if err != nil {
		return nil, err
	}
	if plain = asUTF8(plain, f.encoding); f.format == "jsonl" {
		return openJSON(plain, s)
	}
	return openCSV(plain, f.comma, s)
}

// unpack returns the text of a compressed file. Closing the text closes the file.
func (f file) unpack(in *os.File) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(in, firstBuffer)
	head, _ := buffered.Peek(4)
	for name, begin := range magic {
		if is := bytes.HasPrefix(head, []byte(begin)); is && name != f.compress {
			return nil, fmt.Errorf("it is %s inside, which its name does not say: rename it", name)
		} else if !is && name == f.compress {
			return nil, fmt.Errorf("it is no %s file, as its name says: rename it, or fetch it again", name)
		}
	}
	switch f.compress {
	case "gzip":
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		return unpacked{Reader: z, closer: in.Close}, nil
	case "zstd":
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return unpacked{Reader: z, closer: func() error { z.Close(); return in.Close() }}, nil
	}
	return unpacked{Reader: buffered, closer: in.Close}, nil
}

// unpacked is a text with the function that closes it.
type unpacked struct {
	io.Reader
	closer  func() error
	recoded bool // converted from another encoding than UTF-8
}

func (u unpacked) Close() error { return u.closer() }

// checkHeads returns an error if a file does not have the columns of a schema.
func checkHeads(files []file, s *table.Schema, c Config) error {
	for _, f := range files {
		r, err := f.open(newBuilder(s, c, 1))
		if err == nil {
			err = r.close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// schemaError returns an error that lists how the columns of a file differ from those of a schema. With others, further
// columns are allowed.
func schemaError(s *table.Schema, names []string, others bool) error {
	there := &table.Schema{}
	for _, name := range names {
		f := table.Field{Name: name}
		if at := s.Find(name); at >= 0 {
			f = s.Fields[at]
		}
		there.Fields = append(there.Fields, f)
	}
	return &table.SchemaError{Differences: slices.DeleteFunc(s.Differences(there), func(d table.Difference) bool {
		return d.What == table.OtherPlace || others && d.What == table.Extra
	})}
}

// checkNames returns an error if there are too many columns or two have one name.
func checkNames(names []string) error {
	if len(names) > MaxColumns {
		return fmt.Errorf("%d columns, at most %d", len(names), MaxColumns)
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if _, isNumber := number([]byte(name), '.'); isNumber && seen[name] {
			return fmt.Errorf("column %q is there twice: is the line of the columns' names missing?", name)
		}
		if seen[name] {
			return fmt.Errorf("column %q is there twice", name)
		}
		seen[name] = true
	}
	return nil
}
