package dataset

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// Names of files that come later than those that Load reads: a pair of IDX files, or an archive.
const (
	laterImages = "-images-idx3-ubyte"
	laterLabels = "-labels-idx1-ubyte"
	packedIDX   = ".gz"
)

// Later says which files of a data set may come later, in words; "" if none may. Those are read by ReadLater.
func Later(dataset string) string {
	switch {
	case dataset == "" || dataset == Datasets()[0] || slices.ContainsFunc(families, func(f family) bool { return f.name == dataset }):
		return "pairs NAME" + laterImages + " and NAME" + laterLabels + ", gzipped or not"
	case slices.ContainsFunc(photographs, func(p photograph) bool { return p.name == dataset }):
		return "archives NAME.tar, NAME.tar.gz or NAME.tgz of a WebDataset"
	}
	return ""
}

// IsLater tells whether the name of a file is one of Later; companion, whether it belongs to such a file.
func IsLater(dataset, name string) (is, companion bool) {
	if !strings.HasPrefix(Later(dataset), "pairs") {
		return Later(dataset) != "" && (strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")), false
	}
	name = strings.TrimSuffix(name, packedIDX)
	return strings.HasSuffix(name, laterImages), strings.HasSuffix(name, laterLabels)
}

// ReadLater reads a file of IsLater whole. Its pictures have the shape, the classes and the normalization of another set.
// The error is a *DataError, or that of ctx; ErrTruncated and ErrMissing are those of a file that is not whole yet. Records of an
// archive that cannot be used are left out, and counted.
func ReadLater(ctx context.Context, path string, like *Set) (set *Set, leftOut int, err error) {
	if is, _ := IsLater(Datasets()[0], path); is {
		set, err = readPair(path, like)
		return set, 0, err
	}
	var found findings
	x, err := readIndex(ctx, Config{Dir: filepath.Dir(path)}, shards{[]string{path}}, like.classes, &found)
	if err != nil {
		return nil, 0, err
	}
	x.shape = like.shape
	set, err = x.all(ctx, seeded.Identity(len(x.labels)), like.classes, like.norm, &found)
	leftOut, _ = found.after(0)
	return set, leftOut, err
}

// readPair reads the pictures of a file, and their labels from the one beside it.
func readPair(path string, like *Set) (*Set, error) {
	dir, name := filepath.Split(path)
	labels, err := family{}.find(dir, strings.Replace(strings.TrimSuffix(name, packedIDX), laterImages, laterLabels, 1)+packedIDX)
	if err != nil {
		return nil, err
	}
	y, err := readIDX(labels)
	if err != nil {
		return nil, err
	}
	x, err := readIDX(path, like.shape.Height, like.shape.Width)
	if err != nil {
		return nil, err
	}
	if len(x) != len(y)*like.inputs {
		return nil, &DataError{Path: path, Err: fmt.Errorf("%w %s: %d pictures, %d labels", ErrMismatch, labels, len(x)/like.inputs, len(y))}
	}
	set, err := NewSet(x, y, like.shape, like.classes, like.norm...)
	if err != nil {
		return nil, &DataError{Path: labels, Err: err}
	}
	return set, nil
}

// Begun makes the data of a set of four files from one pair that has come: a fourth of it is held out.
func Begun(name, path string) (*Data, error) {
	at := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	if at < 0 {
		return nil, fmt.Errorf("%w: %s cannot begin with a file that comes", ErrConfig, name)
	}
	none, err := NewSet(nil, nil, greyShape, Classes, families[at].norm...)
	if err != nil {
		return nil, err
	}
	all, err := readPair(path, none)
	if err != nil {
		return nil, err
	}
	var train, held []int32
	for i := range int32(all.Len()) {
		if i%4 == 0 {
			held = append(held, i)
		} else {
			train = append(train, i)
		}
	}
	if len(train) == 0 {
		return nil, &DataError{Path: path, Err: fmt.Errorf("%w enough to begin with: want two or more", ErrEmpty)}
	}
	return &Data{Train: all.Subset(train), HeldOut: all.Subset(held), Total: all.Len()}, nil
}

// Join is a set of the pictures or rows of several, one after the other, which are alike. There is at least one.
func Join(sets []*Set) *Set {
	all := sets[0].Subset(nil)
	for _, s := range sets {
		all.pixels, all.numbers, all.labels = append(all.pixels, s.pixels...), append(all.numbers, s.numbers...), append(all.labels, s.labels...)
	}
	return all
}
