package fit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// towns has rows of which only the town tells whether y is above 5, written as a program of the
// 1990s does.
func towns(t *testing.T, header string) string {
	text := header
	for i := range 200 {
		text += fmt.Sprintf("%d;%s;%d,5;x%d\n", i, []string{"K\xf6ln", "K\xfcln"}[i%2], 10*(i%2), i)
	}
	return clitest.WriteFile(t, "towns.csv", text)
}

// A file of Windows is refused with what to give, or read as it is meant.
func TestEncodingOfFitAndPredict(t *testing.T) {
	data, model := towns(t, "n;town;y;note\n"), filepath.Join(t.TempDir(), "m")
	args := []string{"fit", "--json", "--data", data, "--target", "y>5", "--drop", "n,note", "--floor", "1", "--separator=;", "--decimal=,"}
	code, _, stderr := program.Try(args...)
	if code != cli.ExitConfig || !strings.Contains(stderr, "line 2, byte 0xf6") || !strings.Contains(stderr, "--encoding windows-1252") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if code, _, stderr := program.Try("fit", "--data", data, "--target", "y>5", "--encoding=windows-1252"); code != cli.ExitConfig || !strings.Contains(stderr, "--separator") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if _, _, stderr := program.Try("fit", "--data", data, "--target", "town", "--learner=softmax", "--floor=1", "--separator=;", "--encoding=windows-1252"); !strings.Contains(stderr, `"0,5"`) || !strings.Contains(stderr, "--decimal , reads") {
		t.Errorf("%q", stderr)
	}
	code, out, stderr := program.Try(append(args, "--encoding=windows-1252", "--out", model)...)
	if code != 0 || !strings.Contains(out, `"auc":{"mean":1,`) {
		t.Fatalf("exit code %d, %s: %s", code, out, stderr)
	}
	rows := clitest.WriteFile(t, "rows.csv", "town;z\nK\xfcln;1\n")
	if code, out, stderr := program.Try("predict", "--model", model, "--data", rows, "--separator=;", "--encoding=windows-1252"); code != 0 || !strings.Contains(out, "0,y>5,") || !strings.Contains(stderr, "1 row predicted\n") {
		t.Errorf("exit code %d, %q: %s", code, out, stderr)
	}
	if code, _, stderr := program.Try("predict", "--model", model, "--data", rows, "--separator=;"); code != cli.ExitConfig || !strings.Contains(stderr, "--encoding") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	for _, wrong := range []string{"--encoding=ebcdic", "--separator=;;", "--separator=\"", "--decimal=;", "--memory=0"} {
		if code, _, stderr := program.Try("fit", "--data", data, "--target", "y", wrong); code != cli.ExitUsage || !strings.Contains(stderr, wrong[:strings.Index(wrong, "=")]) {
			t.Errorf("%s: exit code %d, %q", wrong, code, stderr)
		}
	}
}

// Predict leaves out no row for a column that the model does not use.
func TestPredictReadsWhatTheModelUses(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m")
	fit(t, "--target", "price>200", "--drop", "note", "--out", model)
	text, err := os.ReadFile(houses)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i := range lines {
		lines[i] = "1," + lines[i]
		if i > 100 {
			lines[i] = "none" + lines[i]
		}
	}
	lines[0] = "extra" + lines[0][1:]
	code, out, stderr := program.Try("predict", "--model", model, "--data", clitest.WriteFile(t, "x.csv", strings.Join(lines, "\n")))
	if code != 0 || strings.Count(out, "\n") != 301 {
		t.Errorf("exit code %d, %d lines: %s", code, strings.Count(out, "\n"), stderr)
	}
}

// A small file that unpacks to very much is an error that says how much is held.
func TestMemoryOfRowsIsBounded(t *testing.T) {
	data := clitest.WriteFile(t, "x.csv", "a,b\n"+strings.Repeat(",1\n", 100_000))
	code, _, stderr := program.Try("fit", "--data", data, "--target", "b", "--learner", "linear", "--memory", "1")
	if code != cli.ExitConfig || !strings.Contains(stderr, "more than 1 MiB") || !strings.Contains(stderr, "--memory") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// A slip among numbers, digits that get lost and columns that are left out are told, with the way
// out; which is one.
func TestFitTellsOfColumns(t *testing.T) {
	text := "price,size,id,name\n"
	for i := range 400 {
		price := fmt.Sprint(100 + i%90)
		if i == 40 {
			price = "-"
		}
		text += fmt.Sprintf("%s,%d,%d,n%d\n", price, i%90, int64(1<<53+1)+int64(i), i)
	}
	data := clitest.WriteFile(t, "x.csv", text)
	args := []string{"fit", "--json", "--data", data, "--learner", "linear", "--target", "price", "--in-process"}
	for _, peers := range []string{"1", "2"} {
		code, _, stderr := program.Try(append(args, "--peers", peers)...)
		for _, want := range []string{`line 42 of ` + data + ` has "-", though 399 of the first 400 values are numbers`, "--numbers price", "--missing '-'"} {
			if code != 0 || strings.Count(stderr, want) != 1 {
				t.Errorf("exit code %d, %q does not say %q", code, stderr, want)
			}
		}
		code, out, stderr := program.Try(append(args, "--peers", peers, "--missing=-")...)
		if code != 0 || !strings.Contains(out, `"left_out":["name"]`) || !strings.Contains(stderr, "more than 256 values (--max-values): name") || !strings.Contains(stderr, "--categories id") {
			t.Errorf("exit code %d, %s%s", code, out, stderr)
		}
		if _, _, stderr = program.Try(append(args, "--missing=-", "--categories=id")...); !strings.Contains(stderr, "more than 256 values (--max-values): id, name") || strings.Contains(stderr, "2^53") {
			t.Errorf("%s", stderr)
		}
	}
}

// A target of two numbers is of two classes for who learns classes, and a number for who learns
// both.
func TestTargetOfTwoNumbers(t *testing.T) {
	text := "x,y\n"
	for i := range 300 {
		text += fmt.Sprintf("%d,%d\n", i%10, i%10/5)
	}
	data, model := clitest.WriteFile(t, "x.csv", text), filepath.Join(t.TempDir(), "m")
	for learner, want := range map[string]string{"logistic": `"auc":{"mean":1,`, "ridge": `"rmse":`} {
		code, out, stderr := program.Try("fit", "--json", "--data", data, "--target", "y", "--learner", learner, "--out", model, "--in-process", "--peers=3", "--shard=by=x")
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s%s", learner, code, out, stderr)
		}
		if code, out, _ := program.Try("predict", "--model", model, "--data", data); learner == "logistic" && (code != 0 || !strings.HasPrefix(out, "row,class,p(0),p(1)\n0,0,")) {
			t.Errorf("%.60s", out)
		}
	}
	if code, _, stderr := program.Try("fit", "--data", data, "--target", "x"); code != cli.ExitUsage {
		t.Errorf("ten numbers are no classes: exit code %d, %s", code, stderr)
	}
}

// A target that is not there is named once, and so is what is there.
func TestNoSuchTargetOnce(t *testing.T) {
	code, _, stderr := program.Try("fit", "--data", clitest.WriteFile(t, "x.csv", "x,y\n1,2\n"), "--target", "z", "--learner", "ridge")
	if want := `the target "z": the table has no such column (it has x, y): change --target`; code != cli.ExitConfig || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// A split that leaves nothing to learn from is named.
func TestSplitThatLeavesNothing(t *testing.T) {
	data := clitest.WriteFile(t, "x.csv", "x,y\n1,2\n")
	code, _, stderr := program.Try("fit", "--data", data, "--target", "y", "--learner", "ridge", "--split", "hash:1/1000")
	if code != cli.ExitConfig || !strings.Contains(stderr, "--split hash:1/1000 leaves no row to train") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// Dates are days and parts of them, at all members and in the model; a column that is said to be of
// categories is.
func TestFitOfDates(t *testing.T) {
	text := "day,y\n"
	for i := range 700 {
		text += fmt.Sprintf("2024-%02d-%02d,%d\n", 1+i%12, 1+i/12%28, i%12)
	}
	data, model := clitest.WriteFile(t, "x.csv", text), filepath.Join(t.TempDir(), "m")
	args := []string{"fit", "--json", "--data", data, "--target", "y", "--learner", "ridge", "--in-process", "--peers=3"}
	code, out, stderr := program.Try(append(args, "--out", model)...)
	if code != 0 || !strings.Contains(out, `"columns":3,`) || strings.Contains(out, "left_out") {
		t.Fatalf("exit code %d, %s%s", code, out, stderr)
	}
	if code, out, _ := program.Try("predict", "--model", model, "--data", clitest.WriteFile(t, "one.csv", "day\n2024-12-03\n")); code != 0 || !strings.HasPrefix(out, "row,prediction\n0,11.0") && !strings.HasPrefix(out, "row,prediction\n0,10.9") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if code, out, _ := program.Try(append(args, "--categories=day", "--max-values=10", "--learner=tree")...); code == 0 || strings.Contains(out, `"columns":3,`) {
		t.Errorf("exit code %d, %s", code, out)
	}
}
