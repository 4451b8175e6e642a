package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/table"
)

// ClassScores are the scores of predicted classes, over the rows of all members.
type ClassScores struct {
	Peers int `json:"peers"`
	// Rows is the weight of all rows, or their number if they are not weighted.
	Rows float64 `json:"rows"`
	// Accuracy is the share of rows whose likeliest class is the true one.
	Accuracy float64 `json:"accuracy"`
	// PPV (positive predictive value, or precision), Recall and F1 are those of class 1 if there are two classes,
	// else the mean over the classes; 0 if nothing was predicted.
	PPV    float64 `json:"ppv"`
	Recall float64 `json:"recall"`
	F1     float64 `json:"f1"`
	// LogLoss is the mean of -ln of the probability of the true class, where probabilities below 2.2e-16 count as
	// 2.2e-16.
	LogLoss float64 `json:"logloss"`
	// AUC is the area under the curve of recall over false positives: the chance that a row of the class scores above
	// a row of another class. It is that of class 1 if there are two classes, else the mean over the classes. Its
	// error is at most AUCError, since rows in one bin of scores count as equal. It is 0.5 ± 0.5 if all rows are of
	// one class.
	AUC      float64 `json:"auc"`
	AUCError float64 `json:"auc_error"`
	// Confusion has the weight of the rows by true class (first index) and predicted class.
	Confusion [][]float64 `json:"confusion"`
}

// NumberScores are the scores of predicted numbers, over the rows of all members.
type NumberScores struct {
	Peers int     `json:"peers"`
	Rows  float64 `json:"rows"`
	RMSE  float64 `json:"rmse"` // root of the mean squared error, in the target's unit
	MAE   float64 `json:"mae"`  // mean absolute error
	R2    float64 `json:"r2"`   // share of the target's variance that is explained; 0 if it has none
}

// minProbability is the least probability in the log loss, which one row could make infinite otherwise. It is
// scikit-learn's.
const minProbability = 0x1p-52

// maxPrediction bounds predicted numbers, so that squared errors are finite.
const maxPrediction = 1e140

// slack is how far rounding may take a probability below 0 or above 1.
const slack = 1e-9

// Scores has scores of one kind; the other fields are nil.
type Scores struct {
	Classes *ClassScores  `json:"classes,omitempty"`
	Numbers *NumberScores `json:"numbers,omitempty"`
	Ranks   *RankScores   `json:"ranks,omitempty"` // of preferences
	Words   *WordScores   `json:"words,omitempty"` // of topics
}

// Evaluate predicts the rows of each member and compares the predictions with rows.Target: as classes if rows.Classes
// is set, else as numbers. Preferences (an ALSModel that is Implicit) and topics (an LDAModel) have scores of their
// own. All members call it with the same model; a member may have no rows.
func Evaluate(ctx context.Context, flock table.Flock, model Model, rows Rows) (Scores, error) {
	flock = table.Careful(flock)
	if m, is := model.(*ALSModel); is && m.Implicit {
		s, err := m.ranks(ctx, flock, rows)
		return Scores{Ranks: &s}, err
	}
	if m, is := model.(*LDAModel); is {
		s, err := m.words(ctx, flock, rows)
		return Scores{Words: &s}, err
	}
	var predictions []float64
	var local error
	if rows.count() > 0 {
		predictions, local = model.Predict(nil, rows.Features)
	}
	if rows.Classes == nil {
		s, err := evaluateNumbers(ctx, flock, predictions, rows, local)
		return Scores{Numbers: &s}, err
	}
	s, err := evaluateClasses(ctx, flock, predictions, rows, local)
	return Scores{Classes: &s}, err
}

// evaluateClasses compares probabilities, len(rows.Classes) for each row, with rows.Target. local is the error of
// this member's predictions.
func evaluateClasses(ctx context.Context, flock table.Flock, probabilities []float64, rows Rows, local error) (ClassScores, error) {
	k := len(rows.Classes)
	if local == nil && k < 2 {
		local = fmt.Errorf("learn: scores of %d classes: want 2 or more", k)
	}
	local = cmp.Or(local, checkTarget(rows), checkPredictions(probabilities, k*rows.count(), -slack, 1+slack))
	if err := agree(ctx, flock, local, rows.Classes); err != nil {
		return ClassScores{}, err
	}
	// counts has the confusion matrix, and then the loss.
	counts := make([]float64, k*k+1)
	for i := range rows.count() {
		p, truth, weight := probabilities[i*k:(i+1)*k], int(rows.Target[i]), rows.weight(i)
		counts[truth*k+floats.MaxIdx(p)] += weight
		counts[k*k] -= weight * math.Log(max(p[truth], minProbability))
	}
	counts, peers, err := flock.Sum(ctx, "confusion", counts)
	if err != nil {
		return ClassScores{}, fmt.Errorf("learn: evaluating: %w", err)
	}
	s := ClassScores{Peers: peers}
	for truth := range k {
		s.Confusion = append(s.Confusion, counts[truth*k:(truth+1)*k:(truth+1)*k])
	}
	if err := checkWeights("confusion", counts[:k*k]...); err != nil {
		return ClassScores{}, err
	}
	s.Rows = total(counts[:k*k])
	s.LogLoss = counts[k*k] / s.Rows
	s.shares()
	s.AUC, s.AUCError, err = areas(ctx, flock, probabilities, rows)
	return s, err
}

// firstScored is the first class that counts in the scores: of two classes only class 1, else all.
func firstScored(classes int) int {
	if classes == 2 {
		return 1
	}
	return 0
}

// shares computes the scores that follow from the confusion matrix.
func (s *ClassScores) shares() {
	k := len(s.Confusion)
	first := firstScored(k)
	n := float64(k - first)
	for c := range k {
		s.Accuracy += s.Confusion[c][c] / s.Rows
	}
	for c := first; c < k; c++ {
		var predicted, true_ float64
		for other := range k {
			predicted += s.Confusion[other][c]
			true_ += s.Confusion[c][other]
		}
		hit := s.Confusion[c][c]
		s.PPV += ratio(hit, predicted) / n
		s.Recall += ratio(hit, true_) / n
		s.F1 += ratio(2*hit, predicted+true_) / n
	}
}

// ratio is part divided by whole, or 0 if whole is 0.
func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// evaluateNumbers compares predictions, one a row, with rows.Target.
func evaluateNumbers(ctx context.Context, flock table.Flock, predictions []float64, rows Rows, local error) (NumberScores, error) {
	local = cmp.Or(local, checkTarget(rows), checkPredictions(predictions, rows.count(), -maxPrediction, maxPrediction))
	if err := agree(ctx, flock, local); err != nil {
		return NumberScores{}, err
	}
	means := make([]float64, 2)
	for i := range predictions {
		means[0] += rows.weight(i)
		means[1] += rows.weight(i) * rows.Target[i]
	}
	means, _, err := flock.Sum(ctx, "mean", means)
	if err != nil {
		return NumberScores{}, fmt.Errorf("learn: evaluating: %w", err)
	}
	mean := ratio(means[1], means[0])
	const (
		all = iota
		squares
		absolutes
		offs // sums of the targets less the mean, and of their squares (spread)
		spread
		places
	)
	sums := make([]float64, places)
	for i, p := range predictions {
		weight, miss, off := rows.weight(i), p-rows.Target[i], rows.Target[i]-mean
		for place, x := range [places]float64{1, miss * miss, math.Abs(miss), off, off * off} {
			sums[place] += weight * x
		}
	}
	sums, peers, err := flock.Sum(ctx, "errors", sums)
	if err != nil {
		return NumberScores{}, fmt.Errorf("learn: evaluating: %w", err)
	}
	n := sums[all]
	if err := checkWeights("errors", n); err != nil {
		return NumberScores{}, err
	}
	s := NumberScores{Peers: peers, Rows: n, RMSE: math.Sqrt(sums[squares] / n), MAE: sums[absolutes] / n}
	if variance := sums[spread] - sums[offs]*sums[offs]/n; variance > 0 {
		s.R2 = 1 - sums[squares]/variance
	}
	return s, checkFinite([]float64{s.RMSE, s.MAE, s.R2})
}

func total(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum
}

func checkPredictions(p []float64, want int, least, most float64) error {
	if len(p) != want {
		return fmt.Errorf("learn: evaluating: %d predictions where rows and classes make %d", len(p), want)
	}
	if i := slices.IndexFunc(p, func(x float64) bool { return !(x >= least && x <= most) }); i >= 0 {
		return fmt.Errorf("learn: evaluating: prediction %d is %v; want a number from %v to %v", i, p[i], least, most)
	}
	return nil
}
