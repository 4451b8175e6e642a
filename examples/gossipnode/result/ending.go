package result

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Ending tells what ended a run.
type Ending struct {
	// StoppedBy is accuracy, loss, plateau or deadline; operator; or epochs or steps if the work was done. In local, it is
	// mixed if that differs between peers.
	StoppedBy string `json:"stopped_by,omitempty"`
	// BestAccuracy is that of the best model that the peer has evaluated, which is the result, unless a final merge has made
	// another; in local, the best of all peers. Nil if the run evaluates none before its end.
	BestAccuracy *cli.Number `json:"best_accuracy,omitempty"`
}

// sentence says in words what ended a run before its work was done; nothing if nothing did.
func (e Ending) sentence() string {
	text := ""
	switch e.StoppedBy {
	case "accuracy", "loss":
		text = fmt.Sprintf("Stopped: the %s aimed at was reached.\n", e.StoppedBy)
	case "plateau":
		text = "Stopped: the models got no better.\n"
	case "deadline":
		text = "Stopped at the deadline.\n"
	}
	if e.BestAccuracy != nil {
		text += fmt.Sprintf("The best model was kept: %s.\n", cli.Percent(*e.BestAccuracy))
	}
	return text
}

// And adds another peer of the run.
func (e *Ending) And(other Ending) {
	if e.StoppedBy != other.StoppedBy {
		e.StoppedBy = "mixed"
	}
	if other.BestAccuracy != nil && (e.BestAccuracy == nil || *e.BestAccuracy < *other.BestAccuracy) {
		e.BestAccuracy = other.BestAccuracy
	}
}
