package replica

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/tensor"
)

// A difference within the bound looks honest. Those of a partner that always pushes the
// same way do not look so together: the length of their sum is about the sum of their
// lengths. docs/design/007 has figures.

const (
	// biasPlaces is the number of values of the model that are watched, slicePlaces
	// that of a slice, or a little more where slices are few and unequal.
	biasPlaces, slicePlaces = 256, 64
	// maxBiases bounds the partners whose pull is known: those met last.
	maxBiases = 128
	// biasMemory is the share of both sums that each exchange leaves of those before it.
	biasMemory = 1 - 1.0/64
	// biasEnough is the number of exchanges before which a pull says nothing, and
	// oneSided the ratio above which an honest partner was never seen after them.
	biasEnough = 16
	oneSided   = 0.97
	// Of a partner with a ratio above steady less is believed, down to leastTrust of one
	// with a ratio of 1: after so many exchanges, by which models at the beginning of a run
	// do not all go one way any more.
	steadyEnough = 3
	steady       = 0.8
	leastTrust   = 0.3
)

// Bias is how one-sided the differences were that this replica has applied with a partner.
type Bias struct {
	Partner string
	// Ratio is the length of their sum over the sum of their lengths: 1 if all pointed the
	// same way, 1/√k if k of them had nothing to do with each other.
	Ratio float64
	// Exchanges is the number of those that moved anything.
	Exchanges uint64
}

// moves is by how much the values that are watched were moved in one exchange. Those of a
// slice are guarded by its lock.
type moves [biasPlaces]float64

// moved is what exchanges have made of the values that are watched, and what this side's own steps
// have since those before.
type moved struct{ drawn, own moves }

// watched are the places of values whose moves are kept, one in each of equal parts of what
// is shared.
type watched struct {
	at    []int     // within their slices
	first []int     // in at, by shared slice, and the end
	left  []float64 // the values as the last exchange has left them
}

// newWatched draws the places: who knows them can push everywhere else.
func newWatched(r *Replica, seed uint64) (w watched) {
	rng := rand.New(rand.NewPCG(seed, biasPlaces))
	total, before := r.SharedLen(), 0
	n := min(biasPlaces, slicePlaces*len(r.shared), total)
	w.at, w.left = make([]int, 0, n), make([]float64, n)
	place := func(i int) int {
		from, to := i*total/n, (i+1)*total/n
		return from + rng.IntN(to-from)
	}
	next := 0
	if n > 0 {
		next = place(0)
	}
	for _, i := range r.shared {
		w.first = append(w.first, len(w.at))
		length := r.slices[i].length
		for len(w.at) < n && next < before+length {
			w.at = append(w.at, next-before)
			if len(w.at) < n {
				next = place(len(w.at))
			}
		}
		before += length
	}
	w.first = append(w.first, len(w.at))
	for shared, i := range r.shared {
		w.mark(shared, r.of(&r.slices[i]))
	}
	return w
}

// mark takes the watched values of a shared slice as they are. The caller holds the slice's lock.
func (w *watched) mark(shared int, own tensor.Vector) {
	for i := w.first[shared]; i < w.first[shared+1]; i++ {
		w.left[i] = float64(own[w.at[i]])
	}
}

// before takes in what own steps have done to a shared slice that an exchange is to change, and after
// what that has. The caller holds the slice's lock.
func (w *watched) before(m *moved, shared int, own tensor.Vector) {
	for i := w.first[shared]; i < w.first[shared+1]; i++ {
		now := float64(own[w.at[i]])
		m.own[i] += now - w.left[i]
		w.left[i] = now
	}
}

func (w *watched) after(m *moved, shared int, own tensor.Vector) {
	for i := w.first[shared]; i < w.first[shared+1]; i++ {
		now := float64(own[w.at[i]])
		m.drawn[i] += now - w.left[i]
		w.left[i] = now
	}
}

// biases are what partners' differences come to, decayed.
type biases struct {
	watched watched
	mu      sync.Mutex
	of      []*leaning // those met last, the latest last: so few are as soon found as in a map
	own     leaning    // what this side's steps do between exchanges
}

// leaning is what those of one partner do.
type leaning struct {
	partner   string
	sum       []float64 // as many as are watched
	way       float64   // sum of their lengths
	ratio     float64   // of the length of the one to the other
	exchanges uint32
	reported  bool // that it is one-sided
}

// add takes an exchange with a partner in, and makes m ready for the next.
func (p *biases) add(partner string, m *moved) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.watched.at)
	if length := lengthOf(m.own[:n]); length > 0 {
		p.own.add(m.own[:n], length)
	}
	if length := lengthOf(m.drawn[:n]); length > 0 {
		p.met(partner).add(m.drawn[:n], length)
	}
	clear(m.own[:])
	clear(m.drawn[:])
}

// find is what is known of a partner, and its place; nil and -1 if nothing is.
func (p *biases) find(partner string) (*leaning, int) {
	for i, known := range p.of {
		if known.partner == partner {
			return known, i
		}
	}
	return nil, -1
}

// met is what is known of a partner that is met now, and so the latest from then on. Whom
// there is no room for is who was not met for the longest time.
func (p *biases) met(partner string) *leaning {
	known, at := p.find(partner)
	if known == nil {
		known = &leaning{partner: partner}
		if len(p.of) == maxBiases {
			at = 0
		}
	}
	if at >= 0 {
		p.of = slices.Delete(p.of, at, at+1)
	}
	p.of = append(p.of, known)
	return known
}

// lengthOf is 0 too of moves that are none: this side's own model may be infinite.
func lengthOf(moves []float64) float64 {
	squared := 0.0
	for _, v := range moves {
		squared += v * v
	}
	if !(squared <= math.MaxFloat64) {
		return 0
	}
	return math.Sqrt(squared)
}

// add takes moves of a length in.
func (p *leaning) add(m []float64, length float64) {
	if p.sum == nil {
		p.sum = make([]float64, len(m))
	}
	p.exchanges++
	p.way = biasMemory*p.way + length
	for i := range m {
		p.sum[i] = biasMemory*p.sum[i] + m[i]
	}
	p.ratio = lengthOf(p.sum) / p.way
}

func (p *leaning) bias() Bias {
	return Bias{Partner: p.partner, Ratio: p.ratio, Exchanges: uint64(p.exchanges)}
}

// OneSided tells of a partner's pull whether it is news that no honest partner is known to
// have one like that: it is once. Where all partners pull one way it is this model that is
// apart, or nobody trains.
func (r *Replica) OneSided(partner string) (bias Bias, news bool) {
	r.biases.mu.Lock()
	defer r.biases.mu.Unlock()
	known, _ := r.biases.find(partner)
	if known == nil || known.reported || !known.oneSided() || !slices.ContainsFunc(r.biases.of, (*leaning).manySided) {
		return Bias{}, false
	}
	known.reported = true
	return known.bias(), true
}

// trust is the share of the bounds up to which a partner is believed: 1 unless it pulls one
// way and most others do not. Where most do it is this model that is apart, and where this side's
// own steps go one way no gradient has any noise; and of a few values the pull tells nothing.
func (p *biases) trust(partner string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, _ := p.find(partner)
	if known == nil || known.exchanges < steadyEnough || len(p.watched.at) < slicePlaces || known.ratio <= steady || p.own.ratio > steady {
		return 1
	}
	others, wavering := 0, 0
	for _, other := range p.of {
		if other != known && other.exchanges >= steadyEnough {
			others++
			if other.ratio <= steady {
				wavering++
			}
		}
	}
	if 2*wavering <= others {
		return 1
	}
	return max((1-known.ratio)/(1-steady), leastTrust)
}

// oneSided tells whether all exchanges pulled one way, and manySided whether they did not;
// neither, while they are few.
func (p *leaning) oneSided() bool {
	return p.exchanges >= biasEnough && p.ratio > oneSided
}

func (p *leaning) manySided() bool {
	return p.exchanges >= biasEnough && p.ratio <= oneSided
}

// Biases are the largest, at most so many, of partners that there were enough exchanges
// with to tell, the largest first.
func (r *Replica) Biases(most int) (largest []Bias) {
	r.biases.mu.Lock()
	defer r.biases.mu.Unlock()
	for _, known := range r.biases.of {
		if known.exchanges >= biasEnough {
			largest = append(largest, known.bias())
		}
	}
	slices.SortFunc(largest, func(a, b Bias) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), cmp.Compare(a.Partner, b.Partner))
	})
	return largest[:min(len(largest), most)]
}
