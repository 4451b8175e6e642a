package prepare

import (
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Usual makes the stages that most tables need: dates become numbers, categories of very many values are left out,
// and the rest is converted to what a learner takes.
type Usual struct {
	// Floor is how many rows of all members a value of a category must have; those with fewer count as one.
	Floor float64 `json:"floor,omitempty"`
	// MaxValues are the most values of a category that is not left out: see DropMany.
	MaxValues int `json:"max_values,omitempty"`
	// Categories are columns that are no dates, whatever their values.
	Categories []string `json:"categories,omitempty"`
}

func (u Usual) with(stages ...table.Stage) []table.Stage {
	return append([]table.Stage{&Dates{Except: u.Categories}, &DropMany{Values: u.MaxValues}}, stages...)
}

// The columns that mark missing values are added after scaling, so they stay 0 or 1.

// Numbers are the stages for most learners: a missing number becomes the mean, and a further column marks it;
// columns have mean 0 and variance 1; categories are columns of 0 and 1.
func (u Usual) Numbers() []table.Stage {
	return u.with(&Standardize{}, &Impute{Indicator: true}, &OneHot{Floor: u.Floor})
}

// Counts are like Numbers, with columns from 0 to 1 in place of mean 0 and variance 1.
func (u Usual) Counts() []table.Stage {
	return u.with(&MinMax{}, &Impute{Indicator: true}, &OneHot{Floor: u.Floor})
}

// AsTheyAre are the stages for trees: numbers and missing values stay, and categories get the same codes at all members.
func (u Usual) AsTheyAre() []table.Stage { return u.with(&Codes{Floor: u.Floor}) }

// trim removes stages at the beginning that do nothing when the model serves (columns are dropped, no dates),
// so that a model needs no column that it does not use.
func (p *Pipeline) trim() {
	for i := 0; i < len(p.Stages); {
		switch s := p.Stages[i].(type) {
		case *DropMany:
			p.Input.Fields = slices.DeleteFunc(slices.Clone(p.Input.Fields), func(f table.Field) bool { return slices.Contains(s.Dropped, f.Name) })
		case *Dates:
			if len(s.Columns) > 0 {
				s.Except = nil
				i++
				continue
			}
		default:
			return
		}
		p.Stages = slices.Delete(p.Stages, i, i+1)
	}
}
