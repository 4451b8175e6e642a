package learn_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// Each member fits with its own rows, over the sums of a *peer.Peer (here Alone, of one process), and has the model of
// all rows. A file of it is all that predicting needs.
func ExampleLinear() {
	ctx := context.Background()
	rows := learn.Rows{
		Features: &table.Batch{Rows: 4, Columns: []table.Column{{Name: "size", Numbers: []float64{50, 80, 100, 120}}}},
		Target:   []float64{110, 170, 210, 250},
	}
	model, err := (&learn.Linear{}).Fit(ctx, table.Alone{}, rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := learn.Save(&file, learn.File{Model: model, Target: "price"}); err != nil {
		fmt.Println(err)
		return
	}
	read, err := learn.Load(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	prices, err := read.Model.Predict(nil, &table.Batch{Rows: 1, Columns: []table.Column{{Name: "size", Numbers: []float64{60}}}})
	fmt.Printf("%.1f %v\n", prices, err)
	// Output: [130.0] <nil>
}

// Scores are sums too: of the rows that each member holds out.
func ExampleEvaluate() {
	ctx := context.Background()
	rows := learn.Rows{
		Features: &table.Batch{Rows: 6, Columns: []table.Column{{Name: "delay", Numbers: []float64{1, 2, 3, 4, 5, 6}}}},
		Target:   []float64{0, 0, 0, 1, 1, 1},
		Classes:  []string{"in time", "late"},
	}
	model, err := learn.Tree{MinRows: 1}.Fit(ctx, table.Alone{}, rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	scores, err := learn.Evaluate(ctx, table.Alone{}, model, rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accuracy", scores.Classes.Accuracy, "AUC", scores.Classes.AUC, "confusion", scores.Classes.Confusion)
	// Output: accuracy 1 AUC 1 confusion [[3 0] [0 3]]
}
