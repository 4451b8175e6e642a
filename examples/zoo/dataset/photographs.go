package dataset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// photograph is a data set of pictures in files: CIFAR batches, WebDataset
// shards or class folders. The content of the folder decides which.
type photograph struct {
	name string
	// shape, classes and norm are zero if they are found out from the files.
	shape   Shape
	classes int
	norm    []Normalization
	augment Augment
	remedy  string
}

// Images is the name of the set with the user's own pictures.
const Images = "images"

// photographs are the sets that are streamed. The normalization of CIFAR-10 and CIFAR-100 is the mean
// and standard deviation of the original training pictures.
var photographs = []photograph{
	{
		name: "cifar10", shape: cifarShape, classes: Classes,
		norm:    []Normalization{{0.4914, 0.2470}, {0.4822, 0.2435}, {0.4465, 0.2616}},
		augment: Augment{Flip: true, Crop: true},
		remedy:  "gossipnode data fetch cifar10 gets them, or see https://www.cs.toronto.edu/~kriz/cifar.html",
	},
	{
		name: "cifar100", shape: cifarShape, classes: 100,
		norm:    []Normalization{{0.5071, 0.2673}, {0.4865, 0.2564}, {0.4409, 0.2762}},
		augment: Augment{Flip: true, Crop: true},
		remedy:  "gossipnode data fetch cifar100 gets them, or see https://www.cs.toronto.edu/~kriz/cifar.html",
	},
	{name: Images, remedy: "put your own pictures there: train/CLASS/*.jpg and test/CLASS/*.jpg, or WebDataset shards"},
}

// DefaultAugment is flips and crops for cifar10 and cifar100, and none for other data sets: a
// mirrored digit or shoe would no longer look like its class.
func DefaultAugment(name string) Augment {
	for _, p := range photographs {
		if p.name == name {
			return p.augment
		}
	}
	return Augment{}
}

func (c Config) loadPhotographs(ctx context.Context, p photograph) (*Data, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("%w: data set %s needs the folder of its files: %s", ErrConfig, p.name, p.remedy)
	}
	files, err := detect(c.Dir, p.classes, p.remedy)
	if err != nil {
		return nil, err
	}
	_, all := files.train.(cifarBatches) // a folder may lack some of the classes
	if p.classes > 0 && (files.classes > p.classes || all && files.classes < p.classes) {
		return nil, &DataError{Path: c.Dir, Err: fmt.Errorf("%w: %d classes, %s has %d: is it another data set? Then train with images", ErrMismatch, files.classes, p.name, p.classes)}
	}
	if p.classes == 0 {
		p.classes = files.classes
	}
	known := len(p.norm) > 0 || len(c.Norm) > 0
	d := &Data{}
	for _, s := range []source{files.train, files.heldOut} {
		if folders, ok := s.(*classFolders); ok {
			d.found.join(&folders.foreign)
		}
	}
	train, err := readIndex(ctx, c, files.train, p.classes, &d.found)
	if err != nil {
		return nil, err
	}
	heldOut, err := readIndex(ctx, c, files.heldOut, p.classes, &d.found)
	if err != nil {
		return nil, err
	}
	if p, err = p.complete(ctx, c, train, heldOut, &d.found); err != nil {
		return nil, err
	}
	d.Total = len(train.labels)
	if d.stream, err = c.newStreamConfig(p, train, &d.found); err != nil {
		return nil, err
	}
	if !known {
		d.measured = p.norm
	}
	// Held-out records have numbers of their own.
	var found findings
	d.HeldOut, err = heldOut.heldOut(ctx, p.classes, p.norm, &found)
	d.found.join(&found)
	return d, err
}

// loadAllPhotographs reads the index and the held-out pictures once for all parts.
func (c Config) loadAllPhotographs(ctx context.Context, p photograph) ([]*Data, error) {
	c.Memory = max(cmp.Or(c.Memory, DefaultMemory)/int64(c.Parts), 1)
	first, err := c.loadPhotographs(ctx, p)
	if err != nil {
		return nil, err
	}
	all := []*Data{first}
	for c.Part = 1; c.Part < c.Parts; c.Part++ {
		d := &Data{HeldOut: first.HeldOut, Total: first.Total, measured: first.measured, stream: first.stream}
		d.stream.found = &d.found
		if d.stream.part, err = c.Shard.partOf(first.stream.index, c.Seed, c.Part, c.Parts); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// levelsOf is Levels for pictures in files.
func (c Config) levelsOf(ctx context.Context, p photograph) ([]float64, error) {
	files, err := detect(c.Dir, p.classes, p.remedy)
	if err != nil {
		return nil, err
	}
	var found findings
	train, err := readIndex(ctx, c, files.train, cmp.Or(p.classes, files.classes), &found)
	if err != nil {
		return nil, err
	}
	if p.shape == (Shape{}) {
		if p.shape, err = usualShapeOnce(ctx, train, c, &found); err != nil {
			return nil, err
		}
	}
	train.shape = p.shape
	m, err := train.measure(ctx, p.shape, maxMeasured, &found)
	return m.vector(), err
}

// complete finds shape, classes and normalization if they are not known for the set.
func (p photograph) complete(ctx context.Context, c Config, train, heldOut *index, found *findings) (photograph, error) {
	var err error
	if p.shape == (Shape{}) {
		if p.shape, err = usualShapeOnce(ctx, train, c, found); err != nil {
			return p, err
		}
	}
	train.shape, heldOut.shape = p.shape, p.shape
	if p.classes == 0 {
		p.classes = 1 + int(max(slices.Max(train.labels), slices.Max(heldOut.labels))) // no index is empty
	}
	if len(c.Norm) > 0 {
		p.norm = c.Norm
	}
	if len(p.norm) > 0 {
		return p, nil
	}
	m, err := train.measure(ctx, p.shape, maxMeasured, found)
	p.norm = m.norm()
	return p, err
}

func (c Config) newStreamConfig(p photograph, x *index, found *findings) (streamConfig, error) {
	tables, err := newLevels(p.shape.Channels, p.norm)
	if err != nil {
		return streamConfig{}, err
	}
	s := streamConfig{
		index: x, shape: p.shape, levels: tables, found: found,
		memory: cmp.Or(c.Memory, DefaultMemory), shuffle: ShufflePictures,
	}
	s.part, err = c.Shard.partOf(x, c.Seed, c.Part, max(c.Parts, 1))
	return s, err
}
