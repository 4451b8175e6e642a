package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// family is a data set in four files like those of MNIST.
type family struct {
	name string
	// norm is measured over the whole training set. For mnist, it is the root mean
	// square; see Normalization. For fashion-mnist, it is mean and standard deviation:
	// half of the pixels are inked, so skipping the others would gain little.
	norm []Normalization
	// source is the address of the files.
	source string
}

var families = []family{
	{name: "mnist", norm: []Normalization{{Scale: 0.33467}}, source: "https://ossci-datasets.s3.amazonaws.com/mnist/"},
	{name: "fashion-mnist", norm: []Normalization{{Mean: 0.28604, Scale: 0.35302}}, source: "https://github.com/zalandoresearch/fashion-mnist"},
}

// Names of the files. Each is also found without ".gz".
const (
	trainImages = "train-images-idx3-ubyte.gz"
	trainLabels = "train-labels-idx1-ubyte.gz"
	testImages  = "t10k-images-idx3-ubyte.gz"
	testLabels  = "t10k-labels-idx1-ubyte.gz"
)

// load reads the training and the held-out set from their folder.
func (f family) load(ctx context.Context, c Config) (train, test *Set, err error) {
	if c.Dir == "" {
		return nil, nil, fmt.Errorf("%w: data set %s needs the folder of its files: %s", ErrConfig, f.name, f.remedy())
	}
	if train, err = f.read(ctx, c, trainImages, trainLabels); err != nil {
		return nil, nil, err
	}
	if test, err = f.read(ctx, c, testImages, testLabels); err != nil {
		return nil, nil, err
	}
	return train, test, nil
}

func (f family) remedy() string {
	return fmt.Sprintf("gossipnode data fetch %s gets them, or put %s, %s, %s and %s there, from %s", f.name, trainImages, trainLabels, testImages, testLabels, f.source)
}

func (f family) read(ctx context.Context, c Config, images, labels string) (*Set, error) {
	imagePath, err := f.find(c.Dir, images)
	if err != nil {
		return nil, err
	}
	labelPath, err := f.find(c.Dir, labels)
	if err != nil {
		return nil, err
	}
	y, err := readIDXOnce(ctx, c.Decoded, labelPath)
	if err != nil {
		return nil, err
	}
	for i, label := range y {
		if label >= Classes {
			return nil, &DataError{Path: labelPath, Err: fmt.Errorf("%w: label %d of item %d, want less than %d; is it of another data set?", ErrNotIDX, label, i, Classes)}
		}
	}
	x, err := readIDXOnce(ctx, c.Decoded, imagePath, Side, Side)
	if err != nil {
		return nil, err
	}
	if len(x) != len(y)*Inputs {
		return nil, &DataError{Path: imagePath, Err: fmt.Errorf("%w %s: %d pictures, %d labels; fetch both again", ErrMismatch, labelPath, len(x)/Inputs, len(y))}
	}
	return NewSet(x, y, greyShape, Classes, f.norm...)
}

// find returns the path of a file, gzipped or not.
func (f family) find(dir, name string) (string, error) {
	packed := filepath.Join(dir, name)
	for _, path := range []string{packed, packed[:len(packed)-len(".gz")]} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", &DataError{Path: path, Err: err}
		}
	}
	return "", &DataError{Path: packed, Err: fmt.Errorf("%w, neither packed nor without .gz: %s", ErrMissing, f.remedy())}
}
