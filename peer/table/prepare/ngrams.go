package prepare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/seed-97356399/murmuration/peer/table"
)

// NGrams replaces each column of texts by a number of columns. A hash puts each n-gram of the text
// (1 to Words words, and 3 to Letters letters within words) into one of them; the columns count
// n-grams, scaled to length 1. Members need not agree on n-grams.
type NGrams struct {
	// Columns are those that are texts; none are all categories.
	Columns []string `json:"columns,omitempty"`
	// Words and Letters are the longest runs. Default, if both are 0: 2 words, no letters.
	Words   int `json:"words,omitempty"`
	Letters int `json:"letters,omitempty"`
	// Count is how many columns each text becomes. Default: 64.
	Count int `json:"count,omitempty"`
	// Learned are the columns there are.
	Learned map[string]bool `json:"learned,omitempty"`
}

const (
	leastLetters = 3
	maxRun       = 8
)

// Fit implements table.Stage.
func (s *NGrams) Fit(ctx context.Context, flock table.Flock, rows table.Source) (err error) {
	if s.Words == 0 && s.Letters == 0 {
		s.Words = 2
	}
	s.Learned = nil
	if s.Learned, err = columnsOf(ctx, flock, rows, s.Columns, table.Category, s.check(), s.Words, s.Letters, s.Count); err != nil {
		return err
	}
	return s.check()
}

func (s *NGrams) check() error {
	fault := bucketsOf(&s.Count, len(s.Learned))
	if s.Words < 0 || s.Words > maxRun || s.Letters != 0 && (s.Letters < leastLetters || s.Letters > maxRun) {
		fault = errors.Join(fmt.Errorf("n-grams: %d words, %d letters: want at most %d of both, and %d letters or more, or none", s.Words, s.Letters, maxRun, leastLetters), fault)
	}
	return fault
}

// Transform implements table.Stage.
func (s *NGrams) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Category, s.Learned, func(c *table.Column, _ bool) []table.Column {
		return hashed(c, s.Count, s.of)
	})
}

// of returns the values of a text in its columns.
func (s *NGrams) of(text string) (shares []placed) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	counts, squares := make(map[int]float64), 0.0
	add := func(gram string) { counts[bucket(gram, s.Count)]++ }
	for i := range words {
		for n := 1; n <= s.Words && i+n <= len(words); n++ {
			add(strings.Join(words[i:i+n], " "))
		}
		letters := []rune("^" + words[i] + "$")
		for n := leastLetters; n <= s.Letters; n++ {
			for at := 0; at+n <= len(letters); at++ {
				add("\x00" + string(letters[at:at+n]))
			}
		}
	}
	for _, n := range counts {
		squares += n * n
	}
	shares = make([]placed, 0, len(counts))
	for place, n := range counts {
		shares = append(shares, placed{place, n / math.Sqrt(squares)})
	}
	return shares
}
