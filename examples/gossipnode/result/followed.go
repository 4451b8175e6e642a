package result

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Followed is what became of the data that arrived, with --follow.
type Followed struct {
	Policy    string `json:"policy"`
	Trainings int    `json:"trainings"`
	// MeanAccuracyOverTime is the accuracy of the model on the newest rows, before they were trained on, in the mean over
	// time; in local, of all peers. Null if nothing has come.
	MeanAccuracyOverTime cli.Number `json:"mean_accuracy_over_time"`
	// Arrived counts rows that have come, Waiting those that no training has seen yet, Kept old ones that are kept, and Refused
	// files that could not be read.
	Arrived int `json:"arrived_rows"`
	Waiting int `json:"waiting_rows"`
	Kept    int `json:"kept_rows"`
	Refused int `json:"refused_files"`
}

// FollowedOf is what several peers say, nil if they follow nothing.
func FollowedOf(shares []Share) (all *Followed) {
	var accuracy cli.Mean
	for _, s := range shares {
		f := s.Result.Followed
		if f == nil {
			continue
		}
		if all == nil {
			all = &Followed{Policy: f.Policy}
		}
		all.Trainings, all.Arrived, all.Waiting = max(all.Trainings, f.Trainings), all.Arrived+f.Arrived, all.Waiting+f.Waiting
		all.Kept, all.Refused = all.Kept+f.Kept, max(all.Refused, f.Refused)
		accuracy.Add(f.MeanAccuracyOverTime)
		all.MeanAccuracyOverTime = accuracy.Value()
	}
	return all
}

func (f *Followed) sentence() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s by policy %s; accuracy over time %s. Rows: %d came, %d wait, %d old ones are kept; %d files could not be read.\n",
		cli.Plural(uint64(f.Trainings), "training"), f.Policy, cli.Percent(f.MeanAccuracyOverTime), f.Arrived, f.Waiting, f.Kept, f.Refused)
}
