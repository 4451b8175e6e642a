package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// ErrFormat: rows are not what their format says.
var ErrFormat = errors.New("dataset: rows that are not of their format")

// Stored is a set that is in memory as other peers are given it: of each picture its label and its levels, as they are
// stored; of a row of numbers its label and float32; of a window of a text its bytes. It is a rows.Set.
type Stored struct{ *Set }

// Rows is how many there are.
func (s Stored) Rows() int { return s.Len() }

// Append appends the examples of these numbers to dst.
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

// Format says what the examples of a set are, enough to read them.
func (s *Set) Format() string {
	what := "pixels"
	if s.text != nil {
		what = "text"
	} else if s.numbers != nil {
		what = "numbers"
	}
	return fmt.Sprintf("%s %dx%dx%d/%d", what, s.shape.Height, s.shape.Width, s.shape.Channels, s.classes)
}

// Reader reads examples of a format. Check and Set are safe for concurrent use.
type Reader struct {
	empty   Set // of that format
	augment *augmenter
}

// NewReader makes a reader of a format; pictures are shown by a normalization, varied by augment and seed.
func NewReader(format string, norm []Normalization, augment Augment, seed uint64) (*Reader, error) {
	var (
		what string
		sh   Shape
		r    Reader
	)
	n, err := fmt.Sscanf(format, "%s %dx%dx%d/%d", &what, &sh.Height, &sh.Width, &sh.Channels, &r.empty.classes)
	if err != nil || n != 5 || sh.Height < 1 || sh.Width < 1 || sh.Channels < 1 || sh.Height > MaxPixels || sh.Width > MaxPixels/sh.Height || sh.Channels > 4 || r.empty.classes < 1 || r.empty.classes > maxClasses {
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

// size is that of an example, in bytes.
func (r *Reader) size() int {
	if r.empty.numbers != nil {
		return 1 + 4*r.empty.inputs
	}
	return 1 + r.empty.inputs
}

// Check tells whether bytes are so many examples: their shape, labels that are of a class, numbers that are finite.
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

// number is the i-th of an example.
func (r *Reader) number(example []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(example[1+4*i:]))
}

// Set makes a set of examples, which it checks.
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

// Fill shows examples that Check has passed in a batch. Not safe for concurrent use.
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
