package learn

import (
	"math/bits"
	"slices"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// cell has sums over the rows of one bin (and class): of their gradients, and, in one number, of their weights (above
// gradients.shift bits) and how many they are (below).
type cell = kernel.Cell

// blockRows is how many rows are added to all columns before the next rows: their gradients stay in the L1 cache.
const blockRows = 1024

// layout has the columns of a node's histogram and how coarse their bins are.
type layout struct {
	columns []int32
	offset  []int32 // index of each column's first bin; then the number of all bins
	level   int     // bins are joined until at most (maxBins+1)>>level of a column are left
}

// coarseColumn is a column with joined bins.
type coarseColumn struct {
	bins  int
	shift uint // of numbers: 1<<shift bins of the rows are one
	to    [256]uint8
}

// maxLevel bounds how coarse bins get: of more than 16 bins of values 9 to 16 are left.
const maxLevel = 4

// coarsen joins neighbouring ranges of numbers, or the rarest categories with the bin of all others. A column of few
// values keeps them.
func coarsen(c *binColumn, level int) *coarseColumn {
	values, most := c.bins-1, (maxBins+1)>>level
	out := &coarseColumn{bins: min(values, most) + 1}
	if !c.category {
		for values > most<<out.shift {
			out.shift++
		}
		out.bins = (values-1)>>out.shift + 2
	}
	for bin := range values {
		to := bin >> out.shift
		if c.category {
			to = min(bin, out.bins-2)
		}
		out.to[bin] = uint8(to)
	}
	out.to[values] = uint8(out.bins - 1)
	return out
}

// histograms makes, packs and reads the histograms of nodes.
type histograms struct {
	table  *binned
	levels [maxLevel + 1][]*coarseColumn // by level and column; level 0 is the bins of the rows
	cells  []cell
	lanes  *laneSums // nil until a node has all columns
	add    [blockRows]cell
}

func newHistograms(b *binned) *histograms {
	s := &histograms{table: b}
	for level := range s.levels {
		for c := range b.columns {
			s.levels[level] = append(s.levels[level], coarsen(&b.columns[c], level))
		}
	}
	return s
}

// arrange computes where the bins of each column begin.
func (s *histograms) arrange(l *layout) {
	l.offset = l.offset[:0]
	total := int32(0)
	for _, c := range l.columns {
		l.offset = append(l.offset, total)
		total += int32(s.levels[l.level][c].bins)
	}
	l.offset = append(l.offset, total)
}

// bins is the number of bins of all columns.
func (l *layout) bins() int { return int(l.offset[len(l.columns)]) }

// build adds up rows into cells, which are valid until the next call.
func (s *histograms) build(d *gradients, l *layout, rows []int32) []cell {
	k := d.classes()
	n := l.bins() * k
	if need := n + 256; cap(s.cells) < need { // 256 more, so that each column can be seen as an array
		s.cells = make([]cell, need)
	}
	cells := s.cells[:n+256]
	clear(cells[:n])
	all := d.class == nil && l.level == 0 && len(l.columns) == len(s.table.columns) && slices.IsSorted(l.columns)
	if all && s.lanes == nil {
		s.lanes = newLaneSums(s.table)
	}
	for len(rows) > 0 {
		block := rows[:min(blockRows, len(rows))]
		rows = rows[len(block):]
		for i, row := range block {
			s.add[i] = cell{G: int64(d.rows[row].g), HN: uint64(d.rows[row].h)<<d.shift | 1}
		}
		if all {
			s.lanes.add(block, s.add[:])
			continue
		}
		for i, c := range l.columns {
			bins := s.table.bins[c]
			of := cells[int(l.offset[i])*k:]
			switch to := &s.levels[l.level][c].to; {
			case d.class != nil:
				addClasses(of, bins, block, to, d.class, k, s.add[:])
			case l.level == 0:
				addRows((*[256]cell)(of), bins, block, &s.add)
			default:
				addCoarse((*[256]cell)(of), bins, block, to, &s.add)
			}
		}
	}
	if all {
		s.lanes.drain(cells, l.offset)
	}
	return cells[:n]
}

func addRows(cells *[256]cell, bins []uint8, block []int32, add *[blockRows]cell) {
	for i, row := range block {
		c, one := &cells[bins[row]], &add[i%blockRows]
		c.G += one.G
		c.HN += one.HN
	}
}

func addCoarse(cells *[256]cell, bins []uint8, block []int32, to *[256]uint8, add *[blockRows]cell) {
	for i, row := range block {
		c, one := &cells[to[bins[row]]], &add[i%blockRows]
		c.G += one.G
		c.HN += one.HN
	}
}

func addClasses(cells []cell, bins []uint8, block []int32, to *[256]uint8, class []uint8, k int, add []cell) {
	for i, row := range block {
		cells[int(to[bins[row]])*k+int(class[row])].HN += add[i].HN
	}
}

// packing tells how cells become numbers for a sum. The numbers are whole and their sums stay below 2^53 whatever the
// members send, since the rows of the node are known. Several cells share a float64 if they fit.
type packing struct {
	g, h, n uint // bits of each
	cells   int  // in one float64; 0: a cell takes several float64, words of them
	words   int
}

// packingFor is the packing for a node with that many rows over all members.
func packingFor(d *gradients, rows float64) packing {
	p := packing{n: uint(bits.Len64(uint64(rows)))}
	if d.weighted {
		p.h = d.hBits + p.n
	}
	if d.class == nil {
		p.g = d.gBits + p.n
		if d.signed {
			p.g++
		}
	}
	switch {
	case p.g+p.h+p.n <= exactBits:
		p.cells = int(exactBits / (p.g + p.h + p.n))
	case p.h+p.n <= exactBits:
		p.words = 2
	default:
		p.words = 3
	}
	return p
}

// pack appends cells to dst.
func (s *histograms) pack(dst []float64, d *gradients, p packing, cells []cell) []float64 {
	low := uint64(1)<<d.shift - 1
	word, shift, in := uint64(0), uint(0), 0
	for _, c := range cells {
		n, h, g := c.HN&low, c.HN>>d.shift, uint64(c.G)
		if d.signed {
			g = uint64(c.G + int64(n)<<d.gBits)
		}
		switch {
		case p.words == 2:
			dst = append(dst, float64(g), float64(h<<p.n|n))
		case p.words == 3:
			dst = append(dst, float64(g), float64(h), float64(n))
		default:
			word |= (g<<(p.h+p.n) | h<<p.n | n) << shift
			shift += p.g + p.h + p.n
			if in++; in == p.cells {
				dst = append(dst, float64(word))
				word, shift, in = 0, 0, 0
			}
		}
	}
	if in > 0 {
		dst = append(dst, float64(word))
	}
	return dst
}

// unpack reads the sums of the cells into out, gradients.stride numbers for each bin, and returns the rest of src.
func (s *histograms) unpack(out, src []float64, d *gradients, p packing) []float64 {
	k, stride := d.classes(), d.stride()
	in, shift, word := 0, uint(0), uint64(0)
	clear(out)
	for i := 0; i < len(out); i += stride {
		for class := range k {
			var g, h, n uint64
			switch p.words {
			case 2:
				g, h, n = uint64(src[0]), uint64(src[1])>>p.n, uint64(src[1])&(1<<p.n-1)
				src = src[2:]
			case 3:
				g, h, n = uint64(src[0]), uint64(src[1]), uint64(src[2])
				src = src[3:]
			default:
				if in == 0 {
					word, shift = uint64(src[0]), 0
					src = src[1:]
				}
				one := word >> shift
				n, h, g = one&(1<<p.n-1), one>>p.n&(1<<p.h-1), one>>(p.n+p.h)&(1<<p.g-1)
				shift += p.g + p.h + p.n
				in = (in + 1) % p.cells
			}
			sum := float64(int64(g))
			if d.signed {
				sum = float64(int64(g) - int64(n)<<d.gBits)
			}
			weight := float64(h)
			if !d.weighted {
				weight = float64(n)
			}
			out[i] += float64(n)
			out[i+1] += weight
			if d.class != nil {
				sum = weight
			}
			out[i+2+class] += sum
		}
	}
	return src
}
