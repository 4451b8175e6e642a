package fit

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// Topics of a column of texts are found, told by their words, and predicted, the same whoever holds which text.
func TestFitOfTopics(t *testing.T) {
	sea, wood := "fish wave salt ship sail", "oak fox leaf moss path"
	var text strings.Builder
	text.WriteString("id,body,when\n")
	for row := range 120 {
		words := strings.Fields([]string{sea, wood}[row%2])
		fmt.Fprintf(&text, "%d,\"The %s, %s and %s: %d.\",2013\n", row, words[row%5], words[row/5%5], words[row/2%5], row)
	}
	model := filepath.Join(t.TempDir(), "m")
	args := []string{"--learner=lda", "--text=body", "--topics=2", "--iterations=30", "--smoothing=0.1", "--floor=3"}
	one, three := fitOf(t, text.String(), append(args, "--out", model)...), fitOf(t, text.String(), append(args, "--peers=3", "--on-disk")...)
	if one["model_hash"] != three["model_hash"] || one["columns"] != 1. || one["test_rows"] != three["test_rows"] || one["perplexity"].(float64) > 15 || fmt.Sprintf("%.9g", one["perplexity"]) != fmt.Sprintf("%.9g", three["perplexity"]) {
		t.Errorf("%v\n%v", one, three)
	}
	for _, words := range one["topics"].([]any) {
		first := fmt.Sprint(words.([]any)[:5]...)
		for _, word := range words.([]any)[:5] {
			if strings.Contains(sea, word.(string)) != strings.Contains(sea, words.([]any)[0].(string)) {
				t.Errorf("a topic of %s", first)
			}
		}
	}
	code, out, stderr := program.Try("predict", "--model", model, "--data", clitest.WriteFile(t, "y.csv", "body\na fox on the path\nnothing\n"))
	if lines := strings.Split(out, "\n"); code != 0 || len(lines) != 4 || lines[2] != "1,0.5,0.5" {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// What users had is learned with and without how often, whoever holds which users.
func TestFitOfPreferences(t *testing.T) {
	var text strings.Builder
	text.WriteString("who,song,times\n")
	for user := range 45 {
		for song := range 24 {
			if user%3 == song%3 && (user/3+song/3)%2 == 0 {
				fmt.Fprintf(&text, "%d,s%d,%d\n", user, song, 1+user%3)
			}
		}
	}
	model := filepath.Join(t.TempDir(), "m")
	args := []string{"--learner=implicit-als", "--user=who", "--item=song", "--factors=3", "--iterations=8", "--confidence=10"}
	for _, target := range [][]string{{}, {"--target=times"}} {
		one, three := fitOf(t, text.String(), append(append(args, target...), "--out", model)...), fitOf(t, text.String(), append(append(args, target...), "--peers=3")...)
		if one["rank"] == nil || one["rmse"] != nil || !(one["rank"].(float64) < 0.4) || fmt.Sprintf("%.6g", one["rank"]) != fmt.Sprintf("%.6g", three["rank"]) || one["columns"] != 2. {
			t.Errorf("%v\n%v", one, three)
		}
	}
	code, out, stderr := program.Try("predict", "--model", model, "--data", clitest.WriteFile(t, "y.csv", "song,who\ns3,nobody\n"))
	if code != 0 || !strings.Contains(out, "0,0\n") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// --iterations and --smoothing reach the learners that have them, and are refused for the others, which are told.
func TestIterationsAndSmoothing(t *testing.T) {
	for _, l := range learners() {
		for flag, of := range map[string][]string{"--iterations=3": iterating, "--smoothing=500": smoothing} {
			usual := l.make(learnerOptions{Name: l.name, Penalty: 1})
			o := learnerOptions{Name: l.name, Penalty: 1, treeOptions: treeOptions{Trees: 1, Rate: 1}, Clusters: 1, Factors: 1, Topics: 1, Confidence: 1}
			if flag == "--iterations=3" {
				o.Iterations = 3
			} else {
				o.Smoothing = 500
			}
			has := strings.Contains(" "+strings.Join(of, " ")+" ", " "+l.name+" ")
			err := o.faults()
			if (err == nil) != has || !has && !strings.Contains(err.Error(), of[0]) {
				t.Errorf("%s %s: %v", l.name, flag, err)
			}
			made := l.make(learnerOptions{Name: l.name, Penalty: 1, Iterations: o.Iterations, Smoothing: o.Smoothing})
			if reflect.DeepEqual(made, usual) == has {
				t.Errorf("%s %s: %+v", l.name, flag, made)
			}
		}
	}
	code, _, stderr := program.Try("fit", "--data", houses, "--target=price>200", "--learner=tree", "--iterations=3")
	if code != cli.ExitUsage || !strings.Contains(stderr, "--iterations is for logistic") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	few, many := fit(t, "--target=price>200", "--iterations=1"), fit(t, "--target=price>200")
	if few["model_hash"] == many["model_hash"] || few["sums"].(float64) >= many["sums"].(float64) {
		t.Errorf("%v\n%v", few, many)
	}
}

// Rows that stay in their files make the same model.
func TestFitOnDisk(t *testing.T) {
	for _, peers := range []string{"--peers=1", "--peers=3"} {
		held, read := fit(t, "--target=price>200", "--in-process", peers), fit(t, "--target=price>200", "--in-process", peers, "--on-disk")
		for _, key := range []string{"model_hash", "rows", "test_rows", "damaged", "auc", "left_out"} {
			if !reflect.DeepEqual(held[key], read[key]) {
				t.Errorf("%s: %s is %v in memory and %v on disk", peers, key, held[key], read[key])
			}
		}
	}
}
