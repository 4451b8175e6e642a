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

// ErrShard: a shard rule or a part is not valid.
var ErrShard = errors.New("dataset: bad shard")

// Bounds of a shard rule.
const (
	// MaxParts bounds the number of parts of a set.
	MaxParts = 1 << 16
	// MinAlpha and MaxAlpha bound the concentration of a Dirichlet shard. Below, every class would be in one part;
	// above, the parts would be iid except for rounding.
	MinAlpha = 1e-4
	MaxAlpha = 1e6
)

// Shard says how a set is divided into parts, one for each peer. The zero value is "iid": parts of equal size and
// distribution. With Alpha > 0 labels are skewed: the proportions in which a class is divided among the parts are
// drawn from a Dirichlet distribution with concentration Alpha (Yurochkin et al., 2019); at 0.1, two or three classes
// make most of a part. With Files, a part has whole files, and the numbers of files differ by at most one: a peer that
// streams reads only its own files.
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

// String is the text that ParseShard reads.
func (s Shard) String() string {
	switch {
	case s.Files:
		return "files"
	case s.Alpha == 0:
		return "iid"
	}
	return "dirichlet=" + strconv.FormatFloat(s.Alpha, 'g', -1, 64)
}

// Part returns the indices of part number part of parts, ascending. The parts of one seed are disjoint, cover all
// labels, and none is empty; iid parts differ by at most one in size. Every peer computes the same division: it takes
// only integers, sums and quotients, which all platforms round alike.
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

// Parts returns the indices of all parts, each as Part does.
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
		all[p] = append(all[p], int32(i)) // ascending, since i is
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

// deal assigns each picture, in the given order, to a part. A class is dealt by Pólya's urn: its picture m goes to a
// uniformly drawn part with probability parts·α/(parts·α+m), and otherwise to the part of a random one of its m
// earlier pictures. The shares tend to a draw from Dirichlet(α) (Blackwell and MacQueen, 1973), without gamma
// variates, whose logarithms differ between platforms.
func (s Shard) deal(rng *rand.Rand, labels []uint8, order []int32, parts int) []int32 {
	owner := make([]int32, len(labels))
	count := make([]int, parts)
	var dealt [256][]int32 // parts of the pictures so far, by class
	// The conversion prevents compilers from fusing the product with the sum below.
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

// fillEmpty gives each empty part one picture of the largest part.
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
