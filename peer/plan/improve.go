package plan

import (
	"math"
	"slices"
)

// Bounds of the changes.
const (
	fewSeats   = 200    // for a fit, an evaluation or a sample of an epoch, at a member: up to which a schedule is changed
	maxChanges = 20_000 // that are looked at
	kicks      = 60     // times that a good schedule is changed for the worse, and improved again
	kick       = 3      // changes in each
)

// draft is a schedule that is being changed.
type draft struct {
	*problem
	lists [][]piece // by member, in order; the last is of samples that may be done and are not
	sums  []sum     // by member
	value value
}

// piece is samples of a job in a row; a fit or evaluation counts as one.
type piece struct{ job, samples int }

// sum is what a member's list comes to; late is the longest by which it misses a deadline.
type sum struct{ end, busy, late float64 }

// value is what a schedule is judged by, what counts most first: the longest by which a deadline is missed, the cost, and
// how uneven the lists are, so that there is a way from a schedule in which several end last.
type value [3]float64

func (v value) less(o value) bool { return slices.Compare(v[:], o[:]) < 0 }

// improve changes a small schedule as long as a change makes it better, and again from schedules that are a few changes
// away from the best. Where samples are many, pouring them is fine enough.
func (p *problem) improve(spans []span) []span {
	seats := 0
	for _, j := range p.jobs {
		if seats++; !j.whole() {
			seats += j.most - 1
		}
		if seats > fewSeats/len(p.members) {
			return spans
		}
	}
	looks := maxChanges
	best, draw := newDraft(p, spans).improved(&looks), uint64(1)
	for n := 0; n < kicks && looks > 0; n++ {
		next := best
		for range kick {
			if all := next.changes(); len(all) > 0 {
				draw = draw*6364136223846793005 + 1442695040888963407 // the same at all, whatever their release of Go
				next = next.after(all[draw>>33%uint64(len(all))])
			}
		}
		if next = next.improved(&looks); next.value.less(best.value) {
			best = next
		}
	}
	return best.spans()
}

// improved makes the first change that makes it better, as long as there is one and changes may be looked at.
func (d *draft) improved(looks *int) *draft {
	all := d.changes()
	for n := 0; n < len(all) && *looks > 0; n++ {
		*looks--
		if next := d.after(all[n]); next.value.less(d.value) {
			d, all, n = next, next.changes(), -1
		}
	}
	return d
}

func newDraft(p *problem, spans []span) *draft {
	d := &draft{problem: p, lists: make([][]piece, len(p.members)+1), sums: make([]sum, len(p.members))}
	pool := make([]piece, len(p.jobs))
	for i, j := range p.jobs {
		pool[i] = piece{i, j.most}
	}
	for _, s := range spans {
		if pool[s.job].samples -= s.samples; p.jobs[s.job].whole() {
			s.samples, pool[s.job].samples = 1, 0
		}
		d.lists[s.member] = append(d.lists[s.member], piece{s.job, s.samples})
	}
	d.lists[len(p.members)] = joined(pool)
	for m := range p.members {
		d.sums[m] = d.summed(m)
	}
	d.value = d.valued()
	return d
}

// spans is the schedule with its times.
func (d *draft) spans() []span {
	b := board{problem: d.problem}
	for m := range d.members {
		for at, c := range d.lists[m] {
			if d.jobs[c.job].whole() {
				c.samples = d.jobs[c.job].left[m]
			}
			b.spans = append(b.spans, span{c.job, m, c.samples, float64(at), 0})
		}
	}
	return b.closed()
}

func (d *draft) summed(m int) sum {
	s := sum{end: d.from[m]}
	for _, c := range d.lists[m] {
		j := d.jobs[c.job]
		took := float64(float64(c.samples) * j.seconds[m])
		if j.whole() {
			took = j.alone(m)
		}
		if s.end, s.busy = max(s.end, j.arrival)+took, s.busy+took; !within(s.end, j.deadline) {
			s.late = max(s.late, s.end-j.deadline)
		}
	}
	return s
}

func (d *draft) valued() value {
	const power = 8 // shorter is the list that ends last, though others grow by more
	late, end, busy, uneven := 0.0, 0.0, 0.0, 0.0
	for m, s := range d.sums {
		if len(d.lists[m]) > 0 {
			took := s.end - d.start
			late, end, busy, uneven = max(late, s.late), max(end, took), busy+s.busy, uneven+math.Pow(took, power)
		}
	}
	samples := make([]int, len(d.jobs))
	for i, j := range d.jobs {
		samples[i] = j.most - d.spare(i)
	}
	f := figures{makespan: end}
	f.price(d.problem, busy, samples)
	return value{rounded(late, costDigits), f.cost, rounded(uneven, costDigits)}
}

// spare is how many samples of a job may be done and are not.
func (d *draft) spare(job int) (n int) {
	for _, c := range d.lists[len(d.members)] {
		if c.job == job {
			n += c.samples
		}
	}
	return n
}

// takes tells whether a piece can go to a list.
func (d *draft) takes(list int, c piece) bool {
	j := d.jobs[c.job]
	if list < len(d.members) {
		return slices.Contains(j.prefer, list)
	}
	return !j.whole() && d.spare(c.job)+c.samples <= j.most-j.need
}

// change is that samples of a piece go from one list to another or another place, and that some of the piece there may
// come back.
type change struct{ from, piece, samples, to, at, back int }

// changes are all there are.
func (d *draft) changes() (list []change) {
	for from, pieces := range d.lists {
		for i, c := range pieces {
			for _, n := range parts(c.samples) {
				for to, others := range d.lists {
					if !d.takes(to, piece{c.job, n}) {
						continue
					}
					for at := range len(others) + 1 {
						list = append(list, change{from, i, n, to, at, 0})
						if from == to || n < c.samples || at == len(others) {
							continue
						}
						for _, back := range parts(others[at].samples) {
							if d.takes(from, piece{others[at].job, back}) {
								list = append(list, change{from, i, n, to, at, back})
							}
						}
					}
				}
			}
		}
	}
	return list
}

// after is the schedule after a change.
func (d *draft) after(c change) *draft {
	out := &draft{problem: d.problem, lists: slices.Clone(d.lists), sums: slices.Clone(d.sums)}
	moved, from := d.lists[c.from][c.piece].job, slices.Clone(d.lists[c.from])
	from[c.piece].samples -= c.samples
	out.lists[c.from] = from
	to := slices.Clone(out.lists[c.to])
	if c.back > 0 {
		to[c.at].samples -= c.back
		out.lists[c.from] = slices.Insert(from, c.piece, piece{to[c.at].job, c.back})
	}
	out.lists[c.to] = slices.Insert(to, c.at, piece{moved, c.samples})
	for _, m := range []int{c.from, c.to} {
		if out.lists[m] = joined(out.lists[m]); m < len(d.members) {
			out.sums[m] = out.summed(m)
		}
	}
	out.value = out.valued()
	return out
}

// joined makes one of pieces of a job in a row.
func joined(list []piece) (out []piece) {
	for _, c := range list {
		if n := len(out); n > 0 && out[n-1].job == c.job {
			out[n-1].samples += c.samples
		} else if c.samples > 0 {
			out = append(out, c)
		}
	}
	return out
}

// parts are the numbers of samples by which a piece is cut.
func parts(n int) []int { return slices.Compact([]int{n, (n + 1) / 2, 1}) }
