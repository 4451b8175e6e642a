package peer

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/until"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Until says when the model is good enough: the run then ends before its work is done, for all members and for the same
// reason. Members tell each other their figures by signed messages, for which Network.Control has an Operator or Digests,
// and judge the median of these; more than half of the members must find an aim reached. So one member of three or more that lies neither
// ends the run nor keeps it going for long; of two, either can keep it going to the end of its work. All members
// should have the same Until.
type Until struct {
	// Evaluate returns the accuracy, 0 to 1, and the mean loss of a model on held-out data, which may differ between
	// members. NaN is as bad as can be. It is called from time to time, one call at a time, on a goroutine of the
	// trainer's while Step computes gradients, and must not keep x. Default: nothing is evaluated.
	Evaluate func(x tensor.Vector) (accuracy, loss float64)
	// Accuracy ends the run once the median accuracy is at least this, Loss once the median loss is at most this, and
	// Plateau once so many evaluations in a row have brought neither median forward by 0.1 points, or a
	// thousandth of the loss. 0 is never. They need Evaluate.
	Accuracy, Loss float64
	Plateau        int
	// Deadline ends the run so long after it began to train, pauses included. 0 is never.
	Deadline time.Duration
}

// isSet tells whether there is anything to do.
func (u Until) isSet() bool { return u.Evaluate != nil || u.Deadline != 0 }

func (u Until) validate() error {
	switch {
	case !(u.Accuracy >= 0 && u.Accuracy <= 1) || !(u.Loss >= 0 && u.Loss <= math.MaxFloat64) || u.Plateau < 0 || u.Deadline < 0:
		return fmt.Errorf("Work.Until: Accuracy %v, Loss %v, Plateau %d, Deadline %s: want an accuracy from 0 to 1, and nothing below 0", u.Accuracy, u.Loss, u.Plateau, u.Deadline)
	case u.Evaluate == nil && (u.Accuracy > 0 || u.Loss > 0 || u.Plateau > 0):
		return errors.New("Work.Until: Accuracy, Loss and Plateau need Evaluate")
	}
	return nil
}

const (
	// lookEvery is the time between two judgements.
	lookEvery = control.EvaluationSpacing / 4
	// evaluateShare bounds the time of evaluations: one part in so many.
	evaluateShare = 10
	// trainedShare is how often a run evaluates: once for each such part of the time for which it has trained, so that it
	// trains no longer than that beyond its aim.
	trainedShare = 20
	// evaluateSteps is the least steps between two evaluations: a model that has not changed gets no better.
	evaluateSteps = 8
	// agreeWithin bounds how long a trainer that closes waits until all have told that the run is over for them, so that
	// all know the same reason.
	agreeWithin = 2 * time.Second
	// repeatEvery is after how many of the longest spacings the last evaluation is told again.
	repeatEvery = 5
)

// ErrNoBest: Work.Until.Evaluate is not set, or no model has been evaluated yet.
var ErrNoBest = errors.New("no model has been evaluated")

// evaluations evaluates the model while it trains, tells the others, and judges whether the run is over.
type evaluations struct {
	with    Until
	self    transport.PeerID
	flock   *flock.Flock
	orders  *orders.Orders
	replica *replica.Replica
	life    *tasks.Life
	loop    conversations.Loop
	log     *zap.Logger

	ended  atomic.Uint32 // an until.Reason
	agreed chan struct{} // closed by agree when the reason cannot change any more
	agree  func()
	told   control.Evaluation // last
	x      tensor.Vector      // is evaluated

	mu    sync.Mutex
	judge *until.Judge // nil before the first step
	next  time.Time    // when the next evaluation is due; zero during one
	steps uint64       // at the last one
	best  struct {
		x              tensor.Vector // nil before the first evaluation
		accuracy, loss float64
	}
}

// run evaluates, tells and judges, from the first step until the trainer ends.
func (e *evaluations) run() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-e.life.Running.Done():
			return
		case <-ticker.C:
			if e.judge != nil || e.flock.Steps() > e.flock.Resumed() {
				why, agreed := e.look(time.Now())
				if e.end(why); agreed {
					e.agree()
				}
			}
		}
	}
}

// look begins an evaluation if one is due, tells the others, and judges; agreed tells that the reason cannot change any more.
func (e *evaluations) look(now time.Time) (why until.Reason, agreed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judge == nil {
		aim := until.Aim{Accuracy: e.with.Accuracy, Loss: e.with.Loss, Plateau: e.with.Plateau, Deadline: e.with.Deadline}
		e.judge, e.next = until.New(e.self, aim, now), now.Add(control.EvaluationSpacing)
	}
	if steps := e.flock.Steps(); e.with.Evaluate != nil && !e.next.IsZero() && now.After(e.next) && steps >= e.steps+evaluateSteps && !e.flock.IsOver() {
		e.next, e.steps = time.Time{}, steps
		e.life.Tasks.Spawn(e.evaluate)
	}
	if says := e.judge.Says(now); e.news(says) {
		e.orders.Evaluated(e.flock.Incarnation(), says)
		e.judge.Heard(e.self, says)
		e.told = says
	}
	e.orders.Evaluations(e.judge.Heard)
	training := []transport.PeerID{e.self}
	for _, r := range e.flock.Records() {
		if flock.Trains(r) {
			training = append(training, r.Peer)
		}
	}
	over := e.flock.IsOver()
	why = e.judge.Look(now, training, over)
	return why, over && e.judge.Agreed(training)
}

// await waits until all have told that the run is over for them.
func (e *evaluations) await() {
	if !e.with.isSet() {
		return
	}
	timer := time.NewTimer(agreeWithin)
	defer timer.Stop()
	select {
	case <-e.agreed:
	case <-timer.C:
	}
}

// news tells whether it is time to tell the others: soon what is new, and all again now and then, for who has missed it.
func (e *evaluations) news(now control.Evaluation) bool {
	since, last := now.Heard.Sub(e.told.Heard), e.told
	last.Heard, last.Trained = now.Heard, now.Trained
	return since >= control.EvaluationSpacing && now != last || since >= repeatEvery*e.longest()
}

// longest is the most time between two evaluations, unless they take long: in a large flock it is longer, as for digests.
func (e *evaluations) longest() time.Duration {
	members, _ := e.flock.Members()
	return max(control.DigestSpacing, time.Duration(members)*control.DigestShare)
}

// evaluate evaluates the model, and keeps it if it is the best.
func (e *evaluations) evaluate() {
	began := time.Now()
	if e.x == nil {
		e.x = make(tensor.Vector, e.replica.Len())
	}
	e.replica.Consistent(e.x)
	accuracy, loss := e.with.Evaluate(e.x)
	e.mu.Lock()
	defer e.mu.Unlock()
	if best := &e.best; e.judge.Evaluated(accuracy, loss) {
		best.x, e.x, best.accuracy, best.loss = e.x, best.x, accuracy, loss
	}
	now := time.Now()
	spacing := min(max(e.judge.Says(now).Trained/trainedShare, control.EvaluationSpacing), e.longest())
	e.next = now.Add(max(spacing, (evaluateShare-1)*now.Sub(began)))
}

// end notes why the run is over.
func (e *evaluations) end(why until.Reason) {
	if before := until.Reason(e.ended.Swap(uint32(why))); before == until.GoesOn && why != until.GoesOn && !e.flock.IsOver() {
		e.log.Info("the run ends before its work is done", zap.Stringer("stopped_by", why))
		e.loop.Corrected() // so that the loop looks whether the run is over
	}
}

// Best copies into dst, which must have as many values as the layout, the best of the models that Work.Until.Evaluate has
// been called with: of the highest accuracy, or, if Work.Until has a Loss and no Accuracy, of the lowest loss. It fails with
// ErrNoBest before the first. Safe for concurrent use, and after Close too.
func (t *Trainer) Best(dst tensor.Vector) (accuracy, loss float64, err error) {
	e := t.steps.work.until
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.best.x == nil:
		return 0, 0, ErrNoBest
	case len(dst) != len(e.best.x):
		return 0, 0, fmt.Errorf("the best of models of %d parameters into %d values: give a vector as long as the layout", len(e.best.x), len(dst))
	}
	copy(dst, e.best.x)
	return e.best.accuracy, e.best.loss, nil
}
