package harm

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxPartners bounds the partners that are judged: those met last.
	maxPartners = 128
	// maxWaiting bounds the exchanges that wait for steps. The oldest is judged by those that
	// have come.
	maxWaiting = 8
	// steps is the number that judge an exchange. Later ones see what own steps have made of
	// it.
	steps = 4
	// memory is the share of what is known that an exchange with the partner leaves.
	memory = 1 - 1.0/64
	// wholeShare is how many times shorter than the longest lately an exchange may be and count in
	// full.
	wholeShare = 4
	// A partner is trusted less, and others are compared with it, after few exchanges; something is
	// said of it after enough, and it is quarantined after many.
	few, enough, many = 3, 4, 8
	// prior is the number of a partner's own exchanges that the spread of the others' counts as: a few
	// may be alike by chance.
	prior = 4
	// blatant is how many times as far against the loss as those of the others go either way exchanges
	// point of which a few are enough.
	blatant = 2
	// leastPrior is the share of the spread of its own exchanges that the others' counts as at least:
	// others may be alike on purpose.
	leastPrior = 0.25
	// leastNoise is how much of a step has to be new: less is a gradient without noise, and
	// all partners whose data are unlike go steadily against that.
	leastNoise = 0.1
	// othersSlack is how many times as far against the loss as those of the other partners
	// exchanges may point before it counts: data that are unlike pull against it too.
	othersSlack = 3
	// A partner is trusted in full up to the score doubtful, and to leastTrust from beyond on. That
	// of an honest partner whose exchanges neither help nor harm is above doubtful by chance now and
	// then, and beyond next to never.
	doubtful, beyond = 1.25, 2.75
	leastTrust       = 0.05
	// A partner is named once it has the least trust, or no more than named and a harm of notable.
	// By chance alone one of a few honest partners has lost half of its trust now and then.
	named, notable = 0.25, 0.5
	// From a harm of grave with a score of certain on a partner is to be quarantined.
	grave, certain = 2.25, 2.5
	// mostUnits bounds how many times as much as with others an exchange counts: others may move
	// next to nothing on purpose.
	mostUnits = 4
)

// Judge keeps what one peer knows of its partners. The zero value is ready.
type Judge struct {
	waiting []exchange // the oldest first
	spare   [][]float32
	known   []*partner // the one met last comes last: so few are as soon found as in a map
	step    []float32  // the last
	fresh   []float32  // what is new in it
}

// exchange is one that steps are to judge.
type exchange struct {
	with    *partner
	moved   []float32
	length  float64
	trust   float64 // that the partner had
	steps   int
	cosines float64 // of moved and what is against the steps, together
	rises   float64 // of the loss, by moved, for a gradient of length 1, together
}

// partner is what is known of one. All sums fade with each exchange.
type partner struct {
	name      string
	exchanges uint64
	longest   float64 // way that an exchange would have moved in full trust, fading
	cosines   sum     // above zero, exchanges went against own steps
	excess    float64 // of the cosines over what is allowed, never below zero (Page, 1954)
	spread    float64 // squares of the cosines as they count in excess
	rises     sum     // of the loss, since the partner was quarantined if it was
	reported  bool    // that it is distrusted
}

// sum is of numbers and their squares, with how many these are. All fade.
type sum struct{ weight, total, squares float64 }

func (s *sum) add(x, share, kept float64) {
	s.weight = kept*s.weight + share
	s.total = kept*s.total + share*x
	s.squares = kept*s.squares + share*x*x
}

// Met takes in what an exchange has moved. It keeps a copy.
func (j *Judge) Met(name string, moved []float32) {
	length := norm(moved)
	if !(length > 0) {
		return
	}
	if len(j.waiting) == maxWaiting {
		j.settle()
	}
	var kept []float32
	if last := len(j.spare) - 1; last >= 0 {
		kept, j.spare = j.spare[last], j.spare[:last]
	}
	with := j.meet(name)
	j.waiting = append(j.waiting, exchange{with: with, moved: append(kept[:0], moved...), length: length, trust: j.trust(with)})
}

// norm is 0 too of what is not finite.
func norm(v []float32) float64 {
	squared := dot(v, v)
	if !(squared <= math.MaxFloat64) {
		return 0
	}
	return math.Sqrt(squared)
}

// dot is the product of two vectors of one length. Four sums at once, since each waits for its own
// last addition.
func dot(x, y []float32) float64 {
	var a, b, c, d float64
	for y = y[:len(x)]; len(x) >= 4; x, y = x[4:], y[4:] {
		a += float64(x[0]) * float64(y[0])
		b += float64(x[1]) * float64(y[1])
		c += float64(x[2]) * float64(y[2])
		d += float64(x[3]) * float64(y[3])
	}
	for i := range x {
		a += float64(x[i]) * float64(y[i])
	}
	return a + b + c + d
}

// meet is what is known of a partner that is met now. Who was not met for the longest time
// makes room.
func (j *Judge) meet(name string) *partner {
	at := slices.IndexFunc(j.known, func(p *partner) bool { return p.name == name })
	if at < 0 {
		if len(j.known) == maxPartners {
			j.known = slices.Delete(j.known, 0, 1)
		}
		j.known = append(j.known, &partner{name: name})
		return j.known[len(j.known)-1]
	}
	met := j.known[at]
	j.known = append(slices.Delete(j.known, at, at+1), met)
	return met
}

func (j *Judge) find(name string) *partner {
	for _, p := range j.known {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Step judges the exchanges that wait by a step: which way samples draw the model that none
// of these has seen. It is called for every step, in order, one as long as the other; one that is
// zero or not finite is none.
//
// Exchanges undo much of the noise of one's own steps before them, and a step with momentum
// repeats those. What is judged by is what a step does not have in common with the one before.
func (j *Judge) Step(step []float32) {
	if len(j.step) != len(step) {
		j.step, j.fresh = make([]float32, len(step)), make([]float32, len(step))
	}
	whole := norm(step)
	if whole == 0 {
		return
	}
	if len(j.waiting) > 0 {
		j.renew(step)
		if fresh := norm(j.fresh); fresh > leastNoise*whole {
			j.judge(fresh)
		} else {
			j.discard()
		}
	}
	copy(j.step, step)
}

// renew makes fresh of a step what is at right angles to the last one.
func (j *Judge) renew(step []float32) {
	share := float32(0)
	if squared := dot(j.step, j.step); squared > 0 {
		share = float32(dot(j.step, step) / squared)
	}
	for i, before := range j.step {
		j.fresh[i] = step[i] - share*before
	}
}

// judge takes in by how much what was moved goes against what is fresh, of that length.
func (j *Judge) judge(length float64) {
	for i := range j.waiting {
		e := &j.waiting[i]
		rise := -dot(e.moved, j.fresh) / length
		e.steps++
		e.rises += rise
		e.cosines += rise / e.length
	}
	for len(j.waiting) > 0 && j.waiting[0].steps == steps {
		j.settle()
	}
}

// Forget judges nobody by what has been met so far, and takes the next step for the first: the
// model is another.
func (j *Judge) Forget() {
	j.discard()
	clear(j.step)
}

// discard judges nobody by the exchanges that wait.
func (j *Judge) discard() {
	for _, e := range j.waiting {
		j.spare = append(j.spare, e.moved)
	}
	j.waiting = j.waiting[:0]
}

// settle takes the judgement of the oldest exchange in.
func (j *Judge) settle() {
	e := j.waiting[0]
	j.waiting = slices.Delete(j.waiting, 0, 1)
	j.spare = append(j.spare, e.moved)
	if e.steps == 0 {
		return
	}
	n := float64(e.steps)
	e.with.add(e.cosines/n, e.rises/n, e.with.share(e.length/e.trust), j.others(e.with, (*partner).against))
}

// share is that of a whole exchange that one counts as, by how far it would have moved in full
// trust: by exchanges that move next to nothing nobody is to win trust.
func (p *partner) share(length float64) float64 {
	p.longest = max(length, memory*p.longest)
	return min(1, wholeShare*length/p.longest)
}

// add takes in an exchange, or a share of one; others is how far those with most others go
// against the loss.
func (p *partner) add(cosine, rise, share, others float64) {
	p.exchanges++
	kept := math.Pow(memory, share)
	p.cosines.add(cosine, share, kept)
	p.rises.add(rise, share, kept)
	p.spread = kept*p.spread + share*share*cosine*cosine
	p.excess = kept * p.excess
	if !math.IsNaN(others) {
		p.excess = max(0, p.excess+share*(cosine-othersSlack*max(0, others)))
	}
}

// comparable tells whether others are compared with the partner, and known whether enough of its
// exchanges were judged, since it was quarantined if it was, to say something of it.
func (p *partner) comparable() bool { return p.cosines.weight > few-1 }
func (p *partner) known() bool      { return p.rises.weight > enough-1 }

// against is how far exchanges go against the loss, −1 to 1, variance the spread of that, and usual
// what one changes the loss by.
func (p *partner) against() float64 { return p.cosines.total / p.cosines.weight }
func (p *partner) usual() float64   { return math.Sqrt(p.rises.squares / max(p.rises.weight, 1)) }
func (p *partner) variance() float64 {
	c := p.cosines
	return max(0, c.squares-c.total*c.total/c.weight) / max(c.weight-1, 1)
}

// square is the mean square of the cosines.
func (p *partner) square() float64 { return p.cosines.squares / p.cosines.weight }

// score is how many standard deviations beyond chance exchanges with a partner go against the
// loss, by what is chance among its own: no more than the root of their number.
func (p *partner) score() float64 {
	if p.excess == 0 || !p.comparable() {
		return 0
	}
	return p.excess / math.Sqrt(p.spread)
}

// swiftScore is score too by what is chance among those with the others, of a partner whose exchanges
// go against the loss much farther than those go either way: then a few are enough.
func (j *Judge) swiftScore(p *partner) float64 {
	score := p.score()
	usual := max(j.others(p, (*partner).square), leastPrior*p.variance()) // NaN if all others were forgotten
	if against := p.against(); score > 0 && against > 0 && against*against > blatant*blatant*usual {
		n := p.cosines.weight
		score = max(score, p.excess/math.Sqrt(n*(n*p.variance()+prior*usual)/(n+prior)))
	}
	return score
}

// others is the upper median of something over the other partners, NaN if none is known: a few
// that do nothing are not to make the rest look bad.
func (j *Judge) others(p *partner, of func(*partner) float64) float64 {
	var all [maxPartners]float64
	n := 0
	for _, other := range j.known {
		if other != p && other.comparable() {
			all[n] = of(other)
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(all[:n])
	return all[n/2]
}

// Trust is the share of the clipping bounds that a partner has.
func (j *Judge) Trust(name string) float64 {
	if p := j.find(name); p != nil {
		return j.trust(p)
	}
	return 1
}

func (j *Judge) trust(p *partner) float64 {
	return min(max(1-(j.swiftScore(p)-doubtful)/(beyond-doubtful), leastTrust), 1)
}

// Distrusted tells once of a partner that it has lost most of its trust, and does harm.
func (j *Judge) Distrusted(name string) (Harm, bool) {
	p := j.find(name)
	if p == nil || p.reported || !p.known() || j.trust(p) > named {
		return Harm{}, false
	}
	harm := j.harm(p)
	p.reported = harm.Harm >= notable || harm.Trust <= leastTrust
	return harm, p.reported
}

// GraveHarm is an error if a partner is to be quarantined, nil if not. It has to do as much
// harm again for the next.
func (j *Judge) GraveHarm(name string) *Error {
	p := j.find(name)
	if p == nil || p.rises.weight <= many-1 || p.score() < certain {
		return nil
	}
	harm := j.harm(p)
	if !(harm.Harm >= grave) {
		return nil
	}
	p.rises = sum{}
	return &Error{harm}
}

func (j *Judge) harm(p *partner) Harm {
	unit := max(j.others(p, (*partner).usual), p.usual()/mostUnits) // NaN where nobody else is known
	harm := p.rises.total / max(p.rises.weight, 1) / unit
	if !(math.Abs(harm) <= math.MaxFloat64) {
		harm = 0
	}
	return Harm{Partner: p.name, Harm: harm, Trust: j.trust(p), Exchanges: p.exchanges}
}

// Harms are those of the partners that enough is known of, at most so many: those that are
// trusted least first, then those that do most harm.
func (j *Judge) Harms(most int) (all []Harm) {
	for _, p := range j.known {
		if p.known() {
			all = append(all, j.harm(p))
		}
	}
	slices.SortFunc(all, func(a, b Harm) int {
		return cmp.Or(cmp.Compare(a.Trust, b.Trust), cmp.Compare(b.Harm, a.Harm), cmp.Compare(a.Partner, b.Partner))
	})
	return all[:min(len(all), most)]
}
