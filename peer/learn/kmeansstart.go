package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	startRounds = 5  // rounds of k-means||
	startTrials = 10 // trials of k-means++ on the drawn rows; the best is taken
	// overdraw bounds the rows that a round draws, as a multiple of the number that it aims at.
	overdraw = 8
)

// start finds the initial centers by k-means||. Each round draws about 2·Clusters rows, with probabilities by their
// squared distances from the rows drawn before. Then k-means++ chooses among the drawn rows, each weighted by the
// rows nearest to it.
func (f kmeansFit) start(ctx context.Context) (centers, error) {
	p, d := f.points, len(f.points.columns)
	drawn := least{most: 1}
	p.each(func(row int, x []float64) {
		if p.rows.weight(row) > 0 {
			drawn.offer(draw(f.Seed, 0, p.rows.Features.Key(row)), x)
		}
	})
	var candidates centers
	off := slices.Repeat([]float64{math.Inf(1)}, p.rows.count()) // squared distance from the nearest candidate
	near := make([]int, p.rows.count())
	aim := 2 * f.Clusters
	for round := 0; ; round++ {
		if err := drawn.gatherAll(ctx, f.flock, fmt.Sprintf("drawn%d", round), d); err != nil {
			return centers{}, err
		}
		var added centers
		for _, r := range drawn.list {
			added.add(r.point)
		}
		cost := []float64{0}
		p.each(func(row int, x []float64) {
			if len(added.at) > 0 {
				if i, squared := added.nearest(x); squared < off[row] {
					off[row], near[row] = squared, len(candidates.at)+i
				}
			}
			cost[0] += p.rows.weight(row) * off[row]
		})
		candidates.at = append(candidates.at, added.at...)
		candidates.halfs = append(candidates.halfs, added.halfs...)
		cost, _, err := f.flock.Sum(ctx, fmt.Sprintf("cost%d", round), cost)
		if err != nil {
			return centers{}, err
		}
		if round == startRounds || cost[0] == 0 {
			break
		}
		drawn = least{most: overdraw * aim}
		p.each(func(row int, x []float64) {
			u := draw(f.Seed, round+1, p.rows.Features.Key(row))
			if u*cost[0] < float64(aim)*p.rows.weight(row)*off[row] {
				drawn.offer(u, x)
			}
		})
	}
	weights := make([]float64, len(candidates.at))
	for row, i := range near {
		weights[i] += p.rows.weight(row)
	}
	weights, _, err := f.flock.Sum(ctx, "weights", weights)
	if err != nil {
		return centers{}, err
	}
	if err := checkWeights("weights", weights...); err != nil {
		return centers{}, err
	}
	flat, err := settle(ctx, f.flock, "start", slices.Concat(f.divide(candidates, weights)...))
	if err != nil {
		return centers{}, err
	}
	var chosen centers
	for at := range slices.Chunk(flat, d) {
		chosen.add(at)
	}
	return chosen, nil
}

// divide chooses one candidate for each cluster, or all distinct candidates if they are fewer. All members choose the
// same, since the random numbers come from the seed. Missing centers are copies: lloyd moves a center that has no
// rows.
func (f kmeansFit) divide(candidates centers, weights []float64) (best [][]float64) {
	chance := rand.New(rand.NewPCG(f.Seed, uint64(len(weights))))
	lowest := math.Inf(1)
	for range startTrials {
		off := slices.Clone(weights) // weight times squared distance; at first all distances count as equal
		var chosen [][]float64
		for len(chosen) < f.Clusters {
			i := byWeight(chance, off)
			if i < 0 {
				chosen = append(chosen, chosen[0])
				continue
			}
			chosen = append(chosen, candidates.at[i])
			for j, at := range candidates.at {
				if gap := weights[j] * distance2(at, candidates.at[i]); gap < off[j] || len(chosen) == 1 {
					off[j] = gap
				}
			}
		}
		if cost := total(off); cost < lowest || best == nil {
			lowest, best = cost, chosen
		}
	}
	return best
}

// byWeight draws an index with probabilities by the weights; -1 if all weights are 0.
func byWeight(chance *rand.Rand, weights []float64) int {
	left, last := chance.Float64()*total(weights), -1
	for i, w := range weights {
		if w > 0 {
			if last = i; left < w {
				return i
			}
			left -= w
		}
	}
	return last
}
