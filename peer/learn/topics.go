package learn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/peer/table"
)

// LDAModel gives the shares of topics in documents. All fields are the same at all members.
type LDAModel struct {
	Text  string   `json:"text"` // the column of texts
	Words []string `json:"columns"`
	// Topics has the count of each word in each topic, prior included: divided by its sum, a row gives the topic's
	// shares of words.
	Topics [][]float64 `json:"weights"`
	Prior  float64     `json:"prior"` // of the topics in a document
}

// Outputs is the number of topics.
func (m *LDAModel) Outputs() int { return len(m.Topics) }

// Predict appends the shares of all topics in each row. It ignores words that the model does not know.
func (m *LDAModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	if err := checkDocuments(Rows{Features: features}, m.Text); err != nil {
		return nil, err
	}
	t := m.inference()
	for _, d := range m.documents(features) {
		t.infer(d)
		all := total(t.gamma)
		for _, g := range t.gamma {
			dst = append(dst, g/all)
		}
	}
	return dst, nil
}

// TopWords returns the likeliest words of each topic, at most most of them.
func (m *LDAModel) TopWords(most int) (top [][]string) {
	for _, weights := range m.Topics {
		of := make(map[string]float64, len(weights))
		for i, w := range weights {
			of[m.Words[i]] = w
		}
		top = append(top, mostOf(of, most))
	}
	return top
}

func (m *LDAModel) check() error {
	if len(m.Topics) == 0 || len(m.Words) == 0 || !(m.Prior >= leastPrior && m.Prior <= maxNumber) {
		return fmt.Errorf("%d topics of %d words, prior %v", len(m.Topics), len(m.Words), m.Prior)
	}
	for i, weights := range m.Topics {
		if len(weights) != len(m.Words) || slices.ContainsFunc(weights, func(w float64) bool { return !(w >= leastPrior && w <= maxWeight) }) {
			return fmt.Errorf("topic %d does not have a weight from %g to %g of each of %d words", i, leastPrior, maxWeight, len(m.Words))
		}
	}
	return nil
}

// WordScores are scores of topics, over the documents of all members.
type WordScores struct {
	Peers int     `json:"peers"`
	Rows  float64 `json:"rows"`  // the weight of all documents
	Words float64 `json:"words"` // how many words that the model knows the documents have
	// Perplexity is exp of the mean of -ln of a word's probability, in the upper bound of Hoffman, Blei and Bach
	// (2010). If all words were equally likely, it would be their number.
	Perplexity float64 `json:"perplexity"`
}

// words scores documents.
func (m *LDAModel) words(ctx context.Context, flock table.Flock, rows Rows) (WordScores, error) {
	if err := agree(ctx, flock, checkDocuments(rows, m.Text)); err != nil {
		return WordScores{}, err
	}
	t, sums := m.inference(), make([]float64, 3)
	for row, d := range m.documents(rows.Features) {
		t.infer(d)
		sums[0] += rows.weight(row)
		sums[1] += rows.weight(row) * d.length()
		sums[2] += rows.weight(row) * t.bound(d)
	}
	sums, peers, err := flock.Sum(ctx, "perplexity", sums)
	if err == nil {
		err = checkWeights("perplexity", sums[1])
	}
	if err != nil {
		return WordScores{}, fmt.Errorf("learn: evaluating: %w", err)
	}
	s := WordScores{Peers: peers, Rows: sums[0], Words: sums[1], Perplexity: math.Exp(-sums[2] / sums[1])}
	return s, checkFinite([]float64{s.Perplexity})
}

// document has the words of a text, by their places in the vocabulary, with their counts.
type document struct {
	words  []int32
	counts []float64
}

func (d document) length() float64 { return total(d.counts) }

// checkDocuments returns an error if texts or weights are invalid.
func checkDocuments(rows Rows, text string) error {
	if rows.Features == nil {
		return errNoFeatures
	}
	switch c := rows.Features.Find(text); {
	case c == nil:
		return fmt.Errorf("learn: column %q is not there: %w", text, table.ErrNoColumn)
	case c.Kind != table.Category:
		return fmt.Errorf("learn: column %q has numbers, where texts are wanted; read it as a category: %w", text, table.ErrTargetKind)
	}
	return checkRowWeights(rows)
}

// documents returns the document of each row. The caller has checked that the column exists.
func (m *LDAModel) documents(b *table.Batch) []document {
	place := make(map[string]int32, len(m.Words))
	for i, word := range m.Words {
		place[word] = int32(i)
	}
	c := b.Find(m.Text)
	all, texts := make([]document, 0, b.Rows), make(map[int32]document)
	for _, code := range c.Codes {
		d, known := texts[code]
		if !known && code >= 0 {
			counts := map[int32]float64{}
			for _, word := range wordsOf(c.Values[code]) {
				if i, known := place[word]; known {
					counts[i]++
				}
			}
			for _, word := range slices.Sorted(maps.Keys(counts)) {
				d.words, d.counts = append(d.words, word), append(d.counts, counts[word])
			}
			texts[code] = d
		}
		all = append(all, d)
	}
	return all
}

// wordsOf cuts a text.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(words, func(word string) bool { return utf8.RuneCountInString(word) < 2 })
}

// wordCounts is what a member sends about its words: for each, the number of its documents that have it.
type wordCounts struct {
	Rows  float64
	Words map[string]float64
}

// vocabulary returns, sorted, the words that are in at least floor documents of all members and in at most half of
// them. A member with more than maxNames words sends its most frequent ones.
func vocabulary(ctx context.Context, flock table.Flock, texts *table.Column, floor float64) ([]string, error) {
	own, all := wordCounts{Words: map[string]float64{}}, wordCounts{Words: map[string]float64{}}
	rows, _ := texts.Uses()
	for code, n := range rows {
		own.Rows += float64(n)
		words := wordsOf(texts.Values[code])
		slices.Sort(words)
		for _, word := range slices.Compact(words) {
			if n > 0 {
				own.Words[word] += float64(n)
			}
		}
	}
	for _, word := range mostOf(own.Words, len(own.Words))[min(len(own.Words), maxNames):] {
		delete(own.Words, word)
	}
	gathered, err := table.GatherJSON(ctx, flock, "vocabulary", own)
	if err != nil {
		return nil, err
	}
	for _, theirs := range gathered {
		if err := cmp.Or(table.Counts("vocabulary", table.MaxCount, theirs.Rows), table.Counts("vocabulary", theirs.Rows, slices.Collect(maps.Values(theirs.Words))...)); err != nil {
			return nil, err
		}
		all.Rows += theirs.Rows
		for word, n := range theirs.Words {
			all.Words[word] += n
		}
	}
	if all.Rows == 0 {
		return nil, ErrNoRows
	}
	for word, n := range own.Words {
		if all.Words[word] < n {
			return nil, fmt.Errorf("%w: the words of all members lack %q of this one", table.ErrSum, word)
		}
	}
	maps.DeleteFunc(all.Words, func(_ string, n float64) bool { return n < floor || n > max(all.Rows/2, floor) })
	return slices.Sorted(maps.Keys(all.Words)), nil
}

// mostOf returns the most frequent words, at most most of them.
func mostOf(counts map[string]float64, most int) []string {
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return words[:min(len(words), most)]
}
