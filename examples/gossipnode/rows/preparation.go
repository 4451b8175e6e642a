package rows

import (
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Preparation is what has to be done to columns before a learner can use them.
type Preparation uint8

const (
	// Numbers: what is missing is the mean, with a column that tells so; columns have mean 0
	// and variance 1; categories are columns of 0 and 1.
	Numbers Preparation = iota
	// Counts: the same, from 0 to 1.
	Counts
	// AsTheyAre: numbers and what is missing stay, and categories are numbered alike.
	AsTheyAre
	// Named: nothing is done.
	Named
)

// Pipeline is the stages for columns, as a batch has them; values of categories with fewer rows
// than floor count as one.
func (p Preparation) Pipeline(columns *table.Batch, floor float64) *prepare.Pipeline {
	made := &prepare.Pipeline{}
	for _, c := range columns.Columns {
		made.Input.Fields = append(made.Input.Fields, table.Field{Name: c.Name, Kind: c.Kind})
	}
	switch p { // what tells that a value is missing comes after scaling, and stays 0 or 1
	case Numbers:
		made.Stages = []table.Stage{&prepare.Standardize{}, &prepare.Impute{Indicator: true}, &prepare.OneHot{Floor: floor}}
	case Counts:
		made.Stages = []table.Stage{&prepare.MinMax{}, &prepare.Impute{Indicator: true}, &prepare.OneHot{Floor: floor}}
	case AsTheyAre:
		made.Stages = []table.Stage{&prepare.Codes{Floor: floor}}
	}
	return made
}
