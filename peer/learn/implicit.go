package learn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Implicit feedback (Hu, Koren and Volinsky 2008): the preference of a user for an item is 1 if the user had it and 0
// if not. A preference counts 1 + alpha·r if the user had the item r times, else 1. All items that a user never had
// share one sum of products, to which the few that the user had are added.

// mergePairs merges the rows of the same user and item into one, and adds up how often the user had the item.
func (f *alsFit) mergePairs() {
	type pair struct{ user, item int32 }
	place := map[pair]int{}
	var pairs Rows
	users, items := *f.users, *f.items
	users.Codes, items.Codes = nil, nil
	for row, often := range f.rows.Target {
		p := pair{f.users.Codes[row], f.items.Codes[row]}
		if often *= f.rows.weight(row); often == 0 {
			continue
		}
		at, known := place[p]
		if !known {
			at = len(pairs.Target)
			place[p], pairs.Target = at, append(pairs.Target, 0)
			users.Codes, items.Codes = append(users.Codes, p.user), append(items.Codes, p.item)
		}
		pairs.Target[at] += often
	}
	f.rows, f.users, f.items = pairs, &users, &items
}

// products returns the upper triangle of the sum of x·xᵀ over all users or items; nil unless Implicit.
func (f *alsFit) products(factors [][]float64) []float64 {
	if !f.Implicit {
		return nil
	}
	sum := make([]float64, f.Factors*(f.Factors+1)/2)
	for _, x := range factors {
		addProducts(sum, 1, x)
	}
	return sum
}

// addProducts adds the upper triangle of w·x·xᵀ to sums, and returns the numbers after that triangle.
func addProducts(sums []float64, w float64, x []float64) []float64 {
	for j, v := range x {
		for _, u := range x[j:] {
			sums[0] += w * v * u
			sums = sums[1:]
		}
	}
	return sums
}

// RankScores are scores of preferences, over the rows of all members.
type RankScores struct {
	Peers int     `json:"peers"`
	Rows  float64 `json:"rows"` // how often users had items, in all
	// Rank is the mean place in a user's list of all items, from 0 (first) to 1, of the items that the user had (the
	// expected percentile ranking of Hu, Koren and Volinsky 2008). Chance, and a user or item that the model does not
	// know, gives 0.5.
	Rank float64 `json:"rank"`
}

// ranks scores preferences. A nil target means that each row counts once.
func (m *ALSModel) ranks(ctx context.Context, flock table.Flock, rows Rows) (RankScores, error) {
	if rows.Target == nil {
		rows.Target = slices.Repeat([]float64{1}, rows.count())
	}
	users, errUser := categories(rows.Features, m.User)
	items, errItem := categories(rows.Features, m.Item)
	if err := agree(ctx, flock, cmp.Or(errUser, errItem, checkTarget(rows))); err != nil {
		return RankScores{}, err
	}
	names, order := slices.Sorted(maps.Keys(m.Items)), make([]int, rows.count())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(users.Codes[a], users.Codes[b]) })
	sums, list := make([]float64, 2), []float64(nil)
	for i, row := range order {
		user, item := users.Codes[row], items.Codes[row]
		if i == 0 || user != users.Codes[order[i-1]] {
			list = list[:0] // the user's preferences for all items; empty if the user is not known
			for _, name := range names {
				if user >= 0 && m.Users[users.Values[user]] != nil {
					list = append(list, floats.Dot(m.Users[users.Values[user]], m.Items[name]))
				}
			}
		}
		often, rank := max(rows.Target[row], 0)*rows.weight(row), 0.5
		if item >= 0 && len(list) > 1 {
			if at, known := slices.BinarySearch(names, items.Values[item]); known {
				rank = -0.5 / float64(len(list)-1) // leaves out the item itself
				for _, p := range list {
					rank += float64(1+cmp.Compare(p, list[at])) / 2 / float64(len(list)-1)
				}
			}
		}
		sums[0] += often * rank
		sums[1] += often
	}
	sums, peers, err := flock.Sum(ctx, "ranks", sums)
	if err == nil {
		err = cmp.Or(checkWeights("ranks", sums[1]), table.Counts("ranks", sums[1], sums[0]))
	}
	if err != nil {
		return RankScores{}, fmt.Errorf("learn: evaluating: %w", err)
	}
	return RankScores{Peers: peers, Rows: sums[1], Rank: sums[0] / sums[1]}, nil
}
