package trainer

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/peer/optim"
)

// Step describes a step.
type Step struct {
	// Loss is the mean loss over Samples samples, and Rate the learning rate. Loss is NaN
	// if the caller's own optimizer made the step.
	Loss, Rate float64
	Samples    int
	// Waited is how long the step waited for slices that exchanges had locked.
	Waited time.Duration
	// Between is about the time from one step to the next, 0 before there were two.
	Between time.Duration
}

// Made describes the steps of a caller's own optimizer: their number, their samples in all,
// and the mean loss, NaN if not known.
type Made struct {
	Steps, Samples int
	Loss           float64
}

// notTakenError is why a step of a caller's own optimizer is refused: it is
// optim.ErrNotFinite, with the reason.
type notTakenError struct{ reason error }

func (e *notTakenError) Error() string {
	return fmt.Sprintf("%v (%v): lower the learning rate, or check the data", optim.ErrNotFinite, e.reason)
}

func (e *notTakenError) Unwrap() []error { return []error{optim.ErrNotFinite, e.reason} }

// samplesError is an invalid number of samples.
type samplesError int

func (e samplesError) Error() string {
	return fmt.Sprintf("Result.Samples is %d: give how many samples it was made of, 0 if that is not known", int(e))
}
