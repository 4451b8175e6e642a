package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/peer/decoded"
)

// ErrConfig: a Config is not valid.
var ErrConfig = errors.New("dataset: bad configuration")

// Sizes of the glyphs set, equal to those of MNIST.
const (
	glyphTrain   = 60_000
	glyphHeldOut = 10_000
)

// loneParts is the number of parts into which glyphs are cut for a peer that
// does not know its part.
const loneParts = 4

// DefaultMemory is the Config.Memory of the zero value: 256 MiB.
const DefaultMemory = 256 << 20

// Config says what data a peer trains on. The zero value is the quarter
// of glyphs that seed 0 chooses.
type Config struct {
	// Name is one of Datasets; empty means glyphs.
	Name string
	// Dir is the folder of the files; glyphs needs none.
	Dir string
	// Seed is the seed of the run, the same for all peers. It decides which part
	// each peer gets and, for glyphs, which pictures are drawn.
	Seed uint64
	// Parts is the number of peers, and Part, from 0, the part of this peer. With
	// Parts 0, the peers know nothing of each other's data: each takes all of its
	// folder, and of glyphs a quarter that PeerSeed chooses.
	Part, Parts int
	// Shard says how parts are cut.
	Shard Shard
	// PeerSeed is the seed of this peer. It is used with Parts 0 only.
	PeerSeed uint64
	// Memory bounds the bytes of decoded training pictures that a Stream keeps from
	// one pass to the next. A part that does not fit is decoded again in each pass. 0
	// means DefaultMemory. The held-out set is always in memory.
	Memory int64
	// Norm is the normalization of data from files, for peers whose folders differ. If
	// it is empty, that of the data set is used, or it is measured.
	Norm []Normalization
	// Width and Height are the size to which pictures of the set images are cropped and
	// resized, for peers whose folders differ. 0 means the size of more than half of
	// the pictures, or MixedSide if there is none.
	Width, Height int
	// Window is the number of bytes in an example of a text, the same for all peers; 0
	// means DefaultWindow.
	Window int
	// Decoded is the folder that keeps decoded data, so that several jobs on one machine decode it once; nil means none.
	Decoded *decoded.Folder
}

// Datasets lists the names that Load knows.
func Datasets() []string {
	names := []string{"glyphs"}
	for _, f := range families {
		names = append(names, f.name)
	}
	for _, p := range photographs {
		names = append(names, p.name)
	}
	return append(names, Text, GoSource)
}

// Load draws or reads a data set and cuts this peer's part. When it returns, glyphs,
// mnist, fashion-mnist and texts are in memory. Of other sets, it has read the labels
// and decoded the held-out pictures; a Stream decodes the training pictures later. The
// error is ErrConfig or ErrShard if the configuration is not valid, a *DataError
// if a file cannot be used, and that of ctx if it ends while files are read.
func Load(ctx context.Context, c Config) (*Data, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	for _, f := range families {
		if f.name == c.Name {
			return c.loadFiles(ctx, f)
		}
	}
	for _, p := range photographs {
		if p.name == c.Name {
			return c.loadPhotographs(ctx, p)
		}
	}
	if c.isText() {
		part, err := c.loadTexts(c.Part)
		if err != nil {
			return nil, err
		}
		return part[0], nil
	}
	return c.loadGlyphs()
}

// isText tells whether the data is text.
func (c Config) isText() bool { return c.Name == Text || c.Name == GoSource }

// Levels returns sums over the levels of the training pictures in the folder, at most maxMeasured
// of them, for NormOf. The sums of several peers are added number by number, whatever parts the
// peers train on. Levels of glyphs are an error: they have a normalization of their own.
func Levels(ctx context.Context, c Config) ([]float64, error) {
	c.Norm = nil
	if err := c.validate(); err != nil {
		return nil, err
	}
	for _, f := range families {
		if f.name == c.Name {
			train, _, err := f.load(ctx, c)
			if err != nil {
				return nil, err
			}
			m := newMoments(train.Shape().Channels)
			for i := range train.Len() {
				m.add(train.Image(i))
			}
			return m.vector(), nil
		}
	}
	for _, p := range photographs {
		if p.name == c.Name {
			return c.levelsOf(ctx, p)
		}
	}
	return nil, fmt.Errorf("%w: no levels of %s, which has a normalization of its own", ErrConfig, cmp.Or(c.Name, Datasets()[0]))
}

func (c Config) validate() error {
	var errs []error
	if c.Name != "" && !slices.Contains(Datasets(), c.Name) {
		errs = append(errs, fmt.Errorf("%w: no data set %q: want one of %s", ErrConfig, c.Name, strings.Join(Datasets(), ", ")))
	}
	if c.Parts < 0 || c.Parts > MaxParts {
		errs = append(errs, fmt.Errorf("%w: %d parts: want 0 to %d", ErrConfig, c.Parts, MaxParts))
	}
	if c.Parts == 0 && c.Part != 0 {
		errs = append(errs, fmt.Errorf("%w: part %d of an unknown number: give the number of parts", ErrConfig, c.Part))
	}
	if c.Parts == 0 && c.Shard != (Shard{}) {
		errs = append(errs, fmt.Errorf("%w: shard %v of an unknown number of parts: give the number of parts", ErrConfig, c.Shard))
	}
	if (c.Name == "" || c.Name == Datasets()[0]) && len(c.Norm) > 0 {
		errs = append(errs, fmt.Errorf("%w: a normalization for glyphs, which have their own", ErrConfig))
	}
	if c.Width < 0 || c.Height < 0 || (c.Width == 0) != (c.Height == 0) || c.Height > 0 && c.Width > MaxPixels/c.Height {
		errs = append(errs, fmt.Errorf("%w: pictures of %d×%d: want a width and a height of at most %d pixels together", ErrConfig, c.Width, c.Height, MaxPixels))
	}
	if c.Width > 0 && c.Name != Images {
		errs = append(errs, fmt.Errorf("%w: a size for %s, which has its own", ErrConfig, cmp.Or(c.Name, Datasets()[0])))
	}
	if c.Window < 0 || c.Window > MaxWindow || c.Window > 0 && !c.isText() {
		errs = append(errs, fmt.Errorf("%w: windows of %d: want 1 to %d bytes of a text", ErrConfig, c.Window, MaxWindow))
	}
	if c.isText() && len(c.Norm) > 0 {
		errs = append(errs, fmt.Errorf("%w: a normalization for a text", ErrConfig))
	}
	if c.Memory < 0 {
		errs = append(errs, fmt.Errorf("%w: memory of %d bytes: want a positive number, or 0 for %d", ErrConfig, c.Memory, DefaultMemory))
	}
	return errors.Join(errs...)
}

// LoadAll is Load for all Config.Parts peers in one process, which share the held-out
// set. It ignores Part. Each Stream gets an equal part of Config.Memory.
func LoadAll(ctx context.Context, c Config) ([]*Data, error) {
	c.Part = 0
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Parts == 0 {
		return nil, fmt.Errorf("%w: all of an unknown number of parts: give the number of parts", ErrConfig)
	}
	for _, p := range photographs {
		if p.name == c.Name {
			return c.loadAllPhotographs(ctx, p)
		}
	}
	if c.isText() {
		parts := make([]int, c.Parts)
		for i := range parts {
			parts[i] = i
		}
		return c.loadTexts(parts...)
	}
	whole := c
	whole.Parts, whole.Shard = 1, Shard{}
	data, err := Load(ctx, whole)
	if err != nil {
		return nil, err
	}
	parts, err := c.Shard.Parts(data.Train.labels, c.Seed, c.Parts)
	if err != nil {
		return nil, err
	}
	all := make([]*Data, len(parts))
	for i, mine := range parts {
		all[i] = &Data{Train: data.Train.Subset(mine), HeldOut: data.HeldOut, Total: data.Total}
	}
	return all, nil
}

func (c Config) loadFiles(ctx context.Context, f family) (*Data, error) {
	if len(c.Norm) > 0 {
		f.norm = c.Norm
	}
	train, heldOut, err := f.load(ctx, c)
	if err != nil {
		return nil, err
	}
	data := &Data{Train: train, HeldOut: heldOut, Total: train.Len()}
	if c.Parts == 0 {
		return data, nil
	}
	mine, err := c.Shard.Part(train.labels, c.Seed, c.Part, c.Parts)
	if err != nil {
		return nil, err
	}
	data.Train = train.Subset(mine)
	return data, nil
}

func (c Config) loadGlyphs() (*Data, error) {
	cut, part, parts := c.Seed, c.Part, c.Parts
	if parts == 0 {
		cut, parts = seeded.For(c.PeerSeed, seeded.Quarter), loneParts
	}
	mine, err := c.Shard.Part(GlyphLabels(c.Seed, glyphTrain), cut, part, parts)
	if err != nil {
		return nil, err
	}
	train, err := Glyphs(c.Seed, mine)
	if err != nil {
		return nil, err
	}
	heldOut, err := HeldOutGlyphs(glyphHeldOut)
	if err != nil {
		return nil, err
	}
	return &Data{Train: train, HeldOut: heldOut, Total: glyphTrain}, nil
}
