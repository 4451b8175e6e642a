package summary_test

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// Each member describes the rows of all (here of one): how they lie, and what tells of a target.
func ExampleConfig_Describe() {
	rows := &table.Batch{Columns: []table.Column{
		{Name: "hour", Kind: table.Number},
		{Name: "day", Kind: table.Number},
		{Name: "sky", Kind: table.Category, Values: []string{"clear", "fog"}},
	}}
	for i := range 120 {
		for c, x := range []float64{float64(i % 24), float64(i / 24)} {
			rows.Columns[c].Numbers = append(rows.Columns[c].Numbers, x)
		}
		sky := int32(0)
		if i%24 < 7 {
			sky = 1
		}
		rows.Columns[2].Codes = append(rows.Columns[2].Codes, sky)
	}
	rows.Rows = 120
	s, err := summary.Config{Target: "sky"}.Describe(context.Background(), table.Alone{}, table.Held(rows))
	if err != nil {
		fmt.Println(err)
		return
	}
	hour := s.Columns[0]
	fmt.Printf("%d rows, %v\n", s.Rows, s.Classes)
	fmt.Printf("%s: mean %.1f, %g to %g, half of them below %g\n", hour.Name, hour.Mean, hour.Min, hour.Max, hour.Quantiles[len(hour.Quantiles)/2].Value)
	fmt.Println("of no use for the sky:", s.Unrelated(0.01))
	// Output:
	// 120 rows, [{clear 85} {fog 35}]
	// hour: mean 11.5, 0 to 23, half of them below 11.5
	// of no use for the sky: [day]
}
