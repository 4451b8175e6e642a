package follow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Policy says when a flock trains on.
type Policy uint8

const (
	// CostAware trains once the accuracy that was missed outweighs the price of a training.
	CostAware Policy = iota
	// BestEffort trains whenever it is done and something new is there.
	BestEffort
)

var policies = []string{CostAware: "cost-aware", BestEffort: "best-effort"}

// Policies are the names of the policies, the default first.
func Policies() []string { return slices.Clone(policies) }

func (p Policy) String() string { return policies[min(int(p), len(policies)-1)] }

// ParsePolicy is the policy of a name.
func ParsePolicy(name string) (Policy, error) {
	if at := slices.Index(policies, name); at >= 0 {
		return Policy(at), nil
	}
	return 0, fmt.Errorf("no policy %q: want %s", name, strings.Join(policies, " or "))
}

const (
	// DefaultPrice is the default of Config.Price.
	DefaultPrice = 0.02
	// MaxSteps bounds the steps of a training.
	MaxSteps = 1 << 20
	// maxSay bounds what a member's regret counts, in prices of a training.
	maxSay = 2
	// maxNumber bounds the regret and the cost that a member may tell.
	maxNumber = 1e9
)

// Report is what a member tells the others.
type Report struct {
	// New is how many rows have come since its last training, Steps how many steps a training of its rows would take.
	New, Steps uint32
	// Regret is the accuracy, 0 to 1, that it has missed since the last training, times seconds; Cost how many seconds
	// a training will take here, 0 if it has made none.
	Regret, Cost float64
}

// ErrReport: bytes are no report.
var ErrReport = errors.New("no report of a member that follows data")

// Encode is the report as bytes for Gather.
func (r Report) Encode() []byte {
	block, _ := binary.Append(nil, binary.LittleEndian, r) // fixed sizes never fail
	return block
}

// DecodeReport is the inverse of Encode. It fails with ErrReport.
func DecodeReport(block []byte) (r Report, err error) {
	if len(block) != binary.Size(r) {
		return Report{}, fmt.Errorf("%w: %d bytes, want %d", ErrReport, len(block), binary.Size(r))
	}
	_, _ = binary.Decode(block, binary.LittleEndian, &r) // of this length it never fails
	if !(r.Regret >= 0 && r.Regret <= maxNumber && r.Cost >= 0 && r.Cost <= maxNumber) || r.Steps > MaxSteps {
		return Report{}, fmt.Errorf("%w: %+v", ErrReport, r)
	}
	return r, nil
}

// Decision is what all members do next. Regret and Price are what was weighed, in accuracy times seconds.
type Decision struct {
	Steps         int // of a training, at each member; 0 is to wait
	Regret, Price float64
}

// Decide decides from the reports of all members, in any order. price is the accuracy that a second without training is
// worth. It is a pure function.
func Decide(p Policy, price float64, all []Report) (d Decision) {
	var steps, costs []float64
	for _, r := range all {
		if r.Steps > 0 {
			steps, costs = append(steps, float64(r.Steps)), append(costs, r.Cost)
		}
	}
	var regrets []float64
	news := false
	d.Price = price * median(costs)
	for _, r := range all {
		if r.Steps > 0 && (r.New > 0 || r.Regret > 0) {
			news = news || r.New > 0
			regrets = append(regrets, min(r.Regret, maxSay*d.Price))
		}
	}
	slices.Sort(regrets) // so that the sum does not depend on the order
	for _, r := range regrets {
		d.Regret += r
	}
	// Regret without new rows is of those that were not trained on long enough.
	if d.Regret /= max(1, float64(len(regrets))); p == BestEffort && news || p == CostAware && len(regrets) > 0 && d.Regret >= d.Price {
		d.Steps = int(median(steps))
	}
	return d
}

// median is the middle of numbers, of two in the middle the larger; 0 of none.
func median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}

// curve is by which power of the number of rows the error of a model falls: usual ones are between a tenth and a half.
const curve = 0.3

// inVain is how many trainings in a row may leave an error beyond twice the least one and worse before the old rows are taken to be in
// the way: where labels change while few rows are new, a model may learn both, know neither, and contradict nobody.
const (
	inVain = 3
	worse  = 0.2
)

// remembered is from how many trainings the best is taken: if the data become harder, as many are made in vain.
const remembered = 4

// estimate is what a member knows of its model and its trainings. It is pure: times are since its beginning.
type estimate struct {
	errs   []float64 // of the model after each of the last trainings, on rows that it had not seen
	rows   float64   // that it had been trained on by then
	least  float64   // the least of the errors since old rows were dropped; until one is lower, the former least plus worse
	vain   int       // trainings in a row that left far more than that
	regret float64
	step   float64 // seconds, of the last training
	at     time.Duration
	known  bool // at is that of a measurement

	accuracy float64 // at that time
	area     float64 // under the accuracy
	span     time.Duration
}

// measured takes the accuracy on n rows that were not trained on, while so many rows are new.
func (e *estimate) measured(now time.Duration, accuracy float64, n, fresh int) {
	since := now - e.at
	if e.known {
		e.area, e.span = e.area+e.accuracy*since.Seconds(), e.span+since
		// A training would leave what the best of the last ones did, or the model has now, and less as it is of more rows.
		// A difference within the error of the measurement is none.
		left := 0.0
		if len(e.errs) > 0 {
			left = min(slices.Min(e.errs), 1-accuracy) * math.Pow(max(e.rows, 1)/(max(e.rows, 1)+float64(fresh)), curve)
		}
		missing := 1 - accuracy - left - math.Sqrt(accuracy*(1-accuracy)/float64(n))
		e.regret = min(max(0, e.regret+missing*since.Seconds()), maxNumber)
	}
	e.at, e.accuracy, e.known = now, accuracy, true
}

// trained takes that a training of so many steps is over, and the accuracy on rows that it has not seen.
func (e *estimate) trained(took time.Duration, steps, rows int, accuracy float64) {
	e.errs = append(e.errs[max(0, len(e.errs)-remembered+1):len(e.errs):len(e.errs)], 1-accuracy)
	e.rows, e.regret = float64(rows), 0
	if e.vain++; len(e.errs) == 1 || 1-accuracy <= 2*e.least+worse {
		e.vain = 0
	}
	if len(e.errs) == 1 || 1-accuracy < e.least {
		e.least = 1 - accuracy
	}
	if steps > 0 {
		e.step = took.Seconds() / float64(steps)
	}
}

// stuck tells whether the last trainings were in vain.
func (e *estimate) stuck() bool { return e.vain >= inVain }

// anew begins anew, as old rows have gone. If that is no help, the data are harder now: each time more errors are put up with.
func (e *estimate) anew() { e.least, e.vain = e.least+worse, 0 }

// mean is the accuracy over time; NaN if it is not known.
func (e *estimate) mean() float64 {
	if e.span == 0 {
		return math.NaN()
	}
	return e.area / e.span.Seconds()
}
