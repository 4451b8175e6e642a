package table

import (
	"fmt"
	"strconv"
	"strings"
)

// Split divides rows into those that train and those that are held out. Each row belongs to
// one of a number of parts, whichever file or peer it is in: by its number, by a hash of
// its number, or by a hash of a column's value.
//
// Hashes stay as they are in later versions: FNV-1a of 64 bits of a value's text (a number as
// strconv.FormatFloat(v, 'g', -1, 64) writes it), or the row's number; then, of this and a
// constant, the finalizer of SplitMix64; then the rest modulo the parts. For a row without a
// value its number is used.
type Split struct {
	column string
	by     splitBy
	salt   uint64
	of     int64
	// from and below are the parts that are held out.
	from, below int64
}

type splitBy uint8

const (
	byNothing splitBy = iota // all rows train
	byRow
	byHash
)

// Salts that make hashes for different purposes differ.
const (
	splitSalt = 0x73706c6974
	foldSalt  = 0x666f6c64
	shardSalt = 0x7368617264
)

// Bounds of what is parsed.
const (
	maxParts = 1_000_000
	maxFolds = 1000
)

// ParseSplit reads "row:7/10" (rows whose number modulo 10 is below 7 train), "hash:7/10"
// (the same with a hash of the row's number), "hash:COLUMN:7/10" (with a hash of the column's
// value, so that rows of one value stay together), or "" (all rows train, none is held out).
func ParseSplit(text string) (Split, error) {
	if text == "" {
		return Split{}, nil
	}
	by, column, share := cutSplit(text)
	s := Split{column: column, salt: splitSalt}
	switch {
	case by == "row" && column == "":
		s.by = byRow
	case by == "hash":
		s.by = byHash
	default:
		return Split{}, fmt.Errorf("the split %q is none: %s", text, splits)
	}
	train, of, ok := strings.Cut(share, "/")
	var errTrain, errOf error
	s.from, errTrain = strconv.ParseInt(train, 10, 64)
	s.of, errOf = strconv.ParseInt(of, 10, 64)
	if !ok || errTrain != nil || errOf != nil || s.from < 1 || s.from >= s.of || s.of > maxParts {
		return Split{}, fmt.Errorf("the split %q has no share such as 7/10, of at most %d parts: %s", text, maxParts, splits)
	}
	s.below = s.of
	return s, nil
}

const splits = `want "row:7/10", "hash:7/10" or "hash:COLUMN:7/10"`

// ParseFolds reads "fold:5" (by a hash of the row's number) or "fold:COLUMN:5" (by a hash of
// the column's value): a split for each fold, which holds out that fold.
func ParseFolds(text string) ([]Split, error) {
	by, column, count := cutSplit(text)
	k, err := strconv.ParseInt(count, 10, 64)
	if by != "fold" || err != nil || k < 2 || k > maxFolds {
		return nil, fmt.Errorf(`the folds %q are none: want "fold:5" or "fold:COLUMN:5", from 2 to %d`, text, maxFolds)
	}
	folds := make([]Split, k)
	for i := range folds {
		folds[i] = Split{column: column, by: byHash, salt: foldSalt, of: k, from: int64(i), below: int64(i) + 1}
	}
	return folds, nil
}

// cutSplit cuts "BY:COLUMN:REST" or "BY:REST"; a column's name may have colons.
func cutSplit(text string) (by, column, rest string) {
	by, rest, _ = strings.Cut(text, ":")
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		return by, rest[:i], rest[i+1:]
	}
	return by, "", rest
}

// Train keeps the rows that train.
func (s Split) Train() Filter { return s.filter(false) }

// Test keeps the rows that are held out.
func (s Split) Test() Filter { return s.filter(true) }

func (s Split) filter(test bool) Filter {
	return func(b *Batch) (*Batch, error) {
		if s.by == byNothing {
			if test {
				return b.Pick(nil), nil
			}
			return b, nil
		}
		part, err := s.parts(b)
		if err != nil {
			return nil, err
		}
		return b.Keep(func(row int) bool {
			p := part(row)
			return (p >= s.from && p < s.below) == test
		}), nil
	}
}

// parts tells the part of each row of a batch.
func (s Split) parts(b *Batch) (func(row int) int64, error) {
	if s.by == byRow {
		return func(row int) int64 { return b.Key(row) % s.of }, nil
	}
	ofRow := func(row int) int64 { return int64(hashRow(b.Key(row), s.salt) % uint64(s.of)) }
	if s.column == "" {
		return ofRow, nil
	}
	c := b.Find(s.column)
	if c == nil {
		return nil, fmt.Errorf("splitting by a hash of column %q: %w", s.column, ErrNoColumn)
	}
	return byValue(c, func(text string) int64 { return int64(hashText(text, s.salt) % uint64(s.of)) }, ofRow), nil
}

// hashRow is a hash of a row's number.
func hashRow(key int64, salt uint64) uint64 { return Mix(uint64(key) ^ Mix(salt)) }

// hashText is a hash of a value.
func hashText(text string, salt uint64) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return Mix(h ^ Mix(salt))
}

// Mix is a step of SplitMix64, in this release and later ones.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// byValue returns a function of rows that depends on the value in a column, computed once for
// each value; or on the row if it has no value.
func byValue[T any](c *Column, of func(text string) T, missing func(row int) T) func(row int) T {
	if c.Kind == Number {
		c = c.asCategory()
	}
	known, done := make([]T, len(c.Values)), make([]bool, len(c.Values))
	return func(row int) T {
		code := c.Codes[row]
		if code == Missing {
			return missing(row)
		}
		if !done[code] {
			known[code], done[code] = of(c.Values[code]), true
		}
		return known[code]
	}
}
