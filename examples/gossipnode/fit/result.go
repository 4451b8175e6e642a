package fit

import (
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// Result is the output of --json; the design lists the names. Fields that a learner does not have are omitted.
type Result struct {
	Learner string `json:"learner"`
	// Peers is how many peers took part, with or without rows.
	Peers int `json:"peers"`
	// PeersLost is how many peers died during the fit: their rows count in the sums before.
	PeersLost int `json:"peers_lost,omitempty"`
	// Rows is the number of training rows of all peers, TestRows that of the rows for the scores.
	Rows     int64 `json:"rows"`
	TestRows int64 `json:"test_rows"`
	Unused
	// Columns is the number of prepared columns that the learner took.
	Columns int `json:"columns"`
	// Seconds is the time of preparing and fitting, without reading.
	Seconds float64 `json:"seconds"`
	*ClassScores
	*NumberScores
	Untargeted
	Compared
	// BytesSent is the bytes that this peer has sent for sums; those of all peers in a local fit.
	BytesSent uint64 `json:"bytes_sent"`
	Sums      int    `json:"sums"`
	// Hash is the hash of the model, the same at all peers.
	Hash string `json:"model_hash"`
	Out  string `json:"out,omitempty"`
}

// Unused is what was read but not used.
type Unused struct {
	// EqualRows is how many rows of all peers --distinct has left out.
	EqualRows int64 `json:"equal_rows,omitempty"`
	// Damaged is how many rows of this peer were left out.
	Damaged int64 `json:"damaged"`
	// DamagedRows has these rows, or the first maxDamaged of them.
	DamagedRows *read.Damaged `json:"damaged_rows,omitempty"`
	// LeftOut are the columns with too many values.
	LeftOut []string `json:"left_out,omitempty"`
	// Unrelated are the columns that predict too little of the target, with --drop-unrelated.
	Unrelated []string `json:"unrelated,omitempty"`
}

// ClassScores are scores of classes. All peers have one model, so the least and the largest area under the curve are
// the same.
type ClassScores struct {
	AUC      result.Accuracy `json:"auc"`
	Accuracy float64         `json:"accuracy"`
	PPV      float64         `json:"ppv"`
	Recall   float64         `json:"recall"`
	F1       float64         `json:"f1"`
	LogLoss  float64         `json:"logloss"`
	// Alone is the area under the curve of the models that peers have fitted on their own rows, with --alone.
	Alone *result.Accuracy `json:"auc_alone,omitempty"`
}

// Untargeted is the result of learners without a target: k-means, PCA, topics with their likeliest words,
// preferences.
type Untargeted struct {
	Inertia   *float64  `json:"inertia,omitempty"`
	Explained []float64 `json:"explained,omitempty"`
	// Perplexity and Rank are scores on the held-out rows: see learn.WordScores and learn.RankScores.
	Perplexity *float64   `json:"perplexity,omitempty"`
	Topics     [][]string `json:"topics,omitempty"`
	Rank       *float64   `json:"rank,omitempty"`
}

// Compared has results for comparison with the model that is kept.
type Compared struct {
	Apart *Apart `json:"apart,omitempty"`
	Folds *Folds `json:"folds,omitempty"`
}

// Folds has the scores of models on each of several parts of the training rows; each is fitted on the other parts.
type Folds struct {
	Count int              `json:"count"`
	AUC   *result.Accuracy `json:"auc,omitempty"`
	RMSE  *result.Accuracy `json:"rmse,omitempty"`
}

// Apart has the score of the models that peers have fitted on their own rows, combined, with --apart.
type Apart struct {
	Combine string      `json:"combine"`
	AUC     *cli.Number `json:"auc,omitempty"`
	RMSE    *float64    `json:"rmse,omitempty"`
}

// NumberScores are scores of numbers.
type NumberScores struct {
	RMSE float64 `json:"rmse"`
	MAE  float64 `json:"mae"`
	R2   float64 `json:"r2"`
}

// maxDamaged is how many damaged rows a result lists.
const maxDamaged = 20

// setAside takes over the damaged rows of reading.
func (r *Result) setAside(d read.Damaged) {
	if r.Damaged = d.Count; d.Count > 0 {
		d.First = d.First[:min(len(d.First), maxDamaged)]
		r.DamagedRows = &d
	}
}

// score takes over scores.
func (r *Result) score(s learn.Scores) {
	if c := s.Classes; c != nil {
		r.TestRows = int64(c.Rows)
		r.ClassScores = &ClassScores{AUC: result.AccuracyOf(c.AUC), Accuracy: c.Accuracy, PPV: c.PPV, Recall: c.Recall, F1: c.F1, LogLoss: c.LogLoss}
	}
	if n := s.Numbers; n != nil {
		r.TestRows = int64(n.Rows)
		r.NumberScores = &NumberScores{RMSE: n.RMSE, MAE: n.MAE, R2: n.R2}
	}
	if w := s.Words; w != nil {
		r.TestRows, r.Perplexity = int64(w.Rows), &w.Perplexity
	}
	if k := s.Ranks; k != nil {
		r.TestRows, r.Rank = int64(k.Rows), &k.Rank
	}
}

// String describes a result.
func (r Result) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s on %d rows of %s, %d columns: fitted in %.1f s with %s, %s sent.\n",
		r.Learner, r.Rows, cli.Plural(uint64(r.Peers), "peer"), r.Columns, r.Seconds, cli.Plural(uint64(r.Sums), "sum"), cli.Size(r.BytesSent))
	if r.PeersLost > 0 {
		fmt.Fprintf(&text, "%s lost on the way.\n", cli.Plural(uint64(r.PeersLost), "peer"))
	}
	if r.EqualRows > 0 {
		fmt.Fprintf(&text, "%s that others equal left out.\n", cli.Plural(uint64(r.EqualRows), "row"))
	}
	if r.DamagedRows != nil {
		text.WriteString(r.DamagedRows.String())
	}
	if c := r.ClassScores; c != nil {
		fmt.Fprintf(&text, "On %d held-out rows: AUC %.4f, accuracy %.2f %%, PPV %.3f, recall %.3f, log loss %.4f.\n",
			r.TestRows, float64(c.AUC.Mean), 100*c.Accuracy, c.PPV, c.Recall, c.LogLoss)
		if a := c.Alone; a != nil {
			fmt.Fprintf(&text, "Each peer alone, with its own rows: AUC %.4f (%.4f to %.4f).\n", float64(a.Mean), float64(a.Min), float64(a.Max))
		}
	}
	if n := r.NumberScores; n != nil {
		fmt.Fprintf(&text, "On %d held-out rows: RMSE %.4g, mean absolute error %.4g, R² %.4f.\n", r.TestRows, n.RMSE, n.MAE, n.R2)
	}
	if a := r.Apart; a != nil {
		fmt.Fprintf(&text, "Models fitted apart, combined by %s: ", a.Combine)
		if a.AUC != nil {
			fmt.Fprintf(&text, "AUC %.4f.\n", float64(*a.AUC))
		} else {
			fmt.Fprintf(&text, "RMSE %.4g.\n", *a.RMSE)
		}
	}
	if f := r.Folds; f != nil {
		name, of := "AUC", f.AUC
		if of == nil {
			name, of = "RMSE", f.RMSE
		}
		fmt.Fprintf(&text, "On each of %d folds: %s %.4g (%.4g to %.4g).\n", f.Count, name, float64(of.Mean), float64(of.Min), float64(of.Max))
	}
	if r.Inertia != nil {
		fmt.Fprintf(&text, "Inertia %.6g.\n", *r.Inertia)
	}
	if len(r.Explained) > 0 {
		fmt.Fprintf(&text, "Shares of the variance explained: %.4f\n", r.Explained)
	}
	for i, words := range r.Topics {
		fmt.Fprintf(&text, "Topic %d: %s.\n", i+1, strings.Join(words, " "))
	}
	if r.Perplexity != nil {
		fmt.Fprintf(&text, "On %d held-out documents: perplexity %.5g.\n", r.TestRows, *r.Perplexity)
	}
	if r.Rank != nil {
		fmt.Fprintf(&text, "On what was held out: expected percentile rank %.2f %% (0 is first, 50 is chance).\n", 100**r.Rank)
	}
	if r.Out != "" {
		fmt.Fprintf(&text, "The model is in %s.\n", r.Out)
	}
	return text.String()
}
