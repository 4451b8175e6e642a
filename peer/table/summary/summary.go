// Package summary describes the rows of all members of a flock by sums: how many there are, and how the values of
// each column are distributed. No row leaves its member, and all members get the same bytes. Counts, quantiles and
// relations are those of one process with all rows; moments agree to 1e-9.
package summary

import "github.com/seed-97356399/murmuration/peer/table"

// Bounds of a description.
const (
	DefaultLeast = 10
	MaxPaired    = 64      // columns of numbers that are correlated: the first of the table
	MaxValues    = 1 << 14 // distinct values of a category; with more, none is shown
	MaxTop       = 10      // values of a category that are shown
)

// Summary describes the rows of all members. encoding/json writes and reads it.
type Summary struct {
	Rows    int64 `json:"rows"`
	Members int   `json:"members"`
	// MemberRows has the rows of each member in the flock's order; 0 for fewer than Least.
	MemberRows []int64  `json:"member_rows"`
	Least      int      `json:"least"`
	Columns    []Column `json:"columns"`
	Target     string   `json:"target,omitempty"`
	// Classes are the rows of each class of the target; OtherClasses are the rows of classes too small to be shown.
	Classes      []Cell `json:"classes"`
	OtherClasses int64  `json:"other_classes,omitempty"`
	// Correlations are in descending order of strength; Uncorrelated counts columns beyond MaxPaired.
	Correlations []Correlation `json:"correlations,omitempty"`
	Uncorrelated int           `json:"uncorrelated,omitempty"`
}

// Column is one column. For its kind, Numbers or Values is set; both are nil if it is Withheld: fewer than Least rows
// have a value.
type Column struct {
	Name     string     `json:"name"`
	Kind     table.Kind `json:"kind"`
	Missing  int64      `json:"missing"`
	Withheld bool       `json:"withheld,omitempty"`
	*Numbers
	*Values
	Relation *Relation `json:"relation,omitempty"`
}

// Numbers is the distribution of numbers. Std is that of a sample (divided by n−1), Skew the adjusted Fisher-Pearson
// coefficient; both are 0 if all numbers are equal. Min and Max are of single rows.
type Numbers struct {
	Mean      float64    `json:"mean"`
	Std       float64    `json:"std"`
	Skew      float64    `json:"skew"`
	Min       float64    `json:"min"`
	Max       float64    `json:"max"`
	Quantiles []Quantile `json:"quantiles,omitempty"` // with Least rows on both sides
	Histogram Histogram  `json:"histogram"`
}

// Quantile is the number below which a share of the rows are, interpolated between two rows. Its error is at most
// Error.
type Quantile struct {
	Share float64 `json:"share"`
	Value float64 `json:"value"`
	Error float64 `json:"error"`
}

// Histogram has the rows from each edge to the next, the last edge included. A bin with fewer than Least rows is
// merged with the next, unless it is empty.
type Histogram struct {
	Edges []float64 `json:"edges"`
	Rows  []int64   `json:"rows"`
}

// Values are the values of a category with their rows. Distinct is accurate to about a percent (linear counting:
// Whang and others, 1990); beyond MaxValues it is 0, and no value is shown. Others are the rows of all values except
// Top: 0, or at least Least.
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

// Relation is how strongly a column and the target depend on each other, by counts of rows in cells of both. Numbers
// are in about ten bins of as many rows, and a missing value counts as a value.
type Relation struct {
	ChiSquared float64 `json:"chi_squared"` // Pearson, 1900
	Freedom    int     `json:"freedom"`     // its degrees of freedom
	// Information is the mutual information in bits (Shannon, 1948). Share is its share of the target's entropy,
	// minus the share expected by chance (Miller, 1955): 0 to 1.
	Information float64 `json:"information"`
	Share       float64 `json:"share"`
}

// Correlation is Pearson's correlation of two columns, over the rows in which both have values.
type Correlation struct {
	Columns [2]string `json:"columns"`
	R       float64   `json:"r"`
	Rows    int64     `json:"rows"`
}

// Unrelated returns the columns whose Relation.Share is at most the tolerance.
func (s *Summary) Unrelated(tolerance float64) (names []string) {
	for _, c := range s.Columns {
		if c.Relation != nil && c.Relation.Share <= tolerance {
			names = append(names, c.Name)
		}
	}
	return names
}
