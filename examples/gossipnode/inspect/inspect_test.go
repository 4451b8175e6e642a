package inspect

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestInspect shows what is told of a checkpoint: in words, and as JSON.
func TestInspect(t *testing.T) {
	c := checkpoint.Folder{Dir: filepath.Join(t.TempDir(), "folder"), Run: "r", Dataset: "d", Model: "m", Keep: 9}
	if err := c.Probe(); err != nil {
		t.Fatal(err)
	}
	keep(t, c, 4, []int{2}, nil)
	path := keep(t, c, 5, []int{2}, nil)
	code, text, logged := try("inspect", path)
	for _, want := range []string{
		"checkpoint-000002", "step       5 of this peer, 20 of the flock, 10 in the model; incarnation 2", "weight              [2]    2       5.01", "optimizer/velocity",
	} {
		if code != cli.ExitDone || !strings.Contains(text, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, text, logged)
		}
	}
	code, text, _ = try("inspect", c.Dir, "--json")
	var found Inspection
	if err := json.Unmarshal([]byte(text), &found); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, error %v", code, err)
	}
	if p := found.Progress; p == nil || p.Step != 5 || p.FlockSteps != 20 || p.Age != 10 || p.Incarnation != 2 || p.Others != 2 || p.Optimizer != "sgd" {
		t.Errorf("%+v", found.Progress)
	}
	want := math.Sqrt(25 + 1.0/9) // 5 and 1/3, without the optimizer's 7
	if found.File != path || found.Kind != "checkpoint" || !found.Sound || found.Values != 2 || len(found.Tensors) != 2 ||
		math.Abs(float64(found.Norm)-want) > 1e-6 || !slices.Equal(found.Tensors[0].Shape, []int{2}) {
		t.Errorf("%+v", found)
	}
	for name, spoil := range map[string]func(map[string]string){
		"is damaged":  func(m map[string]string) { m["crc32c"] = "00000000" },
		"of format 4": func(m map[string]string) { m["format"] = "murmuration-checkpoint-4" },
		"its ledger":  func(m map[string]string) { m["ledger"] = "{" },
	} {
		if code, _, logged := try("inspect", keep(t, c, 6, []int{2}, spoil)); code != cli.ExitFailed || !strings.Contains(logged, name) {
			t.Errorf("%s: exit code %d\n%s", name, code, logged)
		}
	}
	damaged := keep(t, c, 7, []int{2}, func(m map[string]string) { m["crc32c"] = "00000000" })
	if err := os.Truncate(keep(t, c, 8, []int{2}, nil), 100); err != nil {
		t.Fatal(err)
	}
	if code, _, logged := try("inspect", c.Dir); code != cli.ExitFailed || !strings.Contains(logged, "the one before it is "+damaged) {
		t.Errorf("a folder whose newest is torn: exit code %d\n%s", code, logged)
	}
	if code, _, logged := try("inspect", c.Dir+"-none"); code != cli.ExitConfig || !strings.Contains(logged, "looking for a checkpoint: ") {
		t.Errorf("no folder: exit code %d\n%s", code, logged)
	}
	if code, _, logged := try("inspect"); code != cli.ExitUsage || !strings.Contains(logged, "takes one file") {
		t.Errorf("no file: exit code %d\n%s", code, logged)
	}
	if code, _, logged := try("inspect", t.TempDir()); code != cli.ExitConfig || !strings.Contains(logged, "no checkpoint in") {
		t.Errorf("an empty folder: exit code %d\n%s", code, logged)
	}
}

// TestInWords shows that a schedule is told in words, and one that is none as plain text.
func TestInWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"Rate":0.03,"Warmup":0.05,"Shape":0,"At":null,"Factor":0}`: "cosine, rate 0.03, warm-up 0.05",
		`{"Rate":1,"Shape":2}`: "step, rate 1, warm-up 0",
		`{"Rate":1,"Shape":9}`: `"{\"Rate\":1,\"Shape\":9}"`,
		"\"\u009b2J\"":         `"\"\u009b2J\""`,
	} {
		if got := InWords(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestInspectedTextIsPlain shows that a file cannot write to the terminal of who looks
// at it.
func TestInspectedTextIsPlain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evil.safetensors")
	write(t, path, smallParams(t, 2), map[string]string{"a\x1b[2J": "b\x1b]0;x\a"})
	code, text, _ := try("inspect", path)
	if code != cli.ExitDone || strings.ContainsAny(text, "\x1b\a") || !strings.Contains(text, "kind") {
		t.Errorf("exit code %d\n%q", code, text)
	}
}

// readWithPython is what another program makes of a safetensors file, with nothing of
// ours: the sums of its tensors, by name. It uses the format's own library where it is.
const readWithPython = `
import json, struct, sys
path = sys.argv[1]
try:
    from safetensors.numpy import load_file
    sums = {name: [list(v.shape), float(v.sum())] for name, v in load_file(path).items()}
except ImportError:
    raw = open(path, "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + n])
    assert header.pop("__metadata__")["format"] == "pt"
    sums = {}
    for name, t in header.items():
        assert t["dtype"] == "F32"
        data = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
        sums[name] = [t["shape"], sum(struct.unpack("<%df" % (len(data) // 4), data))]
print(json.dumps(sums))
`

// TestExport shows that what is exported is the model, all of it and nothing else, and
// that another program reads it.
func TestExport(t *testing.T) {
	c := checkpoint.Folder{Dir: filepath.Join(t.TempDir(), "folder"), Run: "r", Dataset: "d", Model: "m", Keep: 9}
	if err := c.Probe(); err != nil {
		t.Fatal(err)
	}
	keep(t, c, 5, []int{2, 3}, nil)
	out := filepath.Join(t.TempDir(), "model.safetensors")
	code, text, logged := try("export", c.Dir, "--out", out)
	if code != cli.ExitDone || !strings.Contains(text, "1 tensor, 6 values") {
		t.Fatalf("exit code %d\n%s%s", code, text, logged)
	}
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	into := smallParams(t, 2, 3)
	clear(into.Vector())
	metadata, err := into.LoadSafetensors(file)
	want := smallParams(t, 2, 3).Vector()
	want[0] = 5
	if err != nil || !slices.Equal(into.Vector(), want) || metadata["steps"] != "5" || metadata["ledger"] != "" {
		t.Errorf("%v, metadata %v, error %v", into.Vector(), metadata, err)
	}
	var printed exported
	code, text, _ = try("export", c.Dir, "--out", out, "--force", "--json")
	if err := json.Unmarshal([]byte(text), &printed); code != cli.ExitDone || err != nil || printed.File != out || printed.Tensors != 1 || printed.Values != 6 {
		t.Errorf("--json: exit code %d, %q (%v)", code, text, err)
	}
	if code, _, logged := try("export", c.Dir, "--out", filepath.Dir(out), "--force"); code != cli.ExitUsage || !strings.Contains(logged, "is a folder") {
		t.Errorf("to a folder: exit code %d\n%s", code, logged)
	}
	if code, _, logged := try("export", c.Dir, "--out", out); code != cli.ExitUsage || !strings.Contains(logged, "--force") {
		t.Errorf("over a file that is there: exit code %d\n%s", code, logged)
	}
	if code, _, logged := try("export", c.Dir, "--out", out, "--force"); code != cli.ExitDone {
		t.Errorf("with --force: exit code %d\n%s", code, logged)
	}
	if files, _ := os.ReadDir(filepath.Dir(out)); len(files) != 1 {
		t.Errorf("%d files beside it", len(files)-1)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to read the file with")
	}
	read, err := exec.Command(python, "-c", readWithPython, out).CombinedOutput()
	var sums map[string][2]any
	if err != nil || json.Unmarshal(read, &sums) != nil || len(sums) != 1 {
		t.Fatalf("python: %v\n%s", err, read)
	}
	sum := float64(5+1+2+3+4+5)/3 + 10.0/3 // 5, 1/3, 2/3 ... 5/3
	if got := sums["weight"][1].(float64); math.Abs(got-sum) > 1e-5 {
		t.Errorf("python sums %v, want %g", sums, sum)
	}
}
