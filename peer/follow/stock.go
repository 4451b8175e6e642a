package follow

import (
	"math/rand/v2"
	"slices"
)

const (
	// holdOut is which share of the rows is held out for a time, drawn by chance: one of so many.
	holdOut = 4
	// recent is for how many rows one is held out; then it is trained on as any.
	recent = 512
	// contradict is by how many rows of a class it is judged whether they contradict the old ones, few once another class has changed.
	contradict, few = 12, 3
)

// stock is the rows of a member.
type stock[T any] struct {
	fresh  []T   // that no training has seen
	held   []T   // held out, the oldest first
	since  []int // for each of them, how many rows had come with it
	kept   *Reservoir[T]
	gone   []T // dropped since the last training
	came   int // rows so far
	chance *rand.Rand
}

func newStock[T any](keep int, seed uint64) stock[T] {
	chance := rand.New(rand.NewPCG(seed, 0))
	return stock[T]{kept: NewReservoir[T](keep, chance), chance: chance}
}

// add adds a new row. Which are held out is drawn: by number, it could go with an order in the file.
func (s *stock[T]) add(row T) {
	if s.chance.IntN(holdOut) == 0 {
		s.held, s.since = append(s.held, row), append(s.since, s.came)
	} else {
		s.fresh = append(s.fresh, row)
	}
}

// release releases rows that have been held out for long enough. They go before the others, of which the last are the newest.
func (s *stock[T]) release() {
	n, _ := slices.BinarySearch(s.since, s.came-recent+1)
	s.fresh = slices.Insert(s.fresh, 0, s.held[:n]...)
	s.held, s.since = s.held[n:], s.since[n:]
}

// dropOld drops the old rows of all classes of which new ones have come, and those held out since before the newest.
func (s *stock[T]) dropOld(class func(T) int) (dropped int) {
	of := make(map[int]int)
	for _, row := range newest(s.fresh, judged) {
		of[class(row)]++
	}
	old := func(row T) bool { return of[class(row)] >= few }
	kept := len(s.kept.Rows())
	s.kept.Drop(func(rows []T) []T { return slices.DeleteFunc(rows, old) })
	if dropped = kept - len(s.kept.Rows()); dropped == 0 {
		return 0
	}
	before, _ := slices.BinarySearch(s.since, s.came-judged*holdOut/(holdOut-1)+1)
	goes := make([]bool, len(s.held))
	for i, row := range s.held[:before] {
		if goes[i] = old(row); goes[i] {
			s.gone, dropped = append(s.gone, row), dropped+1
		}
	}
	s.held, s.since = without(s.held, goes), without(s.since, goes)
	return dropped
}

// dropContradicted drops rows of classes of which the newest contradict the old ones: those that the model gets right, as it has
// learned them before.
func (s *stock[T]) dropContradicted(right func([]T) []bool, class func(T) int) (dropped int) {
	changed := s.contradicted(right, class)
	if len(changed) == 0 {
		return 0
	}
	var gone []T
	stale := func(rows []T) []bool {
		is := right(rows)
		for i, row := range rows {
			if is[i] = is[i] && changed[class(row)]; is[i] {
				gone = append(gone, row)
			}
		}
		return is
	}
	s.fresh = without(s.fresh, stale(s.fresh))
	held := stale(s.held)
	s.held, s.since = without(s.held, held), without(s.since, held) // the others are as old as they were
	s.gone = append(s.gone, gone...)
	s.kept.Drop(func(rows []T) []T { return without(rows, stale(rows)) })
	return len(gone)
}

// without is a list without what is marked.
func without[E any](list []E, marked []bool) []E {
	at := -1
	return slices.DeleteFunc(list, func(E) bool { at++; return marked[at] })
}

// contradicted are the classes of which the model gets old rows right more than three times as often as new ones: the newest, or more
// of them, since of each class enough must be new while not many are of before. Classes of which not so many have come are judged
// together, and by few once another has changed.
func (s *stock[T]) contradicted(right func([]T) []bool, class func(T) int) map[int]bool {
	count := func(rows []T, right []bool) map[int]tally {
		of := make(map[int]tally)
		for i, row := range rows {
			of[class(row)] = of[class(row)].and(right[i])
		}
		return of
	}
	some, all := spread(s.kept.Rows(), recent), newest(s.fresh, judged)
	kept, hits, changed := count(some, right(some)), right(all), make(map[int]bool)
	for _, n := range []int{judged / 4, judged / 2, judged} {
		news, rare := count(newest(all, n), newest(hits, n)), [2]tally{}
		for class, t := range news {
			if t.all < contradict && kept[class].all > 0 {
				rare[0], rare[1] = rare[0].plus(t), rare[1].plus(kept[class])
			}
		}
		together := rare[0].contradicts(rare[1], contradict)
		for class, t := range news {
			if t.contradicts(kept[class], contradict) || t.all < contradict && together {
				changed[class] = true
			}
		}
		for class, t := range news {
			if len(changed) > 0 && t.contradicts(kept[class], few) {
				changed[class] = true
			}
		}
	}
	return changed
}
