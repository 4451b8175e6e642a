package replica

import (
	"sync"

	"github.com/seed-97356399/murmuration/internal/harm"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// judgePlaces is the number of values at which partners are judged, judgeSlicePlaces that of
	// a slice.
	judgePlaces, judgeSlicePlaces = 2048, 512
	// judgeShare is one over the share of the model that is looked at where that is less, and
	// fewPlaces what is looked at in any case: exchanges of small models are short.
	judgeShare, fewPlaces = 16, 256
)

// judgedPlaces draws the places at which partners are judged.
func judgedPlaces(r *Replica, seed uint64) places {
	most := min(judgePlaces, max(r.SharedLen()/judgeShare, fewPlaces))
	return newPlaces(r, seed, most, judgeSlicePlaces).learned(r.layout)
}

// Judgement is what partners' exchanges do to this side's own loss. It is safe for concurrent
// use.
type Judgement struct {
	places places // of values that have gradients
	mu     sync.Mutex
	judge  harm.Judge
	step   []float32 // at the places
}

// felt is what an exchange moves at the places. Those of a slice are guarded by its lock.
type felt []float32

// count adds the values of a shared slice, times sign: before it is changed −1, and after 1.
// The caller holds the slice's lock.
func (j *Judgement) count(f felt, shared int, own tensor.Vector, sign float32) {
	for i := j.places.first[shared]; i < j.places.first[shared+1]; i++ {
		f[i] += sign * own[j.places.at[i]]
	}
}

// met takes in what an exchange has moved.
func (j *Judgement) met(partner string, f felt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judge.Met(partner, f)
}

// forget judges nobody by exchanges of a model that is replaced.
func (j *Judgement) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judge.Forget()
}

func (j *Judgement) trust(partner string) float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Trust(partner)
}

// ByGradient judges the last exchanges by a gradient at parameters that the replica has
// lent. Every step calls this or ByStep.
func (j *Judgement) ByGradient(grad tensor.Vector) { j.by(-1, grad, nil) }

// ByStep is ByGradient where somebody else has made a step of it: from one model to another;
// from nil, to is the way itself.
func (j *Judgement) ByStep(from, to tensor.Vector) { j.by(1, to, from) }

// by judges by sign times the way to a vector, from another or from zero.
func (j *Judgement) by(sign float32, to, from tensor.Vector) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.step == nil {
		j.step = make([]float32, len(j.places.overall))
	}
	for i, at := range j.places.overall {
		way := to[at]
		if from != nil {
			way -= from[at]
		}
		j.step[i] = sign * way
	}
	j.judge.Step(j.step)
}

// Distrusted tells once of a partner that it has lost most of its trust for the harm that it does.
func (j *Judgement) Distrusted(partner string) (harm.Harm, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Distrusted(partner)
}

// GraveHarm is a *harm.Error if a partner is to be quarantined for the harm that it does, else nil.
func (j *Judgement) GraveHarm(partner string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.judge.GraveHarm(partner); e != nil {
		return e
	}
	return nil
}

// Harms are those of the partners, at most so many, the least trusted first.
func (j *Judgement) Harms(most int) []harm.Harm {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Harms(most)
}
