package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// ErrFormat: rows do not fit their format.
var ErrFormat = errors.New("dataset: rows that are not of their format")

// Stored encodes a set in memory for other peers; it is a rows.Set. A picture is its label and its levels, as they are
// stored. A row of numbers is its label and its numbers as float32. A window of a text is its bytes.
type Stored struct{ *Set }

// Rows is the number of examples.
func (s Stored) Rows() int { return s.Len() }

// Append appends the encodings of the examples with these numbers, from 0, to dst.
func (s Stored) Append(dst []byte, numbers []int32) ([]byte, error) {
	for _, i := range numbers {
		if i < 0 || int(i) >= s.Len() {
			return dst, fmt.Errorf("dataset: example %d of %d", i, s.Len())
		}
		if t := s.text; t != nil {
			dst = append(dst, t.bytes[t.starts[i]:int(t.starts[i])+t.window+1]...)
			continue
		}
		dst = append(append(dst, s.labels[i]), s.Image(int(i))...)
		for _, v := range s.row(int(i)) {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	return dst, nil
}

// Examples are examples that a peer gives to others: a rows.Set, as Stored is.
type Examples interface {
	Rows() int
	Append(dst []byte, numbers []int32) ([]byte, error)
}

// folderExamples are pictures in folders of classes, decoded as they are asked for.
type folderExamples struct {
	*streamConfig
	folders *classFolders
}

// Rows is the number of pictures.
func (e folderExamples) Rows() int { return len(e.part) }

// Append appends the encodings of the pictures with these numbers, as those of Stored.
func (e folderExamples) Append(dst []byte, numbers []int32) ([]byte, error) {
	d := newDeveloper(e.folders, e.shape)
	for _, i := range numbers {
		var rec record
		n := e.part[i]
		reader := folderReader{folders: e.folders, left: e.folders.pictures[n : n+1]}
		err := reader.next(&rec)
		if err == nil {
			err = d.develop(e.index, int(n/folderVolume), n, &rec, e.found)
		}
		if err != nil {
			return dst, err
		}
		dst = append(append(dst, rec.label), d.pixels...)
	}
	return dst, nil
}

// Format describes the encoding of a set's examples: their kind, shape and number of classes. NewReader reads it.
func (s *Set) Format() string {
	what := "pixels"
	if s.text != nil {
		what = "text"
	} else if s.numbers != nil {
		what = "numbers"
	}
	return fmt.Sprintf("%s %dx%dx%d/%d", what, s.shape.Height, s.shape.Width, s.shape.Channels, s.classes)
}

// FormatOf is the format of a data set's examples, or how it begins, with a space at its end, where the files decide.
func FormatOf(name string) string {
	set := &Set{shape: Shape{Height: Side, Width: Side, Channels: 1}, classes: Classes}
	for _, p := range photographs {
		if p.name == name {
			set.shape = p.shape
		}
	}
	switch {
	case name == Text || name == GoSource:
		return "text "
	case set.shape == (Shape{}):
		return "pixels "
	}
	return set.Format()
}

// Reader decodes examples of one format. Check and Set are safe for concurrent use.
type Reader struct {
	empty   Set // a set of the format without examples
	augment *augmenter
}

// NewReader makes a reader of a format. Pictures are normalized by norm, and varied by augment and seed.
func NewReader(format string, norm []Normalization, augment Augment, seed uint64) (*Reader, error) {
	var (
		what string
		sh   Shape
		r    Reader
	)
	n, err := fmt.Sscanf(format, "%s %dx%dx%d/%d", &what, &sh.Height, &sh.Width, &sh.Channels, &r.empty.classes)
	bytes := sh.Height == 1 && sh.Channels == 1 && r.empty.classes == Bytes // as texts have them
	if err != nil || n != 5 || what == "text" && !bytes || sh.Height < 1 || sh.Width < 1 || sh.Channels < 1 || sh.Height > MaxPixels || sh.Width > MaxPixels/sh.Height || sh.Channels > 4 || r.empty.classes < 1 || r.empty.classes > maxClasses {
		return nil, fmt.Errorf("%w: %q", ErrFormat, format)
	}
	r.empty.shape, r.empty.inputs = sh, sh.Values()
	switch what {
	case "pixels":
		r.empty.pixels = []uint8{}
		r.empty.levels, err = newLevels(sh.Channels, norm)
		r.augment = newAugmenter(augment, sh, seed)
	case "numbers":
		r.empty.numbers = tensor.Vector{}
	case "text":
		r.empty.text = &corpus{window: sh.Width}
	default:
		err = fmt.Errorf("%w: %q", ErrFormat, format)
	}
	return &r, err
}

// size is the number of bytes of an example.
func (r *Reader) size() int {
	if r.empty.numbers != nil {
		return 1 + 4*r.empty.inputs
	}
	return 1 + r.empty.inputs
}

// Check checks the encodings of so many examples: their size, that labels are below classes, and that numbers are finite.
func (r *Reader) Check(rows int, data []byte) error {
	if len(data) != rows*r.size() {
		return fmt.Errorf("%w: %d bytes of %d examples, each of %d", ErrFormat, len(data), rows, r.size())
	}
	for at := 0; at < len(data) && r.empty.text == nil; at += r.size() {
		if int(data[at]) >= r.empty.classes {
			return fmt.Errorf("%w: %w: %d, want less than %d", ErrFormat, ErrLabel, data[at], r.empty.classes)
		}
		for i := 0; r.empty.numbers != nil && i < r.empty.inputs; i++ {
			if v := float64(r.number(data[at:], i)); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: a number that is %v", ErrFormat, v)
			}
		}
	}
	return nil
}

// number is number i of an example, from 0.
func (r *Reader) number(example []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(example[1+4*i:]))
}

// Set checks examples, and makes a set of them.
func (r *Reader) Set(data []byte) (*Set, error) {
	if err := r.Check(len(data)/r.size(), data); err != nil {
		return nil, err
	}
	return r.set(data), nil
}

func (r *Reader) set(data []byte) *Set {
	s, size := r.empty, r.size()
	if s.text != nil {
		s.text = &corpus{window: s.text.window, bytes: data}
	}
	for at := 0; at < len(data); at += size {
		switch example := data[at : at+size]; {
		case s.text != nil:
			s.text.starts = append(s.text.starts, int32(at))
		case s.numbers != nil:
			s.labels = append(s.labels, example[0])
			for i := range s.inputs {
				s.numbers = append(s.numbers, r.number(example, i))
			}
		default:
			s.labels, s.pixels = append(s.labels, example[0]), append(s.pixels, example[1:]...)
		}
	}
	return &s
}

// Fill writes examples, which Check must have passed, into a batch. Not safe for concurrent use.
func (r *Reader) Fill(b *Batch, data []byte) {
	if size := r.size(); r.empty.pixels == nil {
		s := r.set(data)
		s.Fill(b, 0, s.Len())
	} else {
		b.Resize(len(data)/size, r.empty.inputs)
		for i := range b.Labels {
			example := data[i*size : (i+1)*size]
			b.Labels[i] = example[0]
			r.empty.levels.apply(b.row(i, r.empty.inputs), r.augment.vary(example[1:]))
		}
	}
}
