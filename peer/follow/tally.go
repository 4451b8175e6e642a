package follow

// tally counts rows that a model gets right.
type tally struct{ right, all int }

func (t tally) share() float64 { return float64(t.right) / float64(max(t.all, 1)) }

func (t tally) plus(o tally) tally { return tally{t.right + o.right, t.all + o.all} }

func (t tally) and(right bool) tally {
	if right {
		t.right++
	}
	return tally{t.right, t.all + 1}
}

// contradicts tells whether new rows, so many at least, do so to old ones, which the model knows.
func (t tally) contradicts(old tally, least int) bool {
	return t.all >= least && old.share() >= 0.5 && old.share() > 3*t.share()
}

// newest is at most so many of the rows, the last.
func newest[T any](rows []T, most int) []T { return rows[max(0, len(rows)-most):] }

// spread is at most so many of the rows, evenly.
func spread[T any](rows []T, most int) []T {
	if len(rows) <= most {
		return rows
	}
	some := make([]T, most)
	for i := range some {
		some[i] = rows[i*len(rows)/most]
	}
	return some
}
