package prepare_test

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// A pipeline is fitted on the rows of all members (here of one), and then prepares any rows.
func ExamplePipeline() {
	rows := &table.Batch{Rows: 3, Columns: []table.Column{
		{Name: "age", Kind: table.Number, Numbers: []float64{20, 40, 60}},
		{Name: "city", Kind: table.Category, Codes: []int32{0, 1, 0}, Values: []string{"Oslo", "Rome"}},
	}}
	p := &prepare.Pipeline{
		Input:  table.Schema{Fields: []table.Field{{Name: "age"}, {Name: "city", Kind: table.Category}}},
		Stages: []table.Stage{&prepare.MinMax{}, &prepare.OneHot{}},
	}
	if err := p.Fit(context.Background(), table.Alone{}, table.InMemory(rows)); err != nil {
		fmt.Println(err)
		return
	}
	out, err := p.Transform(rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range out.Columns {
		fmt.Println(c.Name, c.Numbers)
	}
	// Output:
	// age [0 0.5 1]
	// city=Oslo [1 0 1]
	// city=Rome [0 1 0]
	// city=other [0 0 0]
}
