package peertest

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/until"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// aimed judges whether a simulated run is to end before its work is done, by the rules of real runs. All peers see each
// other's figures at once, so that one judgement is everybody's.
type aimed struct {
	*running
	judge *until.Judge
	next  time.Duration // when the next evaluation is due
	steps uint64        // at the last one
	why   until.Reason
	best  tensor.Vector // nil before the first evaluation
}

// How often a run evaluates: as often as real peers do, of which each evaluates once in a twentieth of the time for which it
// has trained, and after eight steps at the soonest.
const (
	trainedShare  = 20
	evaluateSteps = 8
)

// moment is a virtual time as the judge has it.
func moment(at time.Duration) time.Time { return time.Unix(0, 0).Add(at) }

// over tells whether the run is to end, as it is if the curve has arrived at Watch.Target. It evaluates if that is due.
func (a *aimed) over(arrived bool) bool {
	if arrived {
		a.why = until.Accuracy
	}
	u, now := a.Work.Until, a.world.Now()
	if u.Accuracy == 0 && u.Loss == 0 && u.Plateau == 0 && u.Deadline == 0 || a.why != until.GoesOn {
		return a.why != until.GoesOn
	}
	if a.judge == nil {
		a.judge = until.New("", until.Aim{Accuracy: u.Accuracy, Loss: u.Loss, Plateau: u.Plateau, Deadline: u.Deadline}, moment(0))
		a.next = control.EvaluationSpacing
	}
	chosen := a.chosen(a.Watch.Evaluate)
	if now >= a.next && a.trainer.made >= a.steps+evaluateSteps*uint64(len(chosen)) {
		a.evaluated(chosen)
		a.next, a.steps = now+max(now/trainedShare, control.EvaluationSpacing), a.trainer.made
	} else if u.Deadline == 0 || now < u.Deadline {
		return false
	}
	var members []topology.PeerID
	for _, parts := range chosen {
		members = append(members, SimulatedID(parts[0]))
	}
	if a.why = a.judge.Look(moment(now), members, false); a.why == until.GoesOn {
		a.why = a.judge.Says(moment(now)).Wants // which all would say, as they judge the same figures
	}
	return a.why != until.GoesOn
}

// evaluated takes the figures of these peers, and keeps the best of their models.
func (a *aimed) evaluated(chosen [][]int) {
	accuracies, losses := a.evaluate(chosen, true)
	for k, parts := range chosen {
		if a.judge.Evaluated(accuracies[k], losses[k]) {
			if a.best == nil {
				a.best = make(tensor.Vector, a.layout.Len())
			}
			a.read(parts, a.best)
		}
		a.judge.Heard(SimulatedID(parts[0]), a.judge.Says(moment(a.world.Now())))
	}
}

// stoppedBy is why the run has ended; empty if it has not.
func (a *aimed) stoppedBy() string {
	switch {
	case a.why != until.GoesOn:
		return a.why.String()
	case a.ended < 0:
		return ""
	}
	return "work"
}

// kept is the accuracy of the best model on all held-out data, -1 if none was evaluated.
func (a *aimed) kept() float64 {
	if a.best == nil {
		return -1
	}
	accuracy, _ := a.Task.Evaluate(a.best, false)
	return accuracy
}
