package plan

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var program = clitest.Only(Command)

func TestMain(m *testing.M) { program.Main(m) }

// The example is planned: its deadlines are kept, and JSON has the fields of the contract.
func TestExample(t *testing.T) {
	code, out, stderr := program.Try("plan", "example.yaml", "--json")
	var fields struct {
		Makespan, Bound float64
		Feasible        bool
		Assignments     []struct {
			Task, Member string
			Start, End   float64
		}
	}
	if err := json.Unmarshal([]byte(out), &fields); code != cli.ExitDone || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	for _, name := range []string{`"makespan":`, `"bound":`, `"feasible":true`, `"assignments":[{"task":`, `"member":`, `"start":`, `"end":`} {
		if !strings.Contains(out, name) {
			t.Errorf("no %s in %s", name, out)
		}
	}
	if fields.Bound <= 0 || fields.Makespan < fields.Bound || len(fields.Assignments) < 4 {
		t.Errorf("%+v", fields)
	}
	for _, want := range []string{"4 tasks on 4 members", "monday's shard", "deadline, s", "come to 0.9"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	if again, out2, _ := program.Try("plan", "example.yaml", "--json"); again != code || out2 != out {
		t.Error("a second run gives another plan")
	}
}

// write makes a file of tasks.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What cannot be done in time is named, with the seconds that are missing; the plan is printed nevertheless.
func TestInfeasible(t *testing.T) {
	path := write(t, "members: [{name: a, speed: 10, memory: 5}]\ntasks:\n - {name: x, kind: fit, samples: 100, deadline: 4}\n - {name: y, kind: fit, samples: 1, memory: 9}\n")
	code, out, stderr := program.Try("plan", path, "--json")
	if code != cli.ExitFailed || !strings.Contains(out, `"feasible":false`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, want := range []string{`task "x" misses its deadline at 4 s by 6 s`, `task "y" needs more memory than any member has`, "missed by 6", "nobody, for lack of memory"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
}

// Faults of a file name the line and what to write.
func TestFaults(t *testing.T) {
	const good = "members: [{name: a, speed: 10}]\ntasks:\n"
	for _, c := range []struct{ text, want string }{
		{"", "want tasks"},
		{"- 1", "line 1: want a mapping"},
		{"tasks: [", "line 1:"},
		{good + " - {name: x, kind: fit, samples: 1, dedline: 4}", "line 3: field dedline is not known of a Task"},
		{good + " - {name: x, kind: fit, samples: many}", "line 3: cannot unmarshal"},
		{good + " - {name: x, kind: fit, samples: 1}\n - {name: x, kind: fit, samples: 1}", `line 4: task "x": invalid: name: want one of its own`},
		{good + " - {name: x, kind: fit, samples: 0}", `line 3: task "x": invalid: samples 0: want 1 to`},
		{good + " - {name: x, kind: race, samples: 1}", `line 3: task "x": invalid: kind "race": want fit, epoch or evaluation`},
		{good + " - {name: x, kind: epoch, samples: 1, most: 2}", "only an epoch with a curve"},
		{"members: [{name: a}]\ntasks: [{name: x, kind: fit, samples: 1}]", `line 1: member "a": invalid: speed 0: want more than 0`},
		{"weights: {time: -1}\n" + good + " - {name: x, kind: fit, samples: 1}", "weight of time -1: want a number from 0"},
	} {
		if code, _, stderr := program.Try("plan", write(t, c.text)); code != cli.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, no %q in\n%s", c.text, code, c.want, stderr)
		}
	}
	for _, args := range [][]string{{"plan"}, {"plan", "a", "b"}, {"plan", "missing.yaml"}, {"plan", "example.yaml", "--out", "x.pdf"}} {
		if code, _, _ := program.Try(args...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

// The drawing is XML with a bar for each assignment, or a PNG.
func TestDrawing(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"plan.svg", "plan.png"} {
		path := filepath.Join(folder, name)
		if code, _, stderr := program.Try("plan", "example.yaml", "--out", path); code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if strings.HasSuffix(name, "png") {
			if picture, err := png.Decode(file); err != nil || picture.Bounds().Dx() < 800 {
				t.Errorf("no picture: %v", err)
			}
			continue
		}
		shapes := 0
		for decoder := xml.NewDecoder(file); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if element, ok := token.(xml.StartElement); ok && element.Name.Local == "path" {
				shapes++
			}
		}
		if shapes < 8 {
			t.Errorf("%d shapes", shapes)
		}
	}
}

// FuzzRead: whatever a file holds, it is refused, or can be planned with.
func FuzzRead(f *testing.F) {
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "tasks.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(path); err == nil && s.Validate() != nil {
			t.Error(s.Validate())
		}
	})
}
