package dataset

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

const (
	// maxLabelBytes bounds a .cls member.
	maxLabelBytes = 16
	// maxPadding bounds the bytes after the end of a tar archive in its file.
	maxPadding = 1 << 20
	// tarBlock is the bytes of a block; an archive ends with two blocks of zeros.
	tarBlock = 512
)

// shards are the tar archives of a WebDataset. A sample consists of consecutive
// members whose names are equal up to the first dot of the last path element: KEY.jpg
// (or .jpeg or .png), and KEY.cls with the class as a decimal number. Other members of
// a sample are ignored.
type shards struct{ paths []string }

func (s shards) files() int           { return len(s.paths) }
func (s shards) path(i int) string    { return s.paths[i] }
func (s shards) parts(i int) []string { return s.paths[i : i+1] }
func (shards) newDecoder() decoder    { return &pictureDecoder{} }

func (s shards) open(i int, labels bool) (recordReader, error) {
	file, err := os.Open(s.paths[i])
	if err != nil {
		return nil, err
	}
	r, err := newShardReader(s.paths[i], file, labels)
	if err != nil {
		_ = file.Close() // only read
		return nil, err
	}
	r.file = file
	return r, nil
}

// shardReader reads the samples of one archive.
type shardReader struct {
	path   string
	file   io.Closer
	labels bool
	stream io.Reader // the whole file; tar reads from it
	ending *ending
	tar    *tar.Reader

	sample  sample
	pending *tar.Header // the first member of the next sample, if it was read already
	packed  []byte
	class   [maxLabelBytes]byte
	done    bool
}

// sample has the members read so far of the current sample.
type sample struct {
	key              string
	label            uint8
	pictures, labels int
	fault            error // the first fault
}

// newShardReader reads an archive, gzipped or not. If only labels are wanted, it skips the
// pictures of a plain archive by seeking.
func newShardReader(path string, from io.ReadSeeker, labels bool) (*shardReader, error) {
	stream, packed, err := unpack(from)
	if err != nil {
		return nil, err
	}
	r := &shardReader{path: path, labels: labels, ending: &ending{from: stream}}
	r.stream = r.ending
	if labels && !packed {
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		r.ending.from = from
		r.stream = &seekingEnding{r.ending, from}
	}
	r.tar = tar.NewReader(r.stream)
	return r, nil
}

func (r *shardReader) Close() error { return r.file.Close() }

// next reads one sample.
func (r *shardReader) next(rec *record) error {
	r.sample = sample{}
	for !r.done {
		header, err := r.header()
		if err == io.EOF {
			if err := r.finish(); err != nil {
				return err
			}
			r.done = true
			break
		}
		if err != nil {
			return explainTar(err)
		}
		key, kind, ok := splitMember(header)
		if !ok {
			continue
		}
		if r.sample.key != "" && r.sample.key != key {
			r.pending = header
			break
		}
		r.sample.key = key
		if err := r.member(kind, header.Size); err != nil {
			return explainTar(err)
		}
	}
	if r.sample.key == "" {
		return io.EOF
	}
	return r.verdict(rec)
}

func (r *shardReader) header() (*tar.Header, error) {
	if header := r.pending; header != nil {
		r.pending = nil
		return header, nil
	}
	return r.tar.Next()
}

// splitMember splits the name of a member into the key of its sample and its kind,
// which is the extension. It is ok for pictures and labels only.
func splitMember(header *tar.Header) (key, kind string, ok bool) {
	if header.Typeflag != tar.TypeReg {
		return "", "", false
	}
	folder, base := path.Split(header.Name)
	name, kind, _ := strings.Cut(base, ".")
	kind = strings.ToLower(kind)
	return folder + name, kind, name != "" && (kind == labelKind || isPicture(kind))
}

const labelKind = "cls"

// isPicture tells whether an extension, in lower case, is that of a picture.
func isPicture(extension string) bool {
	return extension == "jpg" || extension == "jpeg" || extension == "png"
}

// member reads one member of the sample. The error is a fault of the file.
func (r *shardReader) member(kind string, size int64) error {
	if kind == labelKind {
		r.sample.labels++
		return r.label(size)
	}
	r.sample.pictures++
	return r.picture(size)
}

func (r *shardReader) picture(size int64) error {
	switch {
	case r.sample.pictures > 1:
		r.sample.blame(fmt.Errorf("%w: it has two pictures", ErrRecord))
		return nil
	case size < 1 || size > MaxRecordBytes:
		r.sample.blame(fmt.Errorf("%w: %d bytes, want 1 to %d", ErrPicture, size, MaxRecordBytes))
		return nil
	case r.labels:
		return nil
	}
	if int64(cap(r.packed)) < size {
		r.packed = make([]byte, size)
	}
	r.packed = r.packed[:size]
	_, err := io.ReadFull(r.tar, r.packed)
	return err
}

func (r *shardReader) label(size int64) error {
	switch {
	case r.sample.labels > 1:
		r.sample.blame(fmt.Errorf("%w: it has two labels", ErrRecord))
		return nil
	case size > maxLabelBytes:
		r.sample.blame(fmt.Errorf("%w: %d bytes, want at most %d", ErrLabel, size, maxLabelBytes))
		return nil
	}
	text := r.class[:size]
	if _, err := io.ReadFull(r.tar, text); err != nil {
		return err
	}
	label, err := parseLabel(text)
	if err != nil {
		r.sample.blame(err)
	}
	r.sample.label = label
	return nil
}

// parseLabel reads the class of a .cls member; it ignores white space around it.
func parseLabel(text []byte) (uint8, error) {
	class, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%w: %q, want a number from 0 to %d", ErrLabel, text, maxClasses-1)
	}
	return uint8(class), nil
}

func (s *sample) blame(err error) {
	if s.fault == nil {
		s.fault = err
	}
}

// verdict returns the sample that was read, or the error that says why it is damaged.
func (r *shardReader) verdict(rec *record) error {
	s := &r.sample
	switch {
	case s.pictures == 0:
		s.blame(fmt.Errorf("%w: it has no picture", ErrRecord))
	case s.labels == 0:
		s.blame(fmt.Errorf("%w: it has no label", ErrRecord))
	}
	if s.fault != nil {
		return &RecordError{Path: r.path, Key: s.key, Err: s.fault}
	}
	*rec = record{key: s.key, label: s.label}
	if !r.labels {
		rec.packed = r.packed
	}
	return nil
}

// finish checks that the archive has a proper end, and reads to the end of the file,
// where gzip has its checksum.
func (r *shardReader) finish() error {
	if !r.ending.zero() {
		return fmt.Errorf("%w: the archive has no end: was a download cut off? Fetch it again", ErrTruncated)
	}
	n, err := io.CopyN(io.Discard, r.stream, maxPadding+1)
	if n > maxPadding {
		return fmt.Errorf("%w: more than %d bytes follow its end", ErrTrailing, maxPadding)
	}
	if err != io.EOF {
		return explain(err)
	}
	return nil
}

// explainTar is explain for errors of package tar.
func explainTar(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
		return fmt.Errorf("%w: no tar archive, or a damaged one (%w): fetch it again", ErrCorrupt, err)
	}
	return explain(err)
}

// ending keeps the last two blocks that were read. They show whether an archive was cut
// off between two members, which package tar does not notice.
type ending struct {
	from io.Reader
	last [2 * tarBlock]byte
	n    int // number of bytes in last, which are at its end
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if n >= len(e.last) {
		copy(e.last[:], p[n-len(e.last):n])
	} else {
		copy(e.last[:], e.last[n:])
		copy(e.last[len(e.last)-n:], p[:n])
	}
	e.n = min(e.n+n, len(e.last))
	return n, err
}

// zero tells whether two blocks were read and the last two are all zeros.
func (e *ending) zero() bool { return e.n == len(e.last) && e.last == [2 * tarBlock]byte{} }

// seekingEnding is an ending with Seek, by which package tar skips what it does not read.
type seekingEnding struct {
	*ending
	seeker io.Seeker
}

func (e *seekingEnding) Seek(offset int64, whence int) (int64, error) {
	return e.seeker.Seek(offset, whence)
}
