package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/meetings"
)

const (
	// MaxNew is how many new rows may wait for a training before the next arrival: while there are so many, nothing is received from
	// Config.Arrivals. An arrival is taken whole.
	MaxNew = 1 << 16
	// DefaultKeep is the default of Config.Keep, MaxKeep the most.
	DefaultKeep, MaxKeep = 2048, 1 << 20
	// judged is the most rows of a kind by which a model is measured.
	judged = 128
	// lookEvery is the time between two measurements, and rests how many times as long as one there is none.
	lookEvery, rests = time.Second, 9
	meetEvery        = time.Second // is the least time between two meetings
)

// Arrival is rows that have come together, for instance in a file.
type Arrival[T any] struct {
	Name string
	Rows []T
	// Old says that a model was trained on them before, as they were kept in an earlier life: they are old rows at once, and none that have come.
	Old bool
}

// Learner is a model that is trained. Its methods are called by the goroutine of Run.
type Learner[T any] interface {
	// Step takes a step of training on rows, which it must not keep.
	Step(ctx context.Context, rows []T) error
	// Right tells of each row whether the model gets it right.
	Right(rows []T) []bool
	// Class is what is to be learned of a row.
	Class(row T) int
}

// Watcher is a Learner that is told of each measurement: of the newest rows that no training has seen.
type Watcher[T any] interface {
	Measured(rows []T, accuracy float64)
}

// Config says what Run does. Flock, Arrivals and Learner are required.
type Config[T any] struct {
	// Name names the meetings of the members, the same at all. Default: "follow".
	Name     string
	Flock    meetings.Flock    // a peer.Node or peer.Peer
	Arrivals <-chan Arrival[T] // Run goes on when it is closed
	Learner  Learner[T]
	// Policy and Price are the same at all members. Price is which accuracy a second of training is worth for a second, 0 to
	// 1: a flock that trained half of the time would give up about half of it to train less. Default: DefaultPrice.
	Policy Policy
	Price  float64
	// Passes is how often a training goes over the rows, Batch the rows of a step. Default: 1 and 32.
	Passes float64
	Batch  int
	// Keep is how many old rows are kept and trained on again, 1 to MaxKeep. Default: DefaultKeep.
	Keep int
	// Seed decides which rows are kept, and in which order they are trained on.
	Seed uint64
	// Told hears, on the goroutine of Run, what happens; it may be nil.
	Told func(Event)
	// Trained hears likewise, after each training, which rows wait for one no more, those that were dropped unseen included, and
	// which old ones are kept; both belong to Run. It may be nil.
	Trained func(rows, kept []T)
}

// Event is something that has happened: rows have arrived, a training is over, or a meeting went wrong.
type Event struct {
	// Arrived names rows that have come, Rows how many.
	Arrived string
	Rows    int
	// Training is the number of a training, from 1, of Steps steps, Rows new rows and those of Names, and Took its time.
	Training, Steps int
	Names           []string
	Took            time.Duration
	// Accuracy is that of the model now, NaN if it is not known, on rows that no training has seen.
	Accuracy float64
	// Dropped are old rows that new ones contradict.
	Dropped int
	Err     error
}

// Summary says what Run did.
type Summary struct {
	Trainings, Steps int
	// Arrived counts rows that have come, Waiting those that no training has seen yet, Kept old ones.
	Arrived, Waiting, Kept int
	// Accuracy is the mean over time of the accuracy of the model on the newest rows, before they were trained on; NaN
	// if none have come.
	Accuracy float64
}

// follower is the state of Run.
type follower[T any] struct {
	Config[T]
	Summary
	meetings meetings.Meetings
	began    time.Time

	stock[T]
	names []string // of the arrivals of the new rows
	estimate
	look time.Time // when the next measurement is due
}

// ErrConfig: a Config is not valid.
var ErrConfig = errors.New("follow: bad configuration")

// Run receives rows and trains on them until ctx ends, which is no error. It returns the first error of the learner. Members that
// run it under one name meet once a second; each of them makes the steps of each training.
func Run[T any](ctx context.Context, c Config[T]) (Summary, error) {
	c.Name, c.Price, c.Passes = cmp.Or(c.Name, "follow"), cmp.Or(c.Price, DefaultPrice), cmp.Or(c.Passes, 1)
	c.Batch, c.Keep = cmp.Or(c.Batch, 32), cmp.Or(c.Keep, DefaultKeep)
	switch {
	case c.Flock == nil || c.Learner == nil || c.Arrivals == nil:
		return Summary{}, fmt.Errorf("%w: want Flock, Arrivals and Learner", ErrConfig)
	case !(c.Price > 0 && c.Price <= 1) || !(c.Passes > 0 && c.Passes <= MaxSteps) || c.Batch < 1 || c.Keep < 1 || c.Keep > MaxKeep || int(c.Policy) >= len(policies):
		return Summary{}, fmt.Errorf("%w: Price %v, Passes %v, Batch %d, Keep %d, Policy %d: want a price above 0 and at most 1, 1 to %d old rows, and the others above 0", ErrConfig, c.Price, c.Passes, c.Batch, c.Keep, c.Policy, MaxKeep)
	}
	f := &follower[T]{Config: c, began: time.Now(), stock: newStock[T](c.Keep, c.Seed)}
	var err error
	for ctx.Err() == nil && err == nil {
		err = f.turn(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	f.measure()
	f.Arrived, f.Waiting, f.Kept, f.Summary.Accuracy = f.came, len(f.fresh)+len(f.held), len(f.kept.Rows()), f.mean()
	return f.Summary, err
}

// turn is from one meeting to the next.
func (f *follower[T]) turn(ctx context.Context) error {
	next := time.Now().Add(meetEvery)
	f.receive()
	f.glance()
	d, err := f.meet(ctx)
	if err != nil && ctx.Err() == nil {
		f.tell(Event{Err: err})
	}
	if d.Steps > 0 && ctx.Err() == nil {
		if err := f.train(ctx, d.Steps); err != nil {
			return err
		}
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		arrivals := f.Arrivals
		if len(f.fresh) >= MaxNew {
			arrivals = nil
		}
		select {
		case a, open := <-arrivals:
			f.take(a, open)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// meet takes part in the next meeting, and returns what all decide. Without the others this member decides alone.
func (f *follower[T]) meet(ctx context.Context) (Decision, error) {
	own := f.report()
	all, err := f.meetings.Gather(ctx, f.Flock, f.Name, own.Encode())
	if err != nil && !errors.Is(err, meetings.ErrMissed) { // what all decide now follows from what is told now
		return Decide(f.Policy, f.Price, []Report{own}), fmt.Errorf("%w: this one decides alone", err)
	}
	var reports []Report
	err = nil
	for _, block := range all {
		if r, fault := DecodeReport(block); fault == nil {
			reports = append(reports, r)
		} else {
			err = fmt.Errorf("a member is left out: %w", fault)
		}
	}
	return Decide(f.Policy, f.Price, reports), err
}

func (f *follower[T]) tell(e Event) {
	if e.Accuracy = math.NaN(); f.known {
		e.Accuracy = f.estimate.accuracy
	}
	if f.Told != nil {
		f.Told(e)
	}
}

// receive takes what has arrived.
func (f *follower[T]) receive() {
	for len(f.fresh) < MaxNew {
		select {
		case a, open := <-f.Arrivals:
			f.take(a, open)
		default:
			return
		}
	}
}

func (f *follower[T]) take(a Arrival[T], open bool) {
	if !open {
		f.Arrivals = nil
		return
	}
	for _, row := range a.Rows {
		if a.Old {
			f.kept.Add(row)
			continue
		}
		f.came++
		f.add(row)
	}
	if a.Old {
		return
	}
	f.release()
	if len(a.Rows) > 0 {
		f.names = append(f.names, a.Name)
	}
	f.tell(Event{Arrived: a.Name, Rows: len(a.Rows)})
}

// glance measures the model if that is due.
func (f *follower[T]) glance() {
	if began := time.Now(); !began.Before(f.look) {
		f.measure()
		now := time.Now()
		f.look = now.Add(max(lookEvery, rests*now.Sub(began)))
	}
}

// measure measures the model on the newest rows that it was not trained on.
func (f *follower[T]) measure() {
	news := newest(f.fresh, recent-recent/holdOut)
	a, b := f.tally(f.held), f.tally(news)
	if n := float64(len(f.held) + len(news)); n > 0 {
		accuracy := (a.share()*float64(len(f.held)) + b.share()*float64(len(news))) / n
		f.measured(time.Since(f.began), accuracy, a.all+b.all, len(f.fresh))
		if w, is := f.Learner.(Watcher[T]); is {
			w.Measured(slices.Concat(spread(f.held, judged), spread(news, judged)), accuracy)
		}
	}
}

func (f *follower[T]) tally(rows []T) (t tally) {
	for _, right := range f.right(spread(rows, judged)) {
		t = t.and(right)
	}
	return t
}

func (f *follower[T]) right(rows []T) []bool {
	if len(rows) == 0 {
		return nil
	}
	return f.Learner.Right(rows)
}

// report is what this member tells.
func (f *follower[T]) report() Report {
	rows := float64(len(f.fresh) + len(f.kept.Rows()))
	steps := min(math.Ceil(f.Passes*rows/float64(f.Batch)), MaxSteps)
	return Report{New: uint32(len(f.fresh)), Steps: uint32(steps), Regret: f.regret, Cost: min(f.step*steps, maxNumber)}
}

// train trains on the new rows and the old ones.
func (f *follower[T]) train(ctx context.Context, steps int) error {
	dropped := f.dropStale()
	began, fresh, names := time.Now(), f.fresh, f.names
	rows := slices.Concat(fresh, f.kept.Rows())
	if len(rows) == 0 {
		return nil // the others do
	}
	last := f.came
	f.fresh, f.names = nil, nil // what arrives meanwhile is for the next
	batch, at := make([]T, 0, f.Batch), len(rows)
	for range steps {
		for batch = batch[:0]; len(batch) < min(f.Batch, len(rows)); at++ {
			if at == len(rows) {
				at = 0
				f.chance.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			}
			batch = append(batch, rows[at])
		}
		if err := f.Learner.Step(ctx, batch); err != nil {
			f.fresh = append(fresh, f.fresh...) // they have not been trained on as they should
			return err
		}
		f.receive()
		f.glance()
	}
	for _, row := range fresh {
		f.kept.Add(row)
	}
	if f.Trained != nil {
		f.Trained(append(f.gone, fresh...), f.kept.Rows())
	}
	f.gone = nil
	f.Trainings, f.Steps = f.Trainings+1, f.Steps+steps
	took := time.Since(began)
	f.measure()
	before, _ := slices.BinarySearch(f.since, last+1) // held out of rows like those of the training
	left := f.estimate.accuracy
	if before > 0 {
		left = f.tally(f.held[:before]).share()
	}
	f.trained(took, steps, f.kept.Seen(), left)
	f.tell(Event{Training: f.Trainings, Steps: steps, Rows: len(fresh), Names: names, Took: took, Dropped: dropped})
	return nil
}

// dropStale drops old rows that no longer hold.
func (f *follower[T]) dropStale() (dropped int) {
	if f.stuck() {
		dropped = f.dropOld(f.Learner.Class)
	}
	if dropped > 0 { // else nothing new has come by which to judge
		f.anew()
		return dropped
	}
	return f.dropContradicted(f.right, f.Learner.Class)
}
