// Package summary describes the rows of all members of a flock by sums: how many there are, and how
// the values of each column lie. No row leaves its member, and all members get the same bytes.
// Counts, quantiles and relations are those of one process with all rows, moments are to 1e-9.
package summary

import "github.com/seed-97356399/murmuration/peer/table"

// Bounds of a description.
const (
	DefaultLeast = 10
	MaxPaired    = 64      // columns of numbers that are correlated, the first of the table
	MaxValues    = 1 << 14 // distinct values of a category, for any to be told
	MaxTop       = 10      // values of a category that are told
)

// Summary is what is told of the rows of all members. encoding/json writes and reads it.
type Summary struct {
	Rows    int64 `json:"rows"`
	Members int   `json:"members"`
	// MemberRows has the rows of each member in the flock's order, 0 for fewer than Least.
	MemberRows []int64  `json:"member_rows"`
	Least      int      `json:"least"`
	Columns    []Column `json:"columns"`
	Target     string   `json:"target,omitempty"`
	// Classes are the rows of each class of the target, and OtherClasses those of classes too small to be told.
	Classes      []Cell `json:"classes"`
	OtherClasses int64  `json:"other_classes,omitempty"`
	// Correlations are the strongest first; Uncorrelated counts columns beyond MaxPaired.
	Correlations []Correlation `json:"correlations,omitempty"`
	Uncorrelated int           `json:"uncorrelated,omitempty"`
}

// Column is one column. Numbers or Values is nil if it is of the other kind; both if it is Withheld:
// fewer than Least rows have a value.
type Column struct {
	Name     string     `json:"name"`
	Kind     table.Kind `json:"kind"`
	Missing  int64      `json:"missing"`
	Withheld bool       `json:"withheld,omitempty"`
	*Numbers
	*Values
	Relation *Relation `json:"relation,omitempty"`
}

// Numbers is how numbers lie. Std is of a sample (divided by n−1), Skew the adjusted Fisher-Pearson
// coefficient; both are 0 of equal numbers. Min and Max are of one row each.
type Numbers struct {
	Mean      float64    `json:"mean"`
	Std       float64    `json:"std"`
	Skew      float64    `json:"skew"`
	Min       float64    `json:"min"`
	Max       float64    `json:"max"`
	Quantiles []Quantile `json:"quantiles,omitempty"` // with Least rows on both sides
	Histogram Histogram  `json:"histogram"`
}

// Quantile is the number below which a share of the rows lie, in proportion between two rows. It is
// off by at most Error.
type Quantile struct {
	Share float64 `json:"share"`
	Value float64 `json:"value"`
	Error float64 `json:"error"`
}

// Histogram has the rows from each edge to the next, the last edge included. A bin of fewer than
// Least rows, but not of none, is merged with the next.
type Histogram struct {
	Edges []float64 `json:"edges"`
	Rows  []int64   `json:"rows"`
}

// Values is how often a category has which value. Distinct is to a percent or so (linear counting: Whang
// and others, 1990); beyond MaxValues it is 0, and no value is told. Others are the rows of all but Top: 0, or Least and more.
type Values struct {
	Distinct int64  `json:"distinct"`
	Top      []Cell `json:"top"`
	Others   int64  `json:"others"`
}

// Cell is the rows of a value.
type Cell struct {
	Value string `json:"value"`
	Rows  int64  `json:"rows"`
}

// Relation is how much a column and the target tell of each other, by counts of rows in cells of both:
// numbers are in about ten bins of as many rows, and what is missing is a value.
type Relation struct {
	ChiSquared float64 `json:"chi_squared"` // Pearson, 1900
	Freedom    int     `json:"freedom"`     // its degrees of freedom
	// Information is mutual, in bits (Shannon, 1948). Share is that of the target's entropy, less what chance
	// tells (Miller, 1955): 0 to 1.
	Information float64 `json:"information"`
	Share       float64 `json:"share"`
}

// Correlation is Pearson's of two columns over the rows that have both.
type Correlation struct {
	Columns [2]string `json:"columns"`
	R       float64   `json:"r"`
	Rows    int64     `json:"rows"`
}

// Unrelated are the columns of which Relation.Share is at most the tolerance.
func (s *Summary) Unrelated(tolerance float64) (names []string) {
	for _, c := range s.Columns {
		if c.Relation != nil && c.Relation.Share <= tolerance {
			names = append(names, c.Name)
		}
	}
	return names
}
