package table_test

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
)

// A target is agreed on over the flock, and then taken out of each batch; a split says which rows train.
func ExampleTarget_Fit() {
	ctx := context.Background()
	rows := table.InMemory(&table.Batch{Rows: 5, Columns: []table.Column{
		{Name: "distance", Numbers: []float64{100, 200, 300, 400, 500}},
		{Name: "delay", Numbers: []float64{3, 20, 0, 45, 17}},
	}})
	schema, err := table.Agree(ctx, table.Alone{}, &table.Schema{Fields: []table.Field{{Name: "distance"}, {Name: "delay"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	target, err := table.ParseTarget("delay>15")
	if err != nil {
		fmt.Println(err)
		return
	}
	labels, err := target.Fit(ctx, table.Alone{}, schema, rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q %v\n", labels.Classes, labels.Counts)
	split, err := table.ParseSplit("row:3/5")
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range table.Filtered(rows, split.Train())(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		features, late, err := labels.Of(b)
		fmt.Println(features.Names(), features.Columns[0].Numbers, late, err)
	}
	// Output:
	// ["delay<=15" "delay>15"] [2 3]
	// [distance] [100 200 300] [0 1 0] <nil>
}

// A test of what members do together needs no network: the mean of numbers that one member has none of.
func ExampleTogether() {
	numbers := [][]float64{{1, 2}, {}, {6}}
	table.Together(len(numbers), func(flock table.Flock, member int) {
		sum := 0.0
		for _, x := range numbers[member] {
			sum += x
		}
		all, members, err := flock.Sum(context.Background(), "mean", []float64{sum, float64(len(numbers[member]))})
		if member == 0 { // all have the same
			fmt.Println(all[0]/all[1], "of", members, "members", err)
		}
	})
	// Output: 3 of 3 members <nil>
}

// Whoever has a flock of its own making (for a test, or over another transport) is held to what sound members give.
func ExampleCareful() {
	flock := table.Careful(lossy{})
	_, _, err := flock.Sum(context.Background(), "rows", []float64{1, 2})
	fmt.Println(err)
	// Output: what members brought together is not sound: one of them is at fault: "rows" has 1 numbers, want 2
}

type lossy struct{ table.Alone }

func (lossy) Sum(context.Context, string, []float64) ([]float64, int, error) {
	return []float64{1}, 2, nil
}
