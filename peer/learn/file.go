package learn

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Errors of model files.
var (
	// ErrModelFile is a file that holds no model, or not all of it.
	ErrModelFile = errors.New("learn: not a sound model file")
	// ErrModelKind is a model that this release cannot read or write.
	ErrModelKind = errors.New("learn: unknown kind of model")
)

const (
	fileMagic   = "murmuration model" // begins the first line
	fileVersion = 1
	maxHeader   = 256     // bytes of the first line
	maxFile     = 1 << 30 // bytes of what follows: Load takes no more into memory
)

// File is all that predicting needs: what prepares the rows, and the model.
type File struct {
	// Pipeline is the table.Pipeline's JSON; nil if rows go into the model as they are.
	Pipeline json.RawMessage
	// Target is the expression that was learned, as the user wrote it; "" without one.
	Target string
	// Classes are the names of the classes, in the order of the model's outputs; nil for numbers.
	Classes []string
	// Features are the columns that Pipeline (or the model, without one) wants to be given,
	// and their kinds: what is to be predicted is read with these.
	Features []table.Field
	Model    Model
}

// fileContent is what stands after the first line.
type fileContent struct {
	Pipeline json.RawMessage `json:"pipeline,omitempty"`
	Target   string          `json:"target,omitempty"`
	Classes  []string        `json:"classes,omitempty"`
	Features []table.Field   `json:"features,omitempty"`
	typedModel
}

// Save writes a file: a line that says what it is ("murmuration model 1 KIND BYTES SHA256"),
// then as many bytes of JSON. The same File gives the same bytes.
func Save(w io.Writer, f File) error {
	model, err := encodeModel(f.Model)
	if err != nil {
		return err
	}
	content, err := json.Marshal(fileContent{f.Pipeline, f.Target, f.Classes, f.Features, model})
	if err != nil {
		return fmt.Errorf("learn: saving a model: %w", err)
	}
	content = append(content, '\n')
	if len(content) > maxFile {
		return fmt.Errorf("learn: saving a model: its %d bytes are more than %d, the most that Load takes", len(content), maxFile)
	}
	sum := sha256.Sum256(content)
	header := fmt.Sprintf("%s %d %s %d %s\n", fileMagic, fileVersion, model.Kind, len(content), hex.EncodeToString(sum[:]))
	if _, err := w.Write(append([]byte(header), content...)); err != nil {
		return fmt.Errorf("learn: saving a model: %w", err)
	}
	return nil
}

// Load reads what Save wrote. What is no such file, was cut or changed gives ErrModelFile; a
// kind or version of a newer release gives ErrModelKind.
func Load(r io.Reader) (File, error) {
	in := bufio.NewReaderSize(r, maxHeader)
	line, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return File{}, fmt.Errorf("learn: reading a model: %w", err)
	}
	if !strings.HasPrefix(string(line), fileMagic+" ") {
		return File{}, fmt.Errorf("%w: its first line does not begin with %q", ErrModelFile, fileMagic)
	}
	var version, size int
	var kind, sum string
	if _, err := fmt.Sscanf(string(line[len(fileMagic):]), "%d", &version); err == nil && version != fileVersion {
		return File{}, fmt.Errorf("%w: a file of version %d, this release reads version %d", ErrModelKind, version, fileVersion)
	}
	n, err := fmt.Sscanf(string(line[len(fileMagic):]), "%d %s %d %s\n", &version, &kind, &size, &sum)
	if err != nil || n != 4 || size < 0 || size > maxFile {
		return File{}, fmt.Errorf("%w: its first line is damaged", ErrModelFile)
	}
	content, err := io.ReadAll(io.LimitReader(in, int64(size)+1))
	if err != nil {
		return File{}, fmt.Errorf("learn: reading a model: %w", err)
	}
	if len(content) < size {
		return File{}, fmt.Errorf("%w: it ends after %d of %d bytes; copy it again", ErrModelFile, len(content), size)
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return File{}, fmt.Errorf("%w: its contents do not have the checksum of its first line; copy it again", ErrModelFile)
	}
	return parseContent(content)
}

func parseContent(content []byte) (File, error) {
	var c fileContent
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&c); err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrModelFile, err)
	}
	model, err := c.decode()
	if err != nil {
		return File{}, err
	}
	if n := len(c.Classes); n > 0 && model.Outputs() != n {
		return File{}, fmt.Errorf("%w: %d classes for a model of %d outputs", ErrModelFile, n, model.Outputs())
	}
	return File{c.Pipeline, c.Target, c.Classes, c.Features, model}, nil
}
