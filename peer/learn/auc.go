package learn

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Areas are found by two sums: a coarse histogram of the scores, then one with finer bins where there are many rows.
// So the error is small for any distribution of the scores.
const (
	lowScore   = -1076 // least position: scores up to 2^-1075 count as 0
	highScore  = 54    // largest position: 1 - 2^-53 is the last score below 1
	cellsPer   = 4     // coarse cells for each power of 2
	scoreCells = (highScore - lowScore) * cellsPer
	// scoreBins is how many bins the rows of a class and of all other classes share: the error is at most
	// 1/(2·scoreBins) if the rows of each cell are spread evenly.
	scoreBins = 8192
	// maxAreas bounds how many classes have an area of their own, and so the bytes of the sums.
	maxAreas = 64
)

// position maps a score from 0 to 1 to a scale that is fine near both ends: the binary logarithm of scores below ½,
// and its mirror image above.
func position(score float64) float64 {
	if score <= 0.5 {
		return max(math.Log2(score), lowScore)
	}
	return min(-2-math.Log2(1-score), highScore)
}

// areas returns the mean area under the curve over the classes, and a bound of its error.
func areas(ctx context.Context, flock table.Flock, scores []float64, rows Rows) (area, bound float64, err error) {
	k := len(rows.Classes)
	if k > maxAreas {
		return 0.5, 0.5, nil
	}
	first, n := firstScored(k), 0.0
	for class := first; class < k; class++ {
		a := areaOf{scores: scores, rows: rows, class: class}
		one, off, some, err := a.measure(ctx, table.Scope(flock, fmt.Sprint("auc", class)))
		if err != nil {
			return 0, 0, fmt.Errorf("learn: evaluating the area under the curve: %w", err)
		}
		if some {
			area, bound, n = area+one, bound+off, n+1
		}
	}
	if n == 0 {
		return 0.5, 0.5, nil
	}
	return area / n, bound / n, nil
}

// areaOf has the area of one class against all others.
type areaOf struct {
	scores []float64
	rows   Rows
	class  int
}

// histogram sums n bins over the flock. weights has the weight of the class in each bin, then that of all other
// classes. ends has the largest score of each bin, then the least scores, negated.
func (a areaOf) histogram(ctx context.Context, flock table.Flock, name string, n int, bin func(score float64, cell int) int) (weights, ends []float64, err error) {
	weights, ends = make([]float64, 2*n), slices.Repeat([]float64{-2}, 2*n) // -2 is below any score
	k := len(a.rows.Classes)
	for i := range a.rows.count() {
		score := min(max(a.scores[i*k+a.class], 0), 1)
		b := bin(score, min(int((position(score)-lowScore)*cellsPer), scoreCells-1))
		ends[b], ends[n+b] = max(ends[b], score), max(ends[n+b], -score)
		if int(a.rows.Target[i]) != a.class {
			b += n
		}
		weights[b] += a.rows.weight(i)
	}
	if weights, _, err = flock.Sum(ctx, name, weights); err != nil {
		return nil, nil, err
	}
	if err = table.Counts(name, maxWeight, weights...); err == nil {
		ends, _, err = flock.Max(ctx, name+"/ends", ends)
	}
	return weights, ends, err
}

// measure returns the area and a bound of its error; some is false if all rows, or none, are of the class.
func (a areaOf) measure(ctx context.Context, flock table.Flock) (area, bound float64, some bool, err error) {
	cells, span, err := a.histogram(ctx, flock, "cells", scoreCells, func(_ float64, cell int) int { return cell })
	if err != nil {
		return 0, 0, false, err
	}
	positives, negatives := total(cells[:scoreCells]), total(cells[scoreCells:])
	if positives == 0 || negatives == 0 {
		return 0, 0, false, nil
	}
	// begin[c] is the first bin of cell c. A cell gets bins by its share of the rows, at equal distances from the
	// least of its scores to the largest; it gets one bin if its rows have no weight.
	begin := make([]int, scoreCells+1)
	for c := range scoreCells {
		mass := (cells[c]/positives + cells[scoreCells+c]/negatives) / 2
		begin[c+1] = begin[c] + int(math.Ceil(mass*scoreBins))
		if begin[c+1] == begin[c] && span[c] >= 0 {
			begin[c+1]++
		}
	}
	bins := begin[scoreCells]
	fine, ends, err := a.histogram(ctx, flock, "bins", bins, func(score float64, cell int) int {
		least, width := -span[scoreCells+cell], begin[cell+1]-begin[cell]
		if span[cell] == least {
			return begin[cell]
		}
		return begin[cell] + min(int((score-least)/(span[cell]-least)*float64(width)), width-1)
	})
	if err != nil {
		return 0, 0, false, err
	}
	positives, negatives = total(fine[:bins]), total(fine[bins:])
	if positives == 0 || negatives == 0 {
		return 0, 0, false, nil // members that had rows have left
	}
	below := 0.0
	for b := range bins {
		area += fine[b] * (below + fine[bins+b]/2)
		if ends[b] != -ends[bins+b] { // the bin has several scores, whose order is not known
			bound += fine[b] * fine[bins+b] / 2
		}
		below += fine[bins+b]
	}
	return area / positives / negatives, bound / positives / negatives, true, nil
}
