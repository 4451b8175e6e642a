package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// LDA finds topics: groups of words that often stand in the same document. Each document has a share of each topic
// (latent Dirichlet allocation: Blei, Ng and Jordan 2003; priors and updates are those of Hoffman, Blei and Bach
// 2010, with all documents in each pass). A pass is one sum of topics × words numbers, rounded so that it is exact in
// any order: the model is the same to the last byte however the documents are divided.
//
// A row is a document: a text in a column of categories. It is cut into lower-case words of two or more letters or
// digits. All members see the words, and in how many documents of each member a word is. Words in more than half of
// all documents are left out.
type LDA struct {
	Text       string // the column; "" is "text"
	Topics     int    // 0 is 10
	Iterations int    // passes over all documents; 0 is 20
	// DocumentPrior is added to the count of each topic in a document, WordPrior to the count of each word in a
	// topic; 0 is 1/Topics. Small priors give documents few topics, and topics few words.
	DocumentPrior, WordPrior float64
	Floor                    float64 // words in fewer documents of all members are left out; 0 is 5
	Seed                     uint64
}

// Fit makes an *LDAModel. It ignores the target.
func (l LDA) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	prior := 1 / float64(max(cmp.Or(l.Topics, 10), 1))
	l.Text, l.Topics, l.Iterations, l.Floor = cmp.Or(l.Text, "text"), cmp.Or(l.Topics, 10), cmp.Or(l.Iterations, 20), cmp.Or(l.Floor, 5)
	l.DocumentPrior, l.WordPrior = cmp.Or(l.DocumentPrior, prior), cmp.Or(l.WordPrior, prior)
	var local error
	if l.Topics < 1 || l.Iterations < 1 || !(l.Floor > 0) || !(min(l.DocumentPrior, l.WordPrior) >= leastPrior && max(l.DocumentPrior, l.WordPrior) <= maxNumber) {
		local = fmt.Errorf("learn: LDA with %+v: want topics, iterations and a floor above 0, and priors from %g to %g", l, leastPrior, maxNumber)
	}
	if err := agree(ctx, flock, cmp.Or(local, checkDocuments(rows, l.Text)), "lda", l); err != nil {
		return nil, err
	}
	m := &LDAModel{Text: l.Text, Prior: l.DocumentPrior}
	if err := l.passes(ctx, flock, m, rows); err != nil {
		return nil, fmt.Errorf("learn: topics: %w", err)
	}
	return m, m.check()
}

// Stages implements Preparer: texts stay as they are; see prepare.Plan.Only.
func (l LDA) Stages(prepare.Usual) []table.Stage { return []table.Stage{} }

// passes fits the topics, starting from random ones.
func (l LDA) passes(ctx context.Context, flock table.Flock, m *LDAModel, rows Rows) error {
	var err error
	if m.Words, err = vocabulary(ctx, flock, rows.Features.Find(l.Text), l.Floor); err != nil {
		return err
	}
	if most := maxEquations / l.Topics; len(m.Words) == 0 || len(m.Words) > most {
		return fmt.Errorf("%w: %d words are in %v documents or more; want 1 to %d", ErrSettings, len(m.Words), l.Floor, most)
	}
	documents, length := m.documents(rows.Features), make([]float64, 1)
	for row, d := range documents {
		length[0] += rows.weight(row) * d.length()
	}
	length, _, err = flock.Sum(ctx, "length", length)
	if err := cmp.Or(err, checkWeights("length", length...)); err != nil {
		return err
	}
	// Sums are whole multiples of unit and stay below 2^53 of them, so adding is exact.
	unit := powerAbove(2*length[0]) / (1 << (exactBits - 1))
	m.start(l.Topics, rand.New(rand.NewPCG(l.Seed, uint64(len(m.Words)))))
	for pass := range l.Iterations {
		t, sums := m.inference(), make([]float64, l.Topics*len(m.Words))
		for row, d := range documents {
			t.infer(d)
			t.share(d, rows.weight(row), unit, sums)
		}
		name := fmt.Sprintf("topics%d", pass)
		sums, _, err = flock.Sum(ctx, name, sums)
		if err := cmp.Or(err, table.Counts(name, 2*length[0], sums...)); err != nil {
			return err
		}
		for i, sum := range sums {
			m.Topics[i%l.Topics][i/l.Topics] = l.WordPrior + sum
		}
	}
	return nil
}

// start draws random topics that are nearly alike.
func (m *LDAModel) start(topics int, chance *rand.Rand) {
	for range topics {
		topic := make([]float64, len(m.Words))
		for i := range topic {
			topic[i] = max(1+chance.NormFloat64()/10, 0.1)
		}
		m.Topics = append(m.Topics, topic)
	}
}

const (
	leastPrior     = 1e-6
	leastChance    = 1e-100 // least probability of a word, which is a divisor
	topicSteps     = 100    // most steps that refine a document's topics
	topicTolerance = 1e-3   // the steps end when the mean change of the topics is less
)

// inference finds the topics of one document at a time; gamma and theta are those of the last one.
type inference struct {
	prior float64
	beta  []float64 // exp(E[ln of a word's share of a topic]), for each word in all topics
	gamma []float64 // parameters of the document's distribution of topics: prior plus the count of each topic
	theta []float64 // exp(E[ln of a topic's share])
}

func (m *LDAModel) inference() *inference {
	k := len(m.Topics)
	t := &inference{prior: m.Prior, beta: make([]float64, k*len(m.Words)), gamma: make([]float64, k), theta: make([]float64, k)}
	for topic, weights := range m.Topics {
		all := mathext.Digamma(total(weights))
		for word, w := range weights {
			t.beta[word*k+topic] = math.Exp(mathext.Digamma(w) - all)
		}
	}
	return t
}

// chance returns the probability of a word in the document, and the word's shares of the topics.
func (t *inference) chance(word int32) (chance float64, shares []float64) {
	k := len(t.gamma)
	shares = t.beta[int(word)*k : (int(word)+1)*k]
	return leastChance + dot(t.theta, shares), shares
}

// updateTheta computes theta from gamma.
func (t *inference) updateTheta() {
	all := mathext.Digamma(total(t.gamma))
	for i, g := range t.gamma {
		t.theta[i] = math.Exp(mathext.Digamma(g) - all)
	}
}

// infer computes gamma and theta of a document.
func (t *inference) infer(d document) {
	for i := range t.gamma {
		t.gamma[i] = t.prior + d.length()/float64(len(t.gamma))
	}
	next := make([]float64, len(t.gamma))
	for range topicSteps {
		t.updateTheta()
		clear(next)
		for i, word := range d.words {
			chance, shares := t.chance(word)
			add(next, d.counts[i]/chance, shares)
		}
		change := 0.0
		for i, n := range next {
			n = t.prior + t.theta[i]*n
			change += math.Abs(n - t.gamma[i])
			t.gamma[i] = n
		}
		if change < topicTolerance*float64(len(t.gamma)) {
			break
		}
	}
	t.updateTheta()
}

// share divides the document's words among the topics, and adds the parts to sums in whole multiples of unit.
func (t *inference) share(d document, weight, unit float64, sums []float64) {
	for i, word := range d.words {
		chance, shares := t.chance(word)
		each := weight * d.counts[i] / chance
		for topic, s := range shares {
			sums[int(word)*len(shares)+topic] += math.RoundToEven(each*t.theta[topic]*s/unit) * unit
		}
	}
}

// bound is a lower bound of the logarithm of a document's probability (Hoffman, Blei and Bach 2010); call infer
// first.
func (t *inference) bound(d document) float64 {
	lgamma := func(x float64) float64 { y, _ := math.Lgamma(x); return y }
	all := total(t.gamma)
	sum := lgamma(float64(len(t.gamma))*t.prior) - lgamma(all)
	for i, word := range d.words {
		chance, _ := t.chance(word)
		sum += d.counts[i] * math.Log(chance)
	}
	for _, g := range t.gamma {
		sum += (t.prior-g)*(mathext.Digamma(g)-mathext.Digamma(all)) + lgamma(g) - lgamma(t.prior)
	}
	return sum
}
