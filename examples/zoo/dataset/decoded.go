package dataset

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/peer/decoded"
)

// decodedRecord is a record in a file of decoded data. Skipped says why the record is damaged, Lost why it has no picture; the
// error is of that kind.
type decodedRecord struct {
	Key           string
	Label         uint8
	Pixels        []uint8
	Resized       bool
	Skipped, Lost string
	Kind          int
}

// kinds are the errors that a record's fault can wrap.
var kinds = []error{ErrRecord, ErrLabel, ErrPicture}

// fault is the error of a record of that kind. The text names the kind already.
type fault struct {
	text string
	kind error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

// usualShapeOnce is usualShape, but only one of several jobs looks at the pictures.
func usualShapeOnce(ctx context.Context, x *index, c Config, found *findings) (Shape, error) {
	r := decoded.Recipe{Settings: fmt.Sprint("shape ", c.Width, c.Height)}
	for i := range x.source.files() {
		r.Files = append(r.Files, x.source.parts(i)...)
	}
	return decoded.Value(ctx, x.kept, r, func() (Shape, error) { return x.usualShape(ctx, c.Width, c.Height, found) })
}

// decode decodes the records of a file, and writes them to w.
func decode(ctx context.Context, w io.Writer, x *index, f int, labels bool) error {
	reader, err := x.source.open(f, labels)
	if err != nil {
		return err
	}
	defer reader.Close()
	out, decoder, pixels := gob.NewEncoder(w), x.source.newDecoder(), make([]uint8, x.shape.Values())
	for ctx.Err() == nil {
		var rec record
		err := reader.next(&rec)
		if err == io.EOF {
			return nil
		}
		d := decodedRecord{Key: rec.key, Label: rec.label}
		if damaged, is := errors.AsType[*RecordError](err); is {
			d = decodedRecord{Key: damaged.Key, Skipped: damaged.Err.Error()}
		} else if err != nil {
			return err
		} else if !labels {
			if rec.fault != nil && rec.fault != errLong {
				return rec.fault // it could not be read, and another time it may: nothing is kept
			}
			d.Pixels = pixels
			if err = rec.fault; err == nil {
				d.Resized, err = decoder.decode(pixels, x.shape, rec.packed)
			}
			if err != nil {
				d.Pixels, d.Lost = nil, err.Error()
			}
		}
		d.Kind = slices.IndexFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
		if err := out.Encode(d); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// decodedReader reads what decode has written.
type decodedReader struct {
	io.Closer
	path   string
	in     *gob.Decoder
	pixels []uint8 // reused by next
}

func (r *decodedReader) next(rec *record) error {
	d := decodedRecord{Pixels: r.pixels[:0]}
	if err := r.in.Decode(&d); err != nil {
		return err
	}
	r.pixels = d.Pixels
	why := &fault{text: d.Skipped + d.Lost}
	if d.Kind >= 0 && d.Kind < len(kinds) {
		why.kind = kinds[d.Kind]
	}
	if d.Skipped != "" {
		return &RecordError{Path: r.path, Key: d.Key, Err: why}
	}
	*rec = record{key: d.Key, label: d.Label, pixels: d.Pixels, resized: d.Resized}
	if d.Lost != "" {
		rec.pixels, rec.fault = nil, why
	}
	return nil
}
