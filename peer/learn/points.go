package learn

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// laidRows is how many rows are copied next to each other at a time: such a block stays in the cache, and there is no
// second copy of all rows.
const laidRows = 256

// points are rows of numbers, from which a vector is subtracted.
type points struct {
	names   []string
	columns [][]float64
	rows    Rows
	// from is subtracted from each row; 0 at first. With the mean of all rows, products lose no digits to a common
	// offset.
	from []float64
}

// pointsOf finds columns by their names. It returns an error if one is missing or has a value that is not finite.
func pointsOf(rows Rows, names []string) (points, error) {
	p := points{names: names, rows: rows, from: make([]float64, len(names))}
	if len(names) == 0 {
		return p, errors.New("learn: rows without columns")
	}
	for j, name := range names {
		column, err := numbers(rows.Features, name, j)
		if err != nil {
			return p, err
		}
		p.columns = append(p.columns, column)
	}
	return p, checkRowWeights(rows)
}

// pointsToFit takes all columns. It returns an error if the square of a value would be infinite, or if two columns
// have one name.
func pointsToFit(rows Rows) (points, error) {
	p, err := pointsOf(rows, rows.Features.Names())
	if err == nil {
		err = checkSizes(rows.Features)
	}
	return p, err
}

// each calls do for each row; the slice x is valid during the call.
func (p points) each(do func(row int, x []float64)) {
	d, n := len(p.columns), p.rows.count()
	block := make([]float64, laidRows*d)
	for first := 0; first < n; first += laidRows {
		size := min(laidRows, n-first)
		for j, column := range p.columns {
			for i, x := range column[first : first+size] {
				block[i*d+j] = x - p.from[j]
			}
		}
		for i := range size {
			do(first+i, block[i*d:(i+1)*d])
		}
	}
}

// moments returns the weight of all rows of the flock, their mean, and the sum of their squared distances from the
// mean. It takes two sums: the second measures from the mean that the first gives.
func (p points) moments(ctx context.Context, flock table.Flock) (weight float64, mean []float64, scatter float64, err error) {
	d := len(p.columns)
	mean = make([]float64, d)
	for _, part := range []string{"mean", "scatter"} {
		p.from = mean
		sum := make([]float64, d+2)
		p.each(func(row int, x []float64) {
			w := p.rows.weight(row)
			sum[d] += w
			for j, v := range x {
				sum[j] += w * v
				sum[d+1] += w * v * v
			}
		})
		if sum, _, err = flock.Sum(ctx, part, sum); err != nil {
			return 0, nil, 0, err
		}
		weight, scatter = sum[d], sum[d+1]
		if err := checkWeights(part, weight); err != nil {
			return 0, nil, 0, err
		}
		next := slices.Clone(mean)
		for j := range next {
			off := sum[j] / weight
			next[j] += off
			scatter -= weight * off * off
		}
		mean = next
	}
	return weight, mean, max(scatter, 0), nil
}

// ranked is a row that members send each other, with the rank by which they choose.
type ranked struct {
	rank  float64 // the rows with the least ranks are chosen
	point []float64
}

func (r ranked) compare(other ranked) int {
	return cmp.Or(cmp.Compare(r.rank, other.rank), slices.Compare(r.point, other.point))
}

// least holds the rows with the least ranks in order, at most most of them.
type least struct {
	most int
	list []ranked
}

// offer adds a copy of a row if its rank is among the least.
func (l *least) offer(rank float64, point []float64) {
	r := ranked{rank, point}
	if len(l.list) == l.most && (l.most == 0 || r.compare(l.list[l.most-1]) >= 0) {
		return
	}
	r.point = slices.Clone(point)
	at, _ := slices.BinarySearchFunc(l.list, r, ranked.compare)
	if l.list = slices.Insert(l.list, at, r); len(l.list) > l.most {
		l.list = l.list[:l.most]
	}
}

// gatherAll replaces the least rows of this member by those of the whole flock.
func (l *least) gatherAll(ctx context.Context, flock table.Flock, name string, width int) error {
	var data []byte
	for _, r := range l.list {
		data = appendFloats(appendFloats(data, r.rank), r.point...)
	}
	all, err := flock.Gather(ctx, name, data)
	if err != nil {
		return err
	}
	l.list = nil
	for _, data := range all {
		values, err := parseFloats(data)
		if err != nil || len(values)%(width+1) != 0 {
			return fmt.Errorf("learn: %s: a member has sent %d bytes, which are no rows of %d numbers", name, len(data), width)
		}
		for r := range slices.Chunk(values, width+1) {
			l.offer(r[0], r[1:])
		}
	}
	return nil
}

func appendFloats(data []byte, values ...float64) []byte {
	data, _ = binary.Append(data, binary.LittleEndian, values) // does not fail for numbers
	return data
}

// parseFloats reads what appendFloats wrote; numbers that are not finite are an error.
func parseFloats(data []byte) ([]float64, error) {
	if len(data)%8 != 0 {
		return nil, fmt.Errorf("%d bytes are no float64s", len(data))
	}
	values := make([]float64, len(data)/8)
	_, _ = binary.Decode(data, binary.LittleEndian, values) // of this length it never fails
	if i := slices.IndexFunc(values, missing); i >= 0 {
		return nil, fmt.Errorf("value %d is %v", i, values[i])
	}
	return values, nil
}

// draw returns a random number from 0 to below 1 for a row, by its key: the same at whichever member the row is.
func draw(seed uint64, round int, key int64) float64 {
	h := table.Mix(table.Mix(seed+uint64(round)) + uint64(key))
	return float64(h>>11) / (1 << 53)
}
