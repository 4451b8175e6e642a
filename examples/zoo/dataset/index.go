package dataset

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// index lists the records of a source: how many each file has, and the class of each.
// It is made in one fast pass, which reads labels and decodes no picture. Records that
// are found to be damaged in this pass get no number. An index does not change after
// it is made.
type index struct {
	dir    string // folder of the files
	source source
	// limit is the number of classes: all labels are below it.
	limit int
	// labels has the class of each record, by its number.
	labels []uint8
	// starts has the number of the first record of each file, and at its end the
	// number of all records.
	starts []int32
}

// readIndex makes an index. If classes is 0, any label is allowed. The error is a
// *DataError.
func readIndex(dir string, s source, classes int, found *findings) (*index, error) {
	x := &index{dir: dir, source: s, limit: classes, starts: []int32{0}}
	if classes == 0 {
		x.limit = maxClasses
	}
	for f := range s.files() {
		if err := x.readLabels(f, found); err != nil {
			return nil, x.blame(f, err)
		}
		x.starts = append(x.starts, int32(len(x.labels)))
	}
	return x, nil
}

func (x *index) readLabels(f int, found *findings) error {
	reader, err := x.source.open(f, true)
	if err != nil {
		return err
	}
	defer reader.Close()
	var first *RecordError
	var rec record
	for {
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
