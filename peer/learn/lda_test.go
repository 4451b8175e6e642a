package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/seed-97356399/murmuration/peer/table"
)

// letters are documents of three topics with eight words each, one or two of them in a document. Every row has the
// topics that it was drawn from in its key.
func letters(documents int) Rows {
	chance := rand.New(rand.NewPCG(3, 35))
	c := table.Column{Name: "text", Kind: table.Category}
	keys := []int64{}
	for row := range documents {
		first, second := chance.IntN(3), chance.IntN(3)
		var text strings.Builder
		for i := range 20 + chance.IntN(20) {
			topic := first
			if i%3 == 0 {
				topic = second
			}
			fmt.Fprintf(&text, "Word%c%d, ", 'A'+topic, min(chance.IntN(8), chance.IntN(8)))
		}
		c.Codes, c.Values = append(c.Codes, int32(row)), append(c.Values, text.String())
		keys = append(keys, int64(first*3+second))
	}
	return Rows{Features: &table.Batch{Rows: documents, Columns: []table.Column{c}, Keys: keys}}
}

func TestLDAIsThatOfAllRows(t *testing.T) {
	rows := letters(300)
	learner := LDA{Topics: 3, Iterations: 30, Seed: 2}
	var parts []Rows
	for i := range 4 { // of unlike size; the last has none
		parts = append(parts, part(rows, func(row int) bool { return min(row%7, 2) == i }))
	}
	a, b := fitBoth(t, learner, rows, parts...)
	alone, together := a.(*LDAModel), b.(*LDAModel)
	for k, weights := range alone.Topics {
		if !slices.Equal(weights, together.Topics[k]) {
			t.Errorf("topic %d is another than that of one process", k)
		}
	}
	// Each topic has the words of one that was drawn from, and documents have the topics that they are of.
	is := map[byte]int{}
	for k, words := range alone.TopWords(4) {
		is[words[0][4]] = k
		for _, word := range words {
			if word[:5] != words[0][:5] {
				t.Errorf("topic %d has %q and %q", k, words[0], word)
			}
		}
	}
	shares, err := alone.Predict(nil, rows.Features)
	if err != nil {
		t.Fatal(err)
	}
	for row, key := range rows.Features.Keys {
		if key/3 == key%3 && shares[row*3+is['a'+byte(key/3)]] < 0.7 {
			t.Errorf("row %d of topic %d has shares %.3v", row, key/3, shares[row*3:row*3+3])
		}
	}
}

// plainLDA is the same by the paper's formulas, a document by word by topic at a time, without the sums' rounding.
func plainLDA(documents [][]float64, lambda [][]float64, alpha, eta float64, passes int) (topics [][]float64, perplexity float64) {
	elog := func(v []float64) (out []float64) {
		for _, x := range v {
			out = append(out, mathext.Digamma(x)-mathext.Digamma(total(v)))
		}
		return out
	}
	k := len(lambda)
	bound, words := 0.0, 0.0
	for pass := range passes + 1 {
		var beta [][]float64
		next := make([][]float64, k)
		for i := range lambda {
			beta, next[i] = append(beta, elog(lambda[i])), slices.Repeat([]float64{eta}, len(lambda[i]))
		}
		for _, d := range documents {
			gamma := slices.Repeat([]float64{alpha + total(d)/float64(k)}, k)
			phi := func() (phi [][]float64, log float64) { // of each word, in all topics
				theta := elog(gamma)
				for w, n := range d {
					p := make([]float64, k)
					for i := range p {
						p[i] = math.Exp(theta[i] + beta[i][w])
					}
					sum := total(p)
					for i := range p {
						p[i] *= n / sum
					}
					phi, log = append(phi, p), log+n*math.Log(sum)
				}
				return phi, log
			}
			for range topicSteps {
				all, change := slices.Repeat([]float64{alpha}, k), 0.0
				of, _ := phi()
				for _, p := range of {
					for i, x := range p {
						all[i] += x
					}
				}
				for i := range all {
					change += math.Abs(all[i] - gamma[i])
				}
				if gamma = all; change < topicTolerance*float64(k) {
					break
				}
			}
			of, log := phi()
			for w, p := range of {
				for i, x := range p {
					next[i][w] += x
				}
			}
			if pass == passes {
				lgamma := func(x float64) float64 { y, _ := math.Lgamma(x); return y }
				bound, words = bound+log+lgamma(alpha*float64(k))-lgamma(total(gamma)), words+total(d)
				for i, e := range elog(gamma) {
					bound += (alpha-gamma[i])*e + lgamma(gamma[i]) - lgamma(alpha)
				}
			}
		}
		if pass < passes {
			lambda = next
		}
	}
	return lambda, math.Exp(-bound / words)
}

func TestLDAAsByThePaper(t *testing.T) {
	rows := letters(80)
	for _, l := range []LDA{{Topics: 3, Iterations: 12, Seed: 4}, {Topics: 5, Iterations: 8, DocumentPrior: 0.5, WordPrior: 0.01, Seed: 5}} {
		model, err := l.Fit(t.Context(), table.Alone{}, rows)
		if err != nil {
			t.Fatal(err)
		}
		m := model.(*LDAModel)
		begun := &LDAModel{Words: m.Words}
		begun.start(l.Topics, rand.New(rand.NewPCG(l.Seed, uint64(len(m.Words)))))
		found := m.documents(rows.Features)
		counts := make([][]float64, len(found))
		for row, d := range found {
			counts[row] = make([]float64, len(m.Words))
			for i, word := range d.words {
				counts[row][word] = d.counts[i]
			}
		}
		eta := l.WordPrior
		if eta == 0 {
			eta = m.Prior
		}
		topics, perplexity := plainLDA(counts, begun.Topics, m.Prior, eta, l.Iterations)
		for k := range topics {
			sameFloats(t, fmt.Sprint("topic ", k), m.Topics[k], topics[k], 1e-9)
		}
		if s, err := Evaluate(t.Context(), table.Alone{}, m, rows); err != nil || !close1(s.Words.Perplexity, perplexity, 1e-9) {
			t.Errorf("%+v, %v; want a perplexity of %v", s.Words, err, perplexity)
		}
	}
}

func TestLDAScoresDocumentsThatAreHeldOut(t *testing.T) {
	rows := letters(200)
	train, held := part(rows, func(row int) bool { return row < 140 }), part(rows, func(row int) bool { return row >= 140 })
	perplexity := func(topics int) float64 {
		m, err := LDA{Topics: topics, Iterations: 30, Seed: 2}.Fit(t.Context(), table.Alone{}, train)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Evaluate(t.Context(), table.Alone{}, m, held)
		if err != nil || s.Words.Rows != 60 || s.Words.Words < 60*5 || s.Classes != nil || s.Numbers != nil {
			t.Fatalf("%+v, %v", s.Words, err)
		}
		return s.Words.Perplexity
	}
	if one, three := perplexity(1), perplexity(3); !(three < 0.8*one) {
		t.Errorf("perplexity %v of one topic and %v of three", one, three)
	}
	// Members that hold parts have the same score.
	m, _ := LDA{Topics: 3, Seed: 2}.Fit(t.Context(), table.Alone{}, train)
	want, _ := Evaluate(t.Context(), table.Alone{}, m, held)
	table.Together(3, func(flock table.Flock, i int) {
		s, err := Evaluate(t.Context(), table.Scope(flock, "s"), m, part(held, func(row int) bool { return row%3 == i }))
		if err != nil || !close1(s.Words.Perplexity, want.Words.Perplexity, 1e-12) || s.Words.Peers != 3 {
			t.Errorf("%+v, %v; want %+v", s.Words, err, want.Words)
		}
	})
}

// Words that few documents have, or more than half of all, are left out, whoever holds the documents.
func TestLDAVocabulary(t *testing.T) {
	texts := []string{"The fish swims", "the FISH eats", "the bird eats a", "the bird sings", "the fish", "owl"}
	c := table.Column{Name: "text", Kind: table.Category, Values: texts, Codes: []int32{0, 1, 2, 3, 4, 5, 0, table.Missing}}
	rows := Rows{Features: &table.Batch{Rows: 8, Columns: []table.Column{c}}, Weight: []float64{1, 1, 1, 1, 1, 1, 2, 1}}
	a, b := fitBoth(t, LDA{Topics: 2, Iterations: 2, Floor: 2}, rows, part(rows, func(row int) bool { return row < 2 }), part(rows, func(row int) bool { return row >= 2 }))
	for _, m := range []Model{a, b} {
		if got := strings.Join(m.(*LDAModel).Words, " "); got != "bird eats swims" && got != "bird eats fish swims" {
			t.Errorf("words %q", got)
		}
	}
	first, _ := json.Marshal(a)
	if second, _ := json.Marshal(b); string(first) != string(second) {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestLDASaysWhatIsWrong(t *testing.T) {
	rows := letters(20)
	for _, c := range []struct {
		learner LDA
		rows    Rows
		says    string
	}{
		{LDA{Text: "body"}, rows, `"body" is not there`},
		{LDA{Text: "c0"}, Rows{Features: numbersBatch([][]float64{{1}})}, `"c0" has numbers`},
		{LDA{Topics: -1}, rows, "topics"}, {LDA{WordPrior: -1}, rows, "priors"}, {LDA{DocumentPrior: math.NaN()}, rows, "priors"},
		{LDA{Floor: 1000}, rows, "0 words are in 1000 documents"},
		{LDA{}, Rows{Features: rows.Features, Weight: make([]float64, 3)}, "3 weights"},
		{LDA{}, Rows{Features: rows.Features, Weight: make([]float64, 20)}, ErrNoRows.Error()},
		{LDA{}, rows.Select(func(int) bool { return false }), ErrNoRows.Error()},
		{LDA{}, Rows{}, errNoFeatures.Error()},
	} {
		if _, err := c.learner.Fit(t.Context(), table.Alone{}, c.rows); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want it to say %q", c.learner, err, c.says)
		} else if errors.Is(err, ErrRating) {
			t.Errorf("%+v: %v; these are no ratings", c.learner, err)
		}
	}
	errs := make([]error, 2)
	table.Together(2, func(flock table.Flock, i int) {
		_, errs[i] = LDA{Topics: 2 + i}.Fit(t.Context(), table.Scope(flock, "f"), rows)
	})
	if !errors.Is(errs[0], table.ErrUnlike) || !errors.Is(errs[1], table.ErrUnlike) {
		t.Errorf("%v; want ErrUnlike of both", errs)
	}
}
