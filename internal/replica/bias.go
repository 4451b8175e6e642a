package replica

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/tensor"
)

// A single difference within the bound looks honest. If a partner always pushes in one
// direction, the differences together show it: the length of their sum is about the sum of
// their lengths. docs/design/007 has figures.

const (
	// biasPlaces is the number of watched values of the model, slicePlaces the number per
	// slice, or a little more if slices are few and unequal.
	biasPlaces, slicePlaces = 256, 64
	// maxBiases bounds the partners with a known bias: those met last.
	maxBiases = 128
	// biasMemory is the factor by which each exchange decays both sums.
	biasMemory = 1 - 1.0/64
	// biasEnough is the number of exchanges below which a bias says nothing, and oneSided a
	// ratio that no honest partner was seen to exceed after so many.
	biasEnough = 16
	oneSided   = 0.97
	// For a partner with a ratio above steady the bounds shrink, down to the factor
	// leastTrust at a ratio of 1. That begins after steadyEnough exchanges, when the models
	// no longer all move in one direction, as at the beginning of a run.
	steadyEnough = 3
	steady       = 0.8
	leastTrust   = 0.3
)

// Bias is the directional bias of the differences that this replica has applied with a partner.
type Bias struct {
	Partner string
	// Ratio is the length of their sum over the sum of their lengths: 1 if all had the same
	// direction, 1/√k for k independent ones.
	Ratio float64
	// Exchanges is the number of exchanges that changed a value.
	Exchanges uint64
}

// moves is the change of the watched values in one exchange. The values of a slice are
// guarded by its lock.
type moves [biasPlaces]float64

// watched are the positions of watched values.
type watched struct {
	places
	left []float64 // the values as the last exchange has left them
}

func newWatched(r *Replica, seed uint64) watched {
	w := watched{places: newPlaces(r, seed, biasPlaces, slicePlaces)}
	w.left = make([]float64, len(w.at))
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

// changed adds to a movement how a shared slice has changed since the last call. The caller holds the slice's lock.
func (w *watched) changed(by *moves, shared int, own tensor.Vector) {
	for i := w.first[shared]; i < w.first[shared+1]; i++ {
		now := float64(own[w.at[i]])
		by[i] += now - w.left[i]
		w.left[i] = now
	}
}

// biases are the decayed sums of partners' differences.
type biases struct {
	watched watched
	mu      sync.Mutex
	of      []*leaning // those met last, the latest last; a linear search of so few is as fast as a map
	own     leaning    // the bias of this side's own steps between exchanges
}

// leaning is the bias of one partner's differences.
type leaning struct {
	partner   string
	sum       []float64 // as many as are watched
	way       float64   // sum of their lengths
	ratio     float64   // of the length of the one to the other
	exchanges uint32
	reported  bool // the one-sidedness has been reported
}

// add adds an exchange with a partner, and resets m for the next.
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

// find is the entry of a partner, and its index; nil and -1 if there is none.
func (p *biases) find(partner string) (*leaning, int) {
	for i, known := range p.of {
		if known.partner == partner {
			return known, i
		}
	}
	return nil, -1
}

// met is the entry of a partner, which becomes the latest. If there is no room, the partner
// not met for the longest time is dropped.
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

// lengthOf is 0 also for moves that are not finite, since this side's own model may be infinite.
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

// OneSided returns a partner's bias; news is true, once, if no honest partner is known to
// have such a bias. If all partners push in one direction, nothing is reported: then this
// model is the outlier, or nobody trains.
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

// trust is the factor for the bounds of a partner: 1 unless it pushes in one direction and most others do not.
// It stays 1 if most partners do, since then this model is the outlier; if this side's own steps have one
// direction, since then gradients have no noise; and if there are few values, since then the bias says nothing.
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

// oneSided tells whether the exchanges have one direction, and manySided whether they do
// not; both are false while there are few.
func (p *leaning) oneSided() bool {
	return p.exchanges >= biasEnough && p.ratio > oneSided
}

func (p *leaning) manySided() bool {
	return p.exchanges >= biasEnough && p.ratio <= oneSided
}

// Biases are at most so many biases of partners with enough exchanges, the largest first.
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
