package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// ErrConfig is the sentinel for a Config that makes no sense.
var ErrConfig = errors.New("dataset: bad configuration")

// Sizes of the glyphs set, those of MNIST.
const (
	glyphTrain   = 60_000
	glyphHeldOut = 10_000
)

// loneParts is the number of parts that glyphs are cut into for a peer that
// does not know its part.
const loneParts = 4

// Config says what data a peer trains on. The zero value is the quarter
// of glyphs that seed 0 chooses.
type Config struct {
	// Name is one of Datasets; empty means glyphs.
	Name string
	// Dir is the folder of the files; glyphs needs none.
	Dir string
	// Seed belongs to the run: it says which part is whose and, for glyphs, what
	// is drawn. It must be the same for all peers.
	Seed uint64
	// Parts is the number of peers and Part, from 0, the one of this peer. With
	// Parts 0 the peers know nothing of each other's data: everybody takes all of
	// mnist and fashion-mnist, and of glyphs a quarter that PeerSeed chooses.
	Part, Parts int
	// Shard is how parts are cut.
	Shard Shard
	// PeerSeed belongs to this peer. It matters with Parts 0 only.
	PeerSeed uint64
}

// Data is what Load returns.
type Data struct {
	// Train is this peer's part.
	Train *Set
	// HeldOut is for evaluation, the same for all peers.
	HeldOut *Set
	// Total is the number of training pictures of all peers together: an epoch of
	// the flock.
	Total int
}

// Datasets lists the names that Load knows.
func Datasets() []string {
	names := []string{"glyphs"}
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// Load draws or reads a data set and cuts this peer's part. A configuration
// that makes no sense is an ErrConfig or ErrShard, a file that cannot be used a
// *DataError.
func Load(c Config) (*Data, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	for _, f := range families {
		if f.name == c.Name {
			return c.loadFiles(f)
		}
	}
	return c.loadGlyphs()
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
	return errors.Join(errs...)
}

func (c Config) loadFiles(f family) (*Data, error) {
	train, heldOut, err := f.load(c.Dir)
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
