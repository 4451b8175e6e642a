package train

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/tensor"
)

// glanced is the most held-out samples by which models are judged while they train: enough to tell half a point.
const glanced = 2000

// aim is what ends the run before its work is done. Models are evaluated if --until or --history asks for it.
func aim(t *training) (peer.Until, error) {
	aim, err := t.Aim()
	if err != nil || t.Follow != "" || len(t.Until) == 0 && (t.History == "" || t.Digests < 0) {
		return aim, err
	}
	model, err := nets.Sized(t.Model, t.work.Data.Shape(), t.work.Data.Classes(), t.Sizes) // the trainer computes with its own
	if err != nil {
		return aim, err
	}
	some := t.work.Data.HeldOut.Spread(glanced)
	aim.Evaluate = func(x tensor.Vector) (accuracy, loss float64) {
		accuracy, loss = model.Evaluate(x, some)
		t.record.Evaluated(accuracy)
		t.panel.alarms.evaluated(accuracy)
		return accuracy, loss
	}
	return aim, nil
}

// The first steps, by whose time it is estimated how long the work takes: so many, and for so long.
const (
	forecastSteps = 8
	forecastAfter = 2 * time.Second
)

// forecast tells once, early, whether the work can be done by the deadline.
func forecast(t *training, s stats.Peer) {
	trained, steps := t.elapsed(), s.Steps-s.Resumed
	if t.foretold || t.Follow != "" || t.Deadline == 0 || steps < forecastSteps || trained < forecastAfter {
		return
	}
	if t.foretold = true; t.Report && !strings.HasPrefix(t.Part, "0/") {
		return // of the peers of local, the first tells it
	}
	t.say(forecastOf(s, trained, t.Deadline))
}

// forecastOf is the forecast, from the steps that this peer took in a time.
func forecastOf(s stats.Peer, trained, deadline time.Duration) string {
	step := trained / time.Duration(s.Steps-s.Resumed)
	peers := max(s.Members, 1)
	left := time.Duration(float64(step) * float64(s.Target-min(s.FlockSteps, s.Target)) / float64(peers))
	text := fmt.Sprintf("at %s a step, %s need about %s for the work: ", step.Round(100*time.Microsecond), cli.Plural(uint64(peers), "peer"), cli.Duration(trained+left))
	if trained+left <= deadline {
		return text + fmt.Sprintf("the deadline, %s, can be kept", deadline)
	}
	return text + fmt.Sprintf("the deadline, %s, comes before, after about %.0f %% of it: the run stops there", deadline, 100*float64(deadline)/float64(trained+left))
}

// bestName is the file of the best model in the folder of the checkpoints.
const bestName = "best.safetensors"

// takeBest makes the best model the result, if it is better than the last and no final merge has made that one for all.
// It keeps the best beside the checkpoints: these hold the last, from which a run goes on.
func takeBest(t *training, s stats.Peer) (ending result.Ending) {
	ending.StoppedBy = t.StoppedBy(s.StoppedBy)
	if len(t.Until) == 0 {
		return ending
	}
	best := tensor.NewParams(t.work.Params.Layout())
	if _, _, err := t.peer.Best(best.Vector()); err != nil {
		return ending // nothing was evaluated
	}
	accuracy, loss := t.work.Model.Evaluate(best.Vector(), t.work.Data.HeldOut)
	right, lossNow := t.work.Model.Evaluate(t.work.Params.Vector(), t.work.Data.HeldOut)
	aim, _ := t.Aim()
	last := right > accuracy || right == accuracy && lossNow <= loss
	if aim.Loss > 0 && aim.Accuracy == 0 {
		last = lossNow <= loss
	}
	if last {
		accuracy = right
		copy(best.Vector(), t.work.Params.Vector())
	} else if !s.Merged {
		copy(t.work.Params.Vector(), best.Vector())
	}
	told := cli.Number(accuracy)
	ending.BestAccuracy = &told
	if t.Checkpoint == "" {
		return ending
	}
	about := map[string]string{"format": "pt", "run": t.Run, "dataset": t.Dataset, "model": t.Model}
	path := filepath.Join(t.Checkpoint, bestName)
	err := rows.About(about, t.work.Data.HeldOut, t.work.Prepared)
	if err == nil {
		err = files.Replace(path, 0o644, func(w io.Writer) error { return best.WriteSafetensors(w, about) })
	}
	if err != nil {
		t.Log.Error("the best model could not be saved; the last one is in the checkpoints", zap.String("file", path), zap.Error(err))
	}
	return ending
}
