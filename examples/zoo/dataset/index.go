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

// index lists the records of a source: how many each file has, and the class of each.
// It is made in one fast pass, which reads labels and decodes no picture. Records that
// are found to be damaged in this pass get no number. An index does not change after
// it is made.
type index struct {
	dir    string // folder of the files
	source source
	kept   *decoded.Folder // keeps decoded records; nil if none are kept
	shape  Shape           // of decoded pictures; zero until it is known
	// limit is the number of classes: all labels are below it.
	limit int
	// labels has the class of each record, by its number.
	labels []uint8
	// starts has the number of the first record of each file, and at its end the
	// number of all records.
	starts []int32
}

// readIndex makes an index. If classes is 0, any label is allowed. The error is a
// *DataError, or that of ctx.
func readIndex(ctx context.Context, c Config, s source, classes int, found *findings) (*index, error) {
	x := &index{dir: c.Dir, source: s, kept: c.Decoded, limit: classes, starts: []int32{0}}
	if classes == 0 {
		x.limit = maxClasses
	}
	for f := range s.files() {
		if err := x.readLabels(ctx, f, found); err != nil {
			return nil, x.blame(f, err)
		}
		x.starts = append(x.starts, int32(len(x.labels)))
	}
	return x, nil
}

func (x *index) readLabels(ctx context.Context, f int, found *findings) error {
	reader, err := x.open(ctx, f, true)
	if err != nil {
		return err
	}
	defer reader.Close()
	var first *RecordError
	var rec record
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := x.next(f, reader, &rec)
		damaged, is := errors.AsType[*RecordError](err)
		switch {
		case err == nil:
			x.labels = append(x.labels, rec.label)
		case is:
			found.skip(noNumber, damaged)
			if first == nil {
				first = damaged
			}
		case err == io.EOF && len(x.labels) > int(x.starts[f]):
			return nil
		case err == io.EOF && first != nil:
			return fmt.Errorf("%w that can be used: all are damaged; %s: %w", ErrEmpty, first.Key, first.Err)
		case err == io.EOF:
			return fmt.Errorf("%w: is it of another data set?", ErrEmpty)
		default:
			return err
		}
		if len(x.labels) > MaxRecords {
			return fmt.Errorf("%w: more than %d records up to here", ErrTooLarge, MaxRecords)
		}
	}
}

// open reads the records of a file from its start; with labels, only their labels. If there is a folder to keep them, the records
// are decoded only once for all jobs with this folder.
func (x *index) open(ctx context.Context, f int, labels bool) (recordReader, error) {
	folders, _ := x.source.(*classFolders)
	if x.kept == nil || labels && folders != nil || !labels && x.shape == (Shape{}) { // then no pictures are decoded
		return x.source.open(f, labels)
	}
	r := decoded.Recipe{Files: x.source.parts(f), Settings: fmt.Sprint("pictures ", labels, x.shape)}
	if folders != nil {
		r.Settings += fmt.Sprintf(" %q", folders.classes) // labels are indexes of classes
	}
	file, err := x.kept.Open(ctx, r, func(w io.Writer) error { return decode(ctx, w, x, f, labels) })
	if err != nil {
		return x.source.open(f, labels)
	}
	return &decodedReader{Closer: file, path: x.source.path(f), in: gob.NewDecoder(file)}, nil
}

// next reads a record of a file, and refuses labels that are not below the limit.
func (x *index) next(f int, reader recordReader, rec *record) error {
	if err := reader.next(rec); err != nil {
		return err
	}
	if int(rec.label) >= x.limit {
		return &RecordError{Path: x.source.path(f), Key: rec.key, Err: fmt.Errorf("%w: %d, want less than %d", ErrLabel, rec.label, x.limit)}
	}
	return nil
}

// blame adds the name of a file to an error that names none.
func (x *index) blame(f int, err error) error {
	if _, named := errors.AsType[*DataError](err); named {
		return err
	}
	return &DataError{Path: x.source.path(f), Err: err}
}

// blameAll adds the name of the folder to an error that concerns all of it.
func (x *index) blameAll(err error) error { return &DataError{Path: x.dir, Err: err} }

// in returns, of ascending record numbers, those in file f.
func (x *index) in(f int, numbers []int32) []int32 {
	from, _ := slices.BinarySearch(numbers, x.starts[f])
	to, _ := slices.BinarySearch(numbers, x.starts[f+1])
	return numbers[from:to]
}
