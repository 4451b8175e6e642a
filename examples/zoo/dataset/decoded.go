package dataset

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/seed-97356399/murmuration/peer/decoded"
)

// decodedSource is a source whose files are decoded only once for all jobs with the same folder of decoded data.
type decodedSource struct {
	source
	folder *decoded.Folder
	shape  Shape // of the decoded pictures; zero until it is known
}

// decodedRecord is a record in a file of decoded data. Skipped says why the record is damaged, Lost why it has no picture.
type decodedRecord struct {
	Key           string
	Label         uint8
	Pixels        []uint8
	Resized       bool
	Skipped, Lost string
}

// decodedOnce makes sources whose pictures are decoded only once, if there is a folder to keep them.
func decodedOnce(files contents, folder *decoded.Folder) contents {
	if folder != nil {
		files.train = &decodedSource{source: files.train, folder: folder}
		files.heldOut = &decodedSource{source: files.heldOut, folder: folder}
	}
	return files
}

// foldersOf returns the class folders of a source, if it has any.
func foldersOf(s source) (*classFolders, bool) {
	if d, is := s.(*decodedSource); is {
		s = d.source
	}
	folders, is := s.(*classFolders)
	return folders, is
}

// shaped sets the shape to which a source decodes pictures.
func shaped(s source, to Shape) {
	if d, is := s.(*decodedSource); is {
		d.shape = to
	}
}

// usualShapeOnce is usualShape, but only one of several jobs looks at the pictures.
func usualShapeOnce(x *index, c Config, found *findings) (shape Shape, err error) {
	d, is := x.source.(*decodedSource)
	if !is {
		return x.usualShape(c.Width, c.Height, found)
	}
	r := decoded.Recipe{Settings: fmt.Sprint("shape ", c.Width, c.Height)}
	for i := range x.source.files() {
		r.Files = append(r.Files, d.from(i)...)
	}
	return decoded.Value(context.Background(), d.folder, r, func() (Shape, error) { return x.usualShape(c.Width, c.Height, found) })
}

// from are the paths of all files that make file i of the source.
func (s *decodedSource) from(i int) (paths []string) {
	folders, ok := foldersOf(s.source)
	if !ok {
		return []string{s.path(i)}
	}
	for _, p := range folders.volume(i) {
		paths = append(paths, filepath.Join(folders.root, folders.classes[p.label], p.name))
	}
	return paths
}

func (s *decodedSource) open(i int, labels bool) (recordReader, error) {
	folders, ok := foldersOf(s.source)
	if ok && labels || !labels && s.shape == (Shape{}) { // no pictures are decoded
		return s.source.open(i, labels)
	}
	r := decoded.Recipe{Files: s.from(i), Settings: fmt.Sprint("pictures ", labels, s.shape)}
	if ok {
		r.Settings += fmt.Sprintf(" %q", folders.classes) // labels are indexes of classes
	}
	file, err := s.folder.Open(context.Background(), r, func(w io.Writer) error { return s.decode(w, i, labels) })
	if err != nil {
		return s.source.open(i, labels)
	}
	return &decodedReader{Closer: file, path: s.path(i), in: gob.NewDecoder(file)}, nil
}

// decode decodes the records of file i, and writes them to w.
func (s *decodedSource) decode(w io.Writer, i int, labels bool) error {
	reader, err := s.source.open(i, labels)
	if err != nil {
		return err
	}
	defer reader.Close()
	out, decoder, pixels := gob.NewEncoder(w), s.newDecoder(), make([]uint8, s.shape.Values())
	for {
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
				d.Resized, err = decoder.decode(pixels, s.shape, rec.packed)
			}
			if err != nil {
				d.Pixels, d.Lost = nil, err.Error()
			}
		}
		if err := out.Encode(d); err != nil {
			return err
		}
	}
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
	if d.Skipped != "" {
		return &RecordError{Path: r.path, Key: d.Key, Err: reason(d.Skipped)}
	}
	*rec = record{key: d.Key, label: d.Label, pixels: d.Pixels, resized: d.Resized}
	if d.Lost != "" {
		rec.pixels, rec.fault = nil, reason(d.Lost)
	}
	return nil
}

// reason turns the text of a record's fault into an error again.
func reason(text string) error {
	for _, kind := range []error{ErrRecord, ErrLabel, ErrPicture} {
		if rest, is := strings.CutPrefix(text, kind.Error()); is {
			return fmt.Errorf("%w%s", kind, rest)
		}
	}
	return errors.New(text)
}
