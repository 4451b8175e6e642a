package fit

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// fitOf runs fit --json in this process on a file of its own.
func fitOf(t *testing.T, text string, args ...string) map[string]any {
	t.Helper()
	file := clitest.WriteFile(t, "x.csv", text)
	code, out, stderr := program.Try(append([]string{"fit", "--json", "--in-process", "--data", file}, args...)...)
	if code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	var fields map[string]any
	clitest.LastLine(t, out, &fields)
	return fields
}

// Ratings are learned whoever holds which users, whose numbers are names here; what a peer
// writes predicts for its own users.
func TestFitOfRatings(t *testing.T) {
	var text strings.Builder
	text.WriteString("who,film,when,stars\n")
	for user := range 40 {
		for film := range 25 {
			stars := 3 + math.Sin(float64(user))*math.Cos(float64(3*film)) + math.Cos(float64(2*user))*math.Sin(float64(film))
			fmt.Fprintf(&text, "%d,film %d,2013,%.3f\n", user, film, stars)
		}
	}
	model := filepath.Join(t.TempDir(), "m")
	args := []string{"--learner", "als", "--user", "who", "--item", "film", "--target", "stars", "--factors", "2"}
	one, three := fitOf(t, text.String(), append(args, "--out", model)...), fitOf(t, text.String(), append(args, "--peers", "3")...)
	if a, b := one["rmse"].(float64), three["rmse"].(float64); a > 0.2 || math.Abs(a-b) > 1e-6 || one["rows"] != three["rows"] || one["columns"] != 2. {
		t.Errorf("%v\n%v", one, three)
	}
	apart := append([]string{"fit", "--in-process", "--data", clitest.WriteFile(t, "x.csv", text.String()), "--peers=3", "--shard=rows"}, args...)
	if code, _, stderr := program.Try(apart...); code == 0 || !strings.Contains(stderr, "--shard by=") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	code, out, stderr := program.Try("predict", "--model", model, "--data", clitest.WriteFile(t, "y.csv", "film,who\nfilm 3,7\nfilm 3,none\n"))
	if lines := strings.Split(out, "\n"); code != 0 || len(lines) != 4 || lines[1][2:] == lines[2][2:] {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// Equal rows at several peers count once, and none of those that are held out is left out.
func TestFitOfDistinctRows(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,id,y\n")
	for row := range 120 {
		fmt.Fprintf(&text, "%d,%d,%d\n", row%30, row, row%30%7)
	}
	args := []string{"--target", "y>3", "--drop", "id", "--split", "row:9/10", "--distinct"}
	for _, peers := range []string{"--peers=1", "--peers=3"} {
		if r := fitOf(t, text.String(), append(args, peers)...); r["rows"] != 27. || r["equal_rows"] != 81. || r["test_rows"] != 12. {
			t.Errorf("%s: %v", peers, r)
		}
	}
}

// Models that were fitted apart are scored beside the one of all, combined in each way, and so are
// those of folds.
func TestFitComparesModels(t *testing.T) {
	for combine, least := range map[string]float64{"average": 0.8, "vote": 0.7, "stack": 0.8, "mean-coefficients": 0.7} {
		r := fit(t, "--target", "price>200", "--peers", "3", "--in-process", "--apart", combine)
		apart, ok := r["apart"].(map[string]any)
		if !ok || apart["combine"] != combine || apart["auc"].(float64) < least || apart["auc"] == r["auc"].(map[string]any)["mean"] {
			t.Errorf("%s: %v", combine, r)
		}
	}
	r := fit(t, "--target", "price>200", "--peers", "3", "--in-process", "--folds", "4")
	folds, ok := r["folds"].(map[string]any)
	if !ok || folds["count"] != 4. || folds["rmse"] != nil {
		t.Fatalf("%v", r)
	}
	if of := folds["auc"].(map[string]any); !(of["min"].(float64) > 0.7 && of["min"].(float64) < of["max"].(float64)) {
		t.Errorf("%v", folds)
	}
	r = fit(t, "--learner", "ridge", "--target", "price", "--apart", "average")
	if apart := r["apart"].(map[string]any); apart["rmse"] != r["rmse"] || apart["auc"] != nil || r["folds"] != nil { // of one peer, its own
		t.Errorf("%v", r)
	}
}
