package dataset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// ErrShard is the sentinel for a shard rule or part that makes no sense.
var ErrShard = errors.New("dataset: bad shard")

// Bounds of a shard rule.
const (
	// MaxParts bounds the number of parts a set is cut into.
	MaxParts = 1 << 16
	// MinAlpha and MaxAlpha bound the concentration of a Dirichlet shard. Below,
	// every class would sit in one part; above, it is iid but for rounding.
	MinAlpha = 1e-4
	MaxAlpha = 1e6
)

// Shard says how a set is cut into parts, one for each peer. The zero value is
// "iid": parts of equal size and alike. With Alpha > 0 labels are skewed: the
// proportions in which a class is spread over the parts are drawn from a
// Dirichlet distribution with concentration Alpha (Yurochkin et al., 2019); at
// 0.1 most of a part is of two or three classes. With Files a part is whole files,
// as many as the others have or one more: whoever streams reads its own files only.
type Shard struct {
	Alpha float64
	Files bool
}

// ParseShard reads "iid", "files" or "dirichlet=ALPHA".
func ParseShard(text string) (Shard, error) {
	switch text {
	case "iid":
		return Shard{}, nil
	case "files":
		return Shard{Files: true}, nil
	}
	value, ok := strings.CutPrefix(text, "dirichlet=")
	if !ok {
		return Shard{}, fmt.Errorf("%w: %q: want iid, files or dirichlet=ALPHA, as in dirichlet=0.1", ErrShard, text)
	}
	alpha, err := strconv.ParseFloat(value, 64)
	if err != nil || !(alpha >= MinAlpha && alpha <= MaxAlpha) {
		return Shard{}, fmt.Errorf("%w: %q: ALPHA must be a number from %v to %v", ErrShard, text, MinAlpha, MaxAlpha)
	}
	return Shard{Alpha: alpha}, nil
}

// String is the form that ParseShard reads.
func (s Shard) String() string {
	switch {
	case s.Files:
		return "files"
	case s.Alpha == 0:
		return "iid"
	}
	return "dirichlet=" + strconv.FormatFloat(s.Alpha, 'g', -1, 64)
}

// Part returns the indices of part number part of parts, ascending. The parts
// of one seed are disjoint, cover all labels and none is empty; iid parts differ
// by at most one in size. Every peer computes the same cut: it is made of
// integers, sums and quotients only, which no platform rounds differently.
func (s Shard) Part(labels []uint8, seed uint64, part, parts int) ([]int32, error) {
	if err := s.validate(len(labels), part, parts); err != nil {
		return nil, err
	}
	all, err := s.Parts(labels, seed, parts)
	if err != nil {
		return nil, err
	}
	return all[part], nil
}

// Parts returns the indices of all parts, as Part does of one.
func (s Shard) Parts(labels []uint8, seed uint64, parts int) ([][]int32, error) {
	if s.Files {
		return nil, fmt.Errorf("%w: files: this data is not in files with many pictures: use iid or dirichlet=ALPHA", ErrShard)
	}
	if err := s.validate(len(labels), 0, parts); err != nil {
		return nil, err
	}
	rng := seeded.Rand(seed, seeded.Shard, uint64(parts))
	order := seeded.Identity(len(labels))
	seeded.Shuffle(rng, order)
	all := make([][]int32, parts)
	if s.Alpha == 0 {
		for part := range all {
			from, to := part*len(order)/parts, (part+1)*len(order)/parts
			all[part] = order[from:to:to]
			slices.Sort(all[part])
		}
		return all, nil
	}
	for i, p := range s.deal(rng, labels, order, parts) {
		all[p] = append(all[p], int32(i)) // ascending, as i is
	}
	return all, nil
}

// partOf is Part for data in files.
func (s Shard) partOf(x *index, seed uint64, part, parts int) ([]int32, error) {
	_, folders := x.source.(*classFolders)
	if !s.Files || folders {
		return s.Part(x.labels, seed, part, parts)
	}
	files := x.source.files()
	if err := s.validate(len(x.labels), part, parts); err != nil {
		return nil, err
	}
	if files < parts {
		return nil, fmt.Errorf("%w: files: %d parts of %d files would leave some empty: use iid or dirichlet=ALPHA", ErrShard, parts, files)
	}
	order := seeded.Identity(files)
	seeded.Shuffle(seeded.Rand(seed, seeded.Shard, uint64(parts)), order)
	var mine []int32
	for _, f := range order[part*files/parts : (part+1)*files/parts] {
		for i := x.starts[f]; i < x.starts[f+1]; i++ {
			mine = append(mine, i)
		}
	}
	slices.Sort(mine)
	return mine, nil
}

func (s Shard) validate(n, part, parts int) error {
	var errs []error
	if s.Alpha != 0 && !(s.Alpha >= MinAlpha && s.Alpha <= MaxAlpha) {
		errs = append(errs, fmt.Errorf("%w: alpha %v: want 0 (iid) or %v to %v", ErrShard, s.Alpha, MinAlpha, MaxAlpha))
	}
	if s.Alpha != 0 && s.Files {
		errs = append(errs, fmt.Errorf("%w: both alpha and files: want one of them", ErrShard))
	}
	if parts < 1 || parts > MaxParts {
		errs = append(errs, fmt.Errorf("%w: %d parts: want 1 to %d", ErrShard, parts, MaxParts))
	} else if part < 0 || part >= parts {
		errs = append(errs, fmt.Errorf("%w: part %d of %d: parts count from 0", ErrShard, part, parts))
	}
	if n < parts {
		errs = append(errs, fmt.Errorf("%w: %d parts of %d pictures would leave some empty", ErrShard, parts, n))
	}
	return errors.Join(errs...)
}

// deal gives each picture, taken in the order given, to a part. A class is dealt
// by Pólya's urn: picture m of it goes to a part drawn evenly with probability
// parts·α/(parts·α+m), otherwise wherever one of its m forerunners went. The
// shares tend to a draw from Dirichlet(α) (Blackwell and MacQueen, 1973), without
// the gamma variates whose logarithms differ between platforms.
func (s Shard) deal(rng *rand.Rand, labels []uint8, order []int32, parts int) []int32 {
	owner := make([]int32, len(labels))
	count := make([]int, parts)
	var dealt [256][]int32 // owners so far, by class
	// The conversion keeps the product from being fused with the sum below.
	fresh := float64(float64(parts) * s.Alpha)
	for _, i := range order {
		urn := dealt[labels[i]]
		var p int32
		if rng.Float64()*(fresh+float64(len(urn))) < fresh {
			p = int32(rng.IntN(parts))
		} else {
			p = urn[rng.IntN(len(urn))]
		}
		dealt[labels[i]] = append(urn, p)
		owner[i] = p
		count[p]++
	}
	fillEmpty(owner, order, count)
	return owner
}

// fillEmpty gives each part that got nothing one picture of the largest part.
func fillEmpty(owner, order []int32, count []int) {
	for p := range count {
		if count[p] > 0 {
			continue
		}
		largest := slices.Index(count, slices.Max(count))
		for _, i := range order {
			if int(owner[i]) == largest {
				owner[i] = int32(p)
				break
			}
		}
		count[largest]--
		count[p]++
	}
}
