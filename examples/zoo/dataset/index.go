package dataset

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// index is what one quick pass tells of a source, in which labels are read and no
// picture is decoded: how many records each file has, and of what class they are.
// Records that their file shows to be damaged have no number. It does not change
// once made.
type index struct {
	dir    string // where the files are
	source source
	// limit is above all labels.
	limit int
	// labels has the class of each record, by its number.
	labels []uint8
	// starts has the number of the first record of each file, and the number of
	// all records behind them.
	starts []int32
}

// readIndex makes the pass. Classes is 0 if any label will do. The error is a
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

// next reads a record of a file, and refuses labels that are of no class.
func (x *index) next(f int, reader recordReader, rec *record) error {
	if err := reader.next(rec); err != nil {
		return err
	}
	if int(rec.label) >= x.limit {
		return &RecordError{Path: x.source.path(f), Key: rec.key, Err: fmt.Errorf("%w: %d, want less than %d", ErrLabel, rec.label, x.limit)}
	}
	return nil
}

// blame names a file in an error that does not.
func (x *index) blame(f int, err error) error {
	if _, named := errors.AsType[*DataError](err); named {
		return err
	}
	return &DataError{Path: x.source.path(f), Err: err}
}

// blameAll names the folder in an error about all of it.
func (x *index) blameAll(err error) error { return &DataError{Path: x.dir, Err: err} }

// in cuts from ascending numbers those of the records of a file.
func (x *index) in(f int, numbers []int32) []int32 {
	from, _ := slices.BinarySearch(numbers, x.starts[f])
	to, _ := slices.BinarySearch(numbers, x.starts[f+1])
	return numbers[from:to]
}
