package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// folderVolume is the number of pictures in a volume of class folders.
const folderVolume = 512

// classFolders are folders of pictures, one for each class. As a source, they act
// like files with many records: the pictures are put into a random order, the same
// for all peers, and cut into volumes, each with a mixture of the classes. In their
// own order they would come class by class, which no bounded buffer can shuffle.
type classFolders struct {
	root     string
	classes  []string
	pictures []classPicture
	foreign  findings // pictures in formats that are not read
}

// classPicture is a file in the folder of its class.
type classPicture struct {
	name  string
	label uint8
}

// classesOf lists the folders of classes, sorted: their indexes are the labels. An
// empty folder counts as a class, too.
func classesOf(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, &DataError{Path: root, Err: err}
	}
	var classes []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		// Stat follows links: the folder of a class may be a link.
		if info, err := os.Stat(filepath.Join(root, e.Name())); err == nil && info.IsDir() {
			classes = append(classes, e.Name())
		}
	}
	if len(classes) == 0 {
		return nil, &DataError{Path: root, Err: fmt.Errorf("%w: no folders of classes: put the pictures of each class into one, named for it", ErrEmpty)}
	}
	if len(classes) > maxClasses {
		return nil, &DataError{Path: root, Err: fmt.Errorf("%w: %d folders of classes, want at most %d", ErrTooLarge, len(classes), maxClasses)}
	}
	return classes, nil
}

// newClassFolders lists the pictures below root. Classes are those of the training
// set.
func newClassFolders(root string, classes []string) (*classFolders, error) {
	own, err := classesOf(root)
	if err != nil {
		return nil, err
	}
	f := &classFolders{root: root, classes: classes}
	for _, class := range own {
		label := slices.Index(classes, class)
		if label < 0 {
			return nil, &DataError{Path: filepath.Join(root, class), Err: fmt.Errorf("%w: a class that the training set has no folder for: make one, or remove this", ErrMismatch)}
		}
		if err := f.list(class, uint8(label)); err != nil {
			return nil, err
		}
	}
	if len(f.pictures) == 0 {
		return nil, &DataError{Path: root, Err: fmt.Errorf("%w: its folders hold no .jpg, .jpeg or .png", ErrEmpty)}
	}
	order := seeded.Identity(len(f.pictures))
	seeded.Shuffle(seeded.Rand(0, seeded.Folder, uint64(len(order))), order)
	mixed := make([]classPicture, len(order))
	for i, k := range order {
		mixed[i] = f.pictures[k]
	}
	f.pictures = mixed
	return f, nil
}

// foreignFormats are the extensions of picture formats that a user may wrongly expect to be read.
var foreignFormats = []string{"avif", "bmp", "gif", "heic", "heif", "jp2", "jxl", "tif", "tiff", "webp"}

func (f *classFolders) list(class string, label uint8) error {
	folder := filepath.Join(f.root, class)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return &DataError{Path: folder, Err: err}
	}
	for _, e := range entries {
		extension := strings.TrimPrefix(strings.ToLower(filepath.Ext(e.Name())), ".")
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if !isPicture(extension) {
			if slices.Contains(foreignFormats, extension) {
				f.foreign.skip(noNumber, &RecordError{Path: f.root, Key: filepath.Join(class, e.Name()), Err: fmt.Errorf("%w: %w: convert it", ErrPicture, errFormat)})
			}
			continue
		}
		if len(f.pictures) == MaxFiles {
			return &DataError{Path: f.root, Err: fmt.Errorf("%w: more than %d pictures: pack them into WebDataset shards", ErrTooLarge, MaxFiles)}
		}
		f.pictures = append(f.pictures, classPicture{name: e.Name(), label: label})
	}
	return nil
}

func (f *classFolders) files() int        { return (len(f.pictures) + folderVolume - 1) / folderVolume }
func (f *classFolders) path(int) string   { return f.root }
func (*classFolders) newDecoder() decoder { return &pictureDecoder{} }

func (f *classFolders) parts(i int) (paths []string) {
	for _, p := range f.volume(i) {
		paths = append(paths, filepath.Join(f.root, f.classes[p.label], p.name))
	}
	return paths
}

func (f *classFolders) open(i int, labels bool) (recordReader, error) {
	return &folderReader{folders: f, left: f.volume(i), labels: labels}, nil
}

func (f *classFolders) volume(i int) []classPicture {
	return f.pictures[i*folderVolume : min((i+1)*folderVolume, len(f.pictures))]
}

// errLong is the fault of a picture that no time will mend.
var errLong = fmt.Errorf("%w: more than %d bytes", ErrPicture, MaxRecordBytes)

// folderReader reads one volume.
type folderReader struct {
	folders *classFolders
	left    []classPicture
	labels  bool
	packed  bytes.Buffer
}

func (r *folderReader) Close() error { return nil }

// next returns a picture that cannot be read, too, as a record with a fault. If only
// labels are read, no file is opened, and the records must have the same numbers.
func (r *folderReader) next(rec *record) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	picture := r.left[0]
	r.left = r.left[1:]
	*rec = record{key: filepath.Join(r.folders.classes[picture.label], picture.name), label: picture.label}
	if r.labels {
		return nil
	}
	file, err := os.Open(filepath.Join(r.folders.root, rec.key))
	if errors.Is(err, fs.ErrPermission) {
		rec.fault = fmt.Errorf("%w: %w", ErrPicture, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r.packed.Reset()
	if size, err := r.packed.ReadFrom(io.LimitReader(file, MaxRecordBytes+1)); err != nil {
		rec.fault = fmt.Errorf("%w: %w", ErrPicture, err)
	} else if size > MaxRecordBytes {
		rec.fault = errLong
	}
	rec.packed = r.packed.Bytes()
	return nil
}
