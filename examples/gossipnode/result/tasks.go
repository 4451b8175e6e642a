package result

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Tasks is what became of the tasks of --tasks.
type Tasks struct {
	List []Task `json:"tasks"`
	// Twice are samples that were trained by two members, Skipped those that nobody did. InDoubt is the most that members
	// which were lost can have done since they told last: others did it again.
	Twice   int `json:"samples_twice"`
	Skipped int `json:"samples_skipped"`
	InDoubt int `json:"samples_in_doubt"`
	Plans   int `json:"plans"`
}

// Task is what one member did of a task by one plan, in seconds after the first step.
type Task struct {
	Task    string  `json:"task"`
	Member  string  `json:"member"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Samples int     `json:"samples"`
	Plan    int     `json:"plan"`
	// Accuracy is that of an evaluation.
	Accuracy *cli.Number `json:"accuracy,omitempty"`
}

// And adds what another member says; either may be nil.
func (t *Tasks) And(other *Tasks) *Tasks {
	if t == nil || other == nil {
		return t
	}
	return &Tasks{
		List: append(t.List[:len(t.List):len(t.List)], other.List...), Plans: max(t.Plans, other.Plans),
		Twice: max(t.Twice, other.Twice), Skipped: min(t.Skipped, other.Skipped), InDoubt: max(t.InDoubt, other.InDoubt),
	}
}

func (t *Tasks) sentence() string {
	if t == nil {
		return ""
	}
	samples, tasks := 0, map[string]bool{}
	for _, one := range t.List {
		samples, tasks[one.Task] = samples+one.Samples, true
	}
	return fmt.Sprintf("%d tasks by %d plans: %d samples, of which %d were trained twice, %d may have been and %d are left.\n", len(tasks), t.Plans, samples, t.Twice, t.InDoubt, t.Skipped)
}
