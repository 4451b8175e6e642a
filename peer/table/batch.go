package table

// Kind is what the values of a column are.
type Kind uint8

const (
	// Number is a float64; NaN is missing.
	Number Kind = iota
	// Category is one of a column's Values, or a text.
	Category
)

// Column is one column of some rows. Those who are handed one do not change it.
type Column struct {
	Name string
	Kind Kind
	// Numbers has a value for each row, if the column is of Numbers.
	Numbers []float64
	// Codes has, for each row, the place of its value in Values, and Missing where there is
	// none, if the column is of Categories.
	Codes []int32
	// Values are the distinct values that Codes count in. Batches of one Source may
	// number the same values differently; what a fitted stage gives numbers them alike.
	Values []string
}

// Missing is the code of a category that is not there.
const Missing int32 = -1

// Batch is some rows, in columns of equal length.
type Batch struct {
	Columns []Column
	Rows    int
	// First is the number of the first row in its source, from 0; rows of a batch follow one
	// another unless Numbers says each.
	First int64
	// Keys has the number of each row in its source if rows were left out; nil if they
	// follow First.
	Keys []int64
}

// Key is the number of a row in its source.
func (b *Batch) Key(row int) int64 {
	if b.Keys != nil {
		return b.Keys[row]
	}
	return b.First + int64(row)
}

// Find is the column of a name, nil if there is none.
func (b *Batch) Find(name string) *Column {
	for i := range b.Columns {
		if b.Columns[i].Name == name {
			return &b.Columns[i]
		}
	}
	return nil
}
