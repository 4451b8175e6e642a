package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// houses has 300 rows: numbers, of which some are missing, categories, and a note that is
// another in each row.
const houses = "testdata/houses.csv"

// fit runs fit --json on the houses, and returns the fields.
func fit(t *testing.T, args ...string) map[string]any {
	t.Helper()
	code, out, stderr := program.Try(append([]string{"fit", "--json", "--data", houses, "--split", "row:7/10", "--max-values", "20"}, args...)...)
	if code != cli.ExitDone {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	var fields map[string]any
	clitest.LastLine(t, out, &fields)
	return fields
}

// Each learner's JSON has the fields of the contract, and several peers have the figures of one.
func TestFitOfEachLearner(t *testing.T) {
	for _, l := range learners() {
		if (learnerOptions{Name: l.name}).columns() != nil {
			continue // has a table of its own
		}
		t.Run(l.name, func(t *testing.T) {
			target, want := "price>200", []string{"auc", "accuracy", "ppv", "recall", "logloss"}
			switch l.target {
			case "":
				want = []string{map[string]string{"kmeans": "inertia", "pca": "explained"}[l.name]}
			case wantsNumber:
				target, want = "price", []string{"rmse"}
			}
			args := []string{"--learner", l.name, "--target", target, "--trees", "5", "--components", "3", "--leaf-rows", "5", "--in-process"}
			one, four := fit(t, args...), fit(t, append(args, "--peers", "4", "--shard", "by=color")...)
			for _, field := range append(want, "learner", "peers", "rows", "columns", "seconds", "bytes_sent", "sums") {
				if one[field] == nil || four[field] == nil {
					t.Fatalf("there is no %s: %v", field, one)
				}
			}
			if one["learner"] != l.name || one["peers"] != 1. || four["peers"] != 4. || one["rows"] != 210. || four["rows"] != 210. {
				t.Errorf("%v\n%v", one, four)
			}
			for _, field := range want {
				if a, b := fmt.Sprintf("%.3v", one[field]), fmt.Sprintf("%.3v", four[field]); a != b {
					t.Errorf("%s is %s for one peer, %s for four", field, a, b)
				}
			}
			if auc, ok := one["auc"].(map[string]any); ok && (auc["mean"].(float64) < 0.85 || auc["min"] != auc["max"]) {
				t.Errorf("auc %v", auc)
			}
		})
	}
}

func TestFitOfNumbers(t *testing.T) {
	if r := fit(t, "--learner", "linear", "--target", "price"); r["r2"].(float64) < 0.9 || r["auc"] != nil {
		t.Errorf("%v; want a small error, and no area under a curve", r)
	}
}

// Peers alone, each with other rows, are told beside what they reach together.
func TestFitAlone(t *testing.T) {
	r := fit(t, "--target", "price>200", "--peers", "3", "--in-process", "--shard", "by=color", "--alone")
	alone, ok := r["auc_alone"].(map[string]any)
	if !ok || !(alone["min"].(float64) <= alone["mean"].(float64)) || alone["min"].(float64) > r["auc"].(map[string]any)["mean"].(float64) {
		t.Errorf("%v", r)
	}
}

// A peer that cannot fit alone, having no rows or no value of a column, has a model of chance, and does not end what all have fitted.
func TestWhoCannotFitAlone(t *testing.T) {
	rows := strings.Builder{}
	rows.WriteString("x,kind,some,y\n")
	for i := range 300 {
		fmt.Fprintf(&rows, "%d,%c,%s,%d\n", i%17, 'a'+i%3, []string{"", "1", "2"}[i%3], i*7%11/6)
	}
	some := filepath.Join(t.TempDir(), "some.csv")
	if err := os.WriteFile(some, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, args := range map[string][]string{
		"no rows":  {"--data", houses, "--drop", "note", "--target", "price>200", "--peers", "5", "--shard", "by=color"},
		"no value": {"--data", some, "--target", "y>0", "--peers", "3", "--shard", "by=kind"},
	} {
		code, out, stderr := program.Try(append([]string{"fit", "--json", "--in-process", "--alone", "--split", "hash:7/10"}, args...)...)
		if code != cli.ExitDone {
			t.Fatalf("%s: exit code %d: %s", what, code, stderr)
		}
		var r Result
		if clitest.LastLine(t, out, &r); r.Alone == nil || float64(r.Alone.Min) > chance {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// A model predicts what fit has scored; a category with too many values is in no model.
func TestFitThenPredict(t *testing.T) {
	dir := t.TempDir()
	model, out := filepath.Join(dir, "m"), filepath.Join(dir, "p.csv")
	r := fit(t, "--target", "price>200", "--out", model)
	if text, _ := os.ReadFile(model); strings.Contains(string(text), "n,17") {
		t.Error("the model knows the notes")
	}
	code, printed, stderr := program.Try("predict", "--json", "--model", model, "--data", houses, "--out", out)
	var done struct {
		Rows, Damaged int
		Out           string
	}
	if clitest.LastLine(t, printed, &done); code != 0 || done.Rows != 300 {
		t.Fatalf("exit code %d, %d rows: %s", code, done.Rows, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(houses)
	if err != nil {
		t.Fatal(err)
	}
	lines, truth := strings.Split(string(text), "\n"), strings.Split(string(all), "\n")
	if lines[0] != "row,class,p(price<=200),p(price>200)" {
		t.Errorf("header %q", lines[0])
	}
	right, held := 0, 0
	for row := range 300 {
		if row%10 < 7 {
			continue
		}
		held++
		var price float64
		fmt.Sscan(truth[row+1][strings.LastIndex(truth[row+1], ",")+1:], &price)
		if price > 200 == strings.HasPrefix(lines[row+1], fmt.Sprintf("%d,price>200,", row)) {
			right++
		}
	}
	if got := float64(right) / float64(held); math.Abs(got-r["accuracy"].(float64)) > 1e-9 {
		t.Errorf("predictions are right for %v of the held-out rows, fit tells %v", got, r["accuracy"])
	}
	// A category of which a short file has numbers only is a category still; other columns, in
	// another order, do not matter.
	short := clitest.WriteFile(t, "short.csv", "color,garden,age,size\n7,1,NA,90\n")
	if code, out, stderr := program.Try("predict", "--model", model, "--data", short); code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--model", houses, "--data", houses}, "not a sound model file", cli.ExitConfig},
		{[]string{"--model", model, "--data", clitest.WriteFile(t, "x.csv", "size,age\n1,2\n")}, `no column "color"`, cli.ExitConfig},
		{[]string{"--model", model}, "--data is missing", cli.ExitUsage},
	} {
		if code, _, stderr := program.Try(append([]string{"predict"}, c.args...)...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, %q; want %d, %q", c.args, code, stderr, c.code, c.says)
		}
	}
}

// What is wrong with rows or flags is told by file, line or column.
func TestFitSaysWhatIsWrong(t *testing.T) {
	many := func(line string) string {
		return "a,b,y\n" + strings.Repeat("1,2,3\n2,3,9\n", 20) + line + strings.Repeat("1,2,3\n2,1,9\n", 20)
	}
	for name, c := range map[string]struct {
		text string // of the file; houses if empty
		args []string
		says []string
		code int
	}{
		"a torn last line":      {many("") + "1,2", []string{"--target=y>5", "--tolerance=-1"}, []string{"x.csv", "82"}, cli.ExitConfig},
		"wrong quotes":          {many("1,\"2\"x,3\n"), []string{"--target=y>5", "--tolerance=-1"}, []string{"x.csv", "42"}, cli.ExitConfig},
		"a column more":         {many("1,2,3,4\n"), []string{"--target=y>5", "--tolerance=-1"}, []string{"x.csv", "42"}, cli.ExitConfig},
		"one class":             {"", []string{"--target=price>100000"}, []string{"price>100000", "one class"}, cli.ExitConfig},
		"no such target":        {"", []string{"--target=prize>100"}, []string{"prize", "price"}, cli.ExitConfig},
		"all values missing":    {"a,b,y\n,1,1\n,2,2\n,3,3\n,4,4\n,5,1\n,6,2\n,7,3\n,8,4\n", []string{"--target=y>2"}, []string{`"a"`, "no value"}, cli.ExitConfig},
		"target all missing":    {"a,y\n1,\n2,\n", []string{"--target=y>2"}, []string{`"y`}, cli.ExitConfig},
		"no such file":          {"", []string{"--data=nowhere.csv", "--target=y"}, []string{"nowhere.csv"}, cli.ExitConfig},
		"no target":             {"", nil, []string{"--target is missing"}, cli.ExitUsage},
		"a target of numbers":   {"", []string{"--target=price"}, []string{"--target", "comparison"}, cli.ExitUsage},
		"no such column":        {"", []string{"--target=price>200", "--drop=colour"}, []string{"--drop colour", `"color"`}, cli.ExitUsage},
		"the target is dropped": {"", []string{"--target=price>200", "--drop=price"}, []string{"--drop price"}, cli.ExitUsage},
		"a kind of no column":   {"", []string{"--target=price>200", "--categories=colour"}, []string{`"colour"`, "color"}, cli.ExitConfig},
		"a text among numbers":  {many("x,2,3\n"), []string{"--target=y>5", "--numbers=a", "--tolerance=-1"}, []string{"x.csv line 42", `column "a"`}, cli.ExitConfig},
		"no such learner":       {"", []string{"--target=price>200", "--learner=oracle"}, []string{`"oracle"`, "logistic"}, cli.ExitUsage},
		"no such split":         {"", []string{"--target=price>200", "--split=half"}, []string{"--split"}, cli.ExitUsage},
		"no such shard":         {"", []string{"--target=price>200", "--shard=x"}, []string{"--shard"}, cli.ExitUsage},
		"no such combination":   {"", []string{"--target=price>200", "--apart=luck"}, []string{`"luck"`, "average"}, cli.ExitUsage},
		"one fold":              {"", []string{"--target=price>200", "--folds=1"}, []string{"--folds 1"}, cli.ExitUsage},
		"apart of clusters":     {"", []string{"--learner=kmeans", "--apart=vote"}, []string{"--apart"}, cli.ExitUsage},
		"apart of trees' means": {"", []string{"--target=price>200", "--learner=tree", "--apart=mean-coefficients"}, []string{"no coefficients"}, cli.ExitConfig},
		"no such user":          {"", []string{"--learner=als", "--target=price", "--user=colour", "--item=note"}, []string{"colour"}, cli.ExitConfig},
		"peers here and there":  {"", []string{"--target=price>200", "--peers=2", "--join=127.0.0.1:1"}, []string{"--peers"}, cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			data := houses
			if c.text != "" {
				data = clitest.WriteFile(t, "x.csv", c.text)
			}
			for _, peers := range []string{"--peers=1", "--peers=2"} {
				code, _, stderr := program.Try(append([]string{"fit", "--in-process", "--data", data, peers}, c.args...)...)
				if code != c.code {
					t.Errorf("%s: exit code %d, want %d: %s", peers, code, c.code, stderr)
				}
				for _, want := range c.says {
					if !strings.Contains(stderr, want) {
						t.Errorf("%s: %q does not say %q", peers, stderr, want)
					}
				}
			}
		})
	}
}

// Members that were given other settings are told which.
func TestFitOfUnlikeMembers(t *testing.T) {
	table.Together(2, func(flock table.Flock, i int) {
		task := settings.Table{}.Task(map[string]string{"learner": []string{"logistic", "svm"}[i], "target": "y"})
		_, _, err := (rows.Share{}).Prepare(t.Context(), flock, task)
		if err == nil || !strings.Contains(err.Error(), `--learner is "logistic" at one member and "svm" at another`) {
			t.Error(err)
		}
	})
}

// A result comes through the report of a child whole.
func TestResultIsReported(t *testing.T) {
	var line strings.Builder
	watch.LineReporter(&line)(outcome(Result{Learner: "pca", ClassScores: &ClassScores{Accuracy: 1}, NumberScores: &NumberScores{}}, nil))
	var report watch.Report
	if err := json.Unmarshal([]byte(line.String()), &report); err != nil || strings.Count(line.String(), "\n") != 1 {
		t.Fatalf("%q: %v", &line, err)
	}
	r, err := combine(&supervise.Peers{Rows: []*watch.Row{{Phase: watch.PhaseDone, Done: &report}}}, "")
	if err != nil || r.Learner != "pca" || r.ClassScores == nil || r.Accuracy != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Processes that sum over loopback have the model of one process, to the last byte where the
// learner's sums are exact; each tells what it has sent.
func TestFitOfProcesses(t *testing.T) {
	t.Parallel()
	args := []string{"--learner", "boost", "--target", "price>200", "--trees", "3", "--leaf-rows", "5"}
	one, three := fit(t, args...), fit(t, append(args, "--peers", "3")...)
	if one["model_hash"] != three["model_hash"] || three["peers"] != 3. || three["bytes_sent"] == 0. {
		t.Errorf("%v\n%v", one, three)
	}
}

// Clusters and components are predicted too, a number each.
func TestPredictWithoutClasses(t *testing.T) {
	for learner, header := range map[string]string{"kmeans": "row,prediction", "pca": "row,component1,component2"} {
		model := filepath.Join(t.TempDir(), "m")
		fit(t, "--learner", learner, "--target", "price", "--components", "2", "--out", model)
		code, out, stderr := program.Try("predict", "--model", model, "--data", houses)
		if lines := strings.Split(out, "\n"); code != 0 || len(lines) != 302 || lines[0] != header {
			t.Errorf("exit code %d, %d lines after %q: %s", code, len(lines), lines[0], stderr)
		}
	}
}

// Every kind of stage can be asked for, is the same at one and at several peers, processes too, and goes into the model.
func TestFitWithStages(t *testing.T) {
	t.Parallel()
	file := clitest.WriteFile(t, "stages.yaml", `
- {kind: dropmany, values: 400}
- {kind: dates}
- {kind: dropuseless}
- {kind: outliers, reach: 10}
- {kind: bins, columns: [age], count: 4}
- {kind: impute, by: median, indicator: true}
- {kind: impute, by: most-frequent}
- {kind: minmax, columns: [age]}
- {kind: standardize, columns: [size]}
- {kind: ngrams, columns: [note], count: 8}
- {kind: codes, columns: [color]}
- {kind: onehot, columns: [color]}
`)
	model := filepath.Join(t.TempDir(), "m")
	args := []string{"--target", "price>200", "--stages", file, "--max-values", "256", "--learner", "ridge"}
	one, two := fit(t, append(args, "--out", model)...), fit(t, append(args, "--peers", "2")...)
	if a, b := fmt.Sprintf("%.6v", one["auc"]), fmt.Sprintf("%.6v", two["auc"]); a != b || one["columns"] != two["columns"] || two["peers"] != 2. {
		t.Errorf("%v\n%v", one, two)
	}
	data, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	written, err := learn.Load(bytes.NewReader(data))
	if err != nil || len(written.Pipeline.Stages) != 10 { // without those that have found nothing
		t.Errorf("%v, %+v", err, written.Pipeline)
	}
	if code, out, stderr := program.Try("predict", "--model", model, "--data", houses); code != 0 || strings.Count(out, "\n") != 301 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	for _, c := range []struct{ text, says string }{
		{"- kind: onehot\n  flor: 20\n", `stages.yaml": line 2: onehot has no setting "flor"`},
		{"- kind: oneheart\n", `line 1: there is no kind of stage "oneheart"`},
	} {
		code, _, stderr := program.Try("fit", "--data", houses, "--target", "price>200", "--stages", clitest.WriteFile(t, "stages.yaml", c.text))
		if code != cli.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	}
	if code, _, stderr := program.Try("fit", "--data", houses, "--target", "price>200", "--stages", file, "--floor", "3"); code != cli.ExitUsage || !strings.Contains(stderr, "--floor") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
