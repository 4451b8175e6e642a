package table

// Split divides rows into those that train and those that are held out.
type Split struct {
	column     string // whose value is hashed; "" hashes or takes the row's number
	hash       bool
	of         int64
	from, upTo int64 // the parts that are held out
}

// ParseSplit reads "row:7/10" (rows whose number modulo 10 is below 7 train), "hash:7/10"
// (the same with a hash of the row's number), "hash:COLUMN:7/10" (with a hash of the column's
// value, so that rows of one value stay together), or "" (all rows train, none is held out).
func ParseSplit(text string) (Split, error) { return Split{}, errNotYet }

// ParseFolds reads "fold:5" or "fold:COLUMN:5": a split for each fold, which holds out that
// fold.
func ParseFolds(text string) ([]Split, error) { return nil, errNotYet }

// Train keeps the rows that train.
func (s Split) Train() Filter { return nil }

// Test keeps the rows that are held out.
func (s Split) Test() Filter { return nil }
