package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// A neural model on a table, prepared by stages of the user's, is exported with its preparation, and predicted from as
// any other: what it says of the held-out rows is what the run has scored.
func TestPredictWithANeuralModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "x,color,note,y\n"
	for i := range 600 {
		text += fmt.Sprintf("%d,%s,n%d,%d\n", i*37%101, []string{"red", "blue"}[i%2], i, i*37%101+40*(i%2))
	}
	data := clitest.WriteFile(t, "rows.csv", text)
	stages := clitest.WriteFile(t, "stages.yaml", "- kind: dropmany\n- kind: standardize\n- kind: buckets\n  count: 4\n")
	train := func(more ...string) (code int, out, stderr string) {
		return try(append([]string{"local", "--json", "--peers=2", "--in-process", "--dataset=csv", "--data", data, "--target=y>70", "--split=row:7/10"}, more...)...)
	}
	code, out, stderr := train("--stages", stages, "--checkpoint", dir)
	if code != cli.ExitDone || !strings.Contains(stderr, "420 rows train as 5 numbers each") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	accuracy := float64(lastLine(t, out).TestAccuracy.Mean)
	model, predicted := filepath.Join(dir, "m.safetensors"), filepath.Join(dir, "p.csv")
	for _, args := range [][]string{
		{"export", filepath.Join(dir, "peer-0"), "--out", model},
		{"predict", "--model", model, "--data", data, "--out", predicted},
	} {
		if code, _, stderr := try(args...); code != cli.ExitDone {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr)
		}
	}
	said, err := os.ReadFile(predicted)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for row, line := range strings.Split(string(said), "\n")[1:601] {
		if y := row*37%101 + 40*(row%2); row%10 >= 7 && strings.HasPrefix(line, fmt.Sprintf("%d,y>70,", row)) == (y > 70) {
			right++
		}
	}
	if got := float64(right) / 180; got != accuracy || accuracy < 0.9 {
		t.Errorf("predictions are right for %v of the held-out rows, the run tells %v", got, accuracy)
	}
	names, err := filepath.Glob(filepath.Join(dir, "peer-0", "*.safetensors"))
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	pipeline := filepath.Join(dir, "pipeline.json")
	moved := clitest.WriteFile(t, "p.json", "")
	if err := os.Rename(pipeline, moved); err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(dir, "without.safetensors")
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"predict", "--model", names[0], "--data", data}, "gossipnode export", cli.ExitConfig},
		{[]string{"export", names[0], "--out", without}, "", cli.ExitDone},
		{[]string{"predict", "--model", without, "--data", data}, "export it again, with pipeline.json beside", cli.ExitConfig},
		{[]string{"export", names[0], "--out", without, "--force", "--pipeline", pipeline}, "--pipeline", cli.ExitConfig},
		{[]string{"export", names[0], "--out", without, "--force", "--pipeline", moved}, "", cli.ExitDone},
		{[]string{"predict", "--model", without, "--data", data, "--out", predicted}, "", cli.ExitDone},
	} {
		if code, _, stderr := try(c.args...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d: %s", c.args, code, stderr)
		}
	}
	code, _, stderr = train("--stages", clitest.WriteFile(t, "other.yaml", "- kind: dropmany\n- kind: standardize\n"))
	if code != cli.ExitConfig || !strings.Contains(stderr, `"color" is of categories as it is prepared`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A model of pictures is exported with what its pictures are like, and predicted from: what it says of the held-out ones is
// what the run has scored. So is the best model, which the run keeps itself.
func TestPredictPictures(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), clitest.Pictures(t, 400, 200)
	code, out, stderr := try(localArgs(data, "--in-process", "--peers", "2", "--hidden", "200", "--steps", "300", "--step-time", "2ms", "--checkpoint", dir, "--until", "accuracy=1")...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	set, err := dataset.Load(t.Context(), dataset.Config{Name: "mnist", Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, 1, 1+set.HeldOut.Len())
	for i := range set.HeldOut.Len() {
		lines = append(lines, strings.Trim(strings.ReplaceAll(fmt.Sprint(set.HeldOut.Label(i), set.HeldOut.Image(i)), " ", ","), "]"))
		lines[i+1] = strings.Replace(lines[i+1], "[", "", 1)
	}
	lines[0] = "label"
	for i := range 28 * 28 {
		lines[0] += fmt.Sprint(",pixel", i)
	}
	pictures, predicted := clitest.WriteFile(t, "pictures.csv", strings.Join(lines, "\n")), filepath.Join(dir, "p.csv")
	accuracy := func(model string) float64 {
		t.Helper()
		if code, _, stderr := try("predict", "--model", model, "--data", pictures, "--out", predicted); code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		said, err := os.ReadFile(predicted)
		if err != nil {
			t.Fatal(err)
		}
		right := 0
		for i, line := range strings.Split(strings.TrimSpace(string(said)), "\n")[1:] {
			if strings.HasPrefix(line, fmt.Sprintf("%d,%d,", i, set.HeldOut.Label(i))) {
				right++
			}
		}
		return float64(right) / float64(set.HeldOut.Len())
	}
	model := filepath.Join(dir, "m.safetensors")
	if code, _, stderr := try("export", filepath.Join(dir, "peer-0"), "--out", model); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	told := lastLine(t, out)
	if got, want := accuracy(model), float64(told.TestAccuracy.Mean); got < want-0.05 || got > want+0.05 || want < 0.3 {
		t.Errorf("predictions are right for %v of the held-out pictures, the run tells %v", got, want)
	}
	if got, want := accuracy(filepath.Join(dir, "peer-0", "best.safetensors")), float64(*told.BestAccuracy); got < want-0.05 || got > want+0.05 {
		t.Errorf("predictions of the best are right for %v, the run tells %v", got, want)
	}
	for says, text := range map[string]string{
		`no column "pixel3"`:       "pixel0,pixel1,pixel2\n1,2,3\n",
		"pixel0 of row 1 is 256":   strings.Join(lines[:1], "") + "\n0,256" + strings.Repeat(",0", 783),
		"pixel783 of row 1 is NaN": strings.Join(lines[:1], "") + "\n0" + strings.Repeat(",0", 783) + ",",
	} {
		if code, _, stderr := try("predict", "--model", model, "--data", clitest.WriteFile(t, "wrong.csv", text)); code == cli.ExitDone || !strings.Contains(stderr, says) {
			t.Errorf("want %q: exit code %d: %s", says, code, stderr)
		}
	}
}
