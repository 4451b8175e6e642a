package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/tensor"
)

// Normalization maps a level g of 0 to 255 to the input of a model, (g/255 - Mean) / Scale. All peers of a run must
// use the same one: otherwise their common model would learn two meanings of one input. That of known data sets is
// constant. For others it is measured over the training files of the folder, and is equal for peers whose folders
// have the same files. Peers with different files add up their Levels, and set Config.Norm to NormOf the sum.
//
// Glyphs and mnist have Mean 0, and the root mean square of the training set as Scale: their empty background, four
// fifths of a picture, stays exactly 0, which matrix products skip. The biases learn the effect of a mean.
type Normalization struct {
	Mean, Scale float32
}

// String is the text that ParseNorm reads for one channel.
func (n Normalization) String() string { return FormatNorm([]Normalization{n}) }

// ParseNorm reads MEAN/SCALE, or the same for each channel with commas, as in
// 0.49,0.48,0.45/0.25,0.24,0.26.
func ParseNorm(text string) ([]Normalization, error) {
	means, scales, ok := strings.Cut(text, "/")
	mean, scale := strings.Split(means, ","), strings.Split(scales, ",")
	wrong := fmt.Errorf("%w: normalization %q: want MEAN/SCALE, or one of each for every channel, as in 0.49,0.48,0.45/0.25,0.24,0.26", ErrConfig, text)
	if !ok || len(mean) != len(scale) {
		return nil, wrong
	}
	norm := make([]Normalization, len(mean))
	for i := range norm {
		m, err := strconv.ParseFloat(mean[i], 32)
		if err != nil {
			return nil, wrong
		}
		s, err := strconv.ParseFloat(scale[i], 32)
		if err != nil {
			return nil, wrong
		}
		norm[i] = Normalization{Mean: float32(m), Scale: float32(s)}
		if !norm[i].usable() {
			return nil, wrong
		}
	}
	return norm, nil
}

// FormatNorm writes what ParseNorm reads.
func FormatNorm(norm []Normalization) string {
	means, scales := make([]string, len(norm)), make([]string, len(norm))
	for i, n := range norm {
		means[i] = strconv.FormatFloat(float64(n.Mean), 'g', -1, 32)
		scales[i] = strconv.FormatFloat(float64(n.Scale), 'g', -1, 32)
	}
	return strings.Join(means, ",") + "/" + strings.Join(scales, ",")
}

func (n Normalization) usable() bool {
	return n.Scale > 0 && !math.IsInf(float64(n.Scale), 0) && !math.IsNaN(float64(n.Mean)) && !math.IsInf(float64(n.Mean), 0)
}

// levels has the input of a model for each level, a table for each channel.
type levels [][256]float32

// newLevels makes the tables from one normalization for every channel, or from one
// for all of them.
func newLevels(channels int, norm []Normalization) (levels, error) {
	if len(norm) != 1 && len(norm) != channels {
		return nil, fmt.Errorf("%w: normalizations of %d channels for pictures of %d: want one, or one for each", ErrConfig, len(norm), channels)
	}
	tables := make(levels, channels)
	for c := range tables {
		n := norm[min(c, len(norm)-1)]
		if !n.usable() {
			return nil, fmt.Errorf("%w: normalization %v: the scale is not positive and finite, or the mean not finite", ErrConfig, n)
		}
		for g := range tables[c] {
			tables[c][g] = (float32(g)/255 - n.Mean) / n.Scale
		}
	}
	return tables, nil
}

// apply writes a picture as the input of a model.
func (l levels) apply(out tensor.Vector, pixels []uint8) {
	out = out[:len(pixels)]
	switch len(l) {
	case 1:
		table := &l[0]
		for i, g := range pixels {
			out[i] = table[g]
		}
	case 3:
		r, g, b := &l[0], &l[1], &l[2]
		for i := 0; i+2 < len(pixels); i += 3 {
			out[i], out[i+1], out[i+2] = r[pixels[i]], g[pixels[i+1]], b[pixels[i+2]]
		}
	default:
		for c := range l {
			for i := c; i < len(pixels); i += len(l) {
				out[i] = l[c][pixels[i]]
			}
		}
	}
}

// moments adds up levels exactly, so the order does not matter.
type moments struct {
	pixels uint64
	sum    []uint64
	square []uint64
}

func newMoments(channels int) *moments {
	return &moments{sum: make([]uint64, channels), square: make([]uint64, channels)}
}

func (m *moments) add(picture []uint8) {
	channels := len(m.sum)
	for c := range channels {
		var sum, square uint64
		for i := c; i < len(picture); i += channels {
			g := uint64(picture[i])
			sum += g
			square += g * g
		}
		m.sum[c] += sum
		m.square[c] += square
	}
	m.pixels += uint64(len(picture) / channels)
}

// vector is the number of pixels, then the sums of the levels of each channel, then the sums of their squares: whole
// numbers, which float64 adds up exactly for 10^11 pixels.
func (m *moments) vector() []float64 {
	v := []float64{float64(m.pixels)}
	for _, sums := range [][]uint64{m.sum, m.square} {
		for _, n := range sums {
			v = append(v, float64(n))
		}
	}
	return v
}

// maxExact is the number up to which float64 represents every integer.
const maxExact = 1 << 53

// NormOf is the mean and the standard deviation of each channel, from the result of Levels or a sum of such results.
// It returns an error for other numbers.
func NormOf(levels []float64) ([]Normalization, error) {
	channels := (len(levels) - 1) / 2
	wrong := slices.ContainsFunc(levels, func(n float64) bool { return !(n >= 0 && n <= maxExact) })
	if channels < 1 || len(levels) != 1+2*channels || wrong || levels[0] == 0 {
		return nil, fmt.Errorf("%w: a normalization of %d sums: want those of a picture or more", ErrConfig, len(levels))
	}
	m := newMoments(channels)
	m.pixels = uint64(levels[0])
	for c := range channels {
		m.sum[c], m.square[c] = uint64(levels[1+c]), uint64(levels[1+channels+c])
	}
	return m.norm(), nil
}

// norm is the mean and the standard deviation of each channel. A channel with only one level gets a scale of 1.
func (m *moments) norm() []Normalization {
	norm := make([]Normalization, len(m.sum))
	for c := range norm {
		n := float64(m.pixels) * 255
		mean := float64(m.sum[c]) / n
		// The conversions prevent compilers from fusing products with the sum, which would differ between processors.
		variance := float64(m.square[c])/(n*255) - float64(mean*mean)
		norm[c] = Normalization{Mean: float32(mean), Scale: 1}
		if variance > 1e-9 {
			norm[c].Scale = float32(math.Sqrt(variance))
		}
	}
	return norm
}
