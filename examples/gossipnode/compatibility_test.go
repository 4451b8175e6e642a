package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

var keepFiles = flag.String("keep", "", "folder for TestKeepFiles to write files of this build into, such as ../../testdata/v0.2.0; it must not exist")

// said is a command on the files of a release, and what the build that wrote them made of it.
type said struct {
	Args []string // KEPT is the folder of the files, TEMP one that each of the checks may write into
	Out  json.RawMessage
}

// The runs whose files are kept. They are small, and go on from their checkpoints.
func tableRun(folder, steps string) []string {
	return []string{"run", "--dataset", "csv", "--data", "KEPT/rows.csv", "--target", "delay>15", "--split", "row:7/10", "--floor", "5", "--model", "mlp", "--batch", "16", "--lr", "0.05",
		"--steps", steps, "--listen", settings.Loopback, "--key", "KEPT/node.key", "--checkpoint", folder, "--json"}
}

func stagesRun(folder, steps string) []string {
	return []string{"local", "--in-process", "--peers", "2", "--stages", "2", "--dataset", "text", "--data", "KEPT/texts", "--model", "gpt", "--layers", "2", "--width", "8", "--heads", "2",
		"--context", "16", "--batch", "8", "--steps", steps, "--checkpoint", folder, "--json"}
}

// keptChecks are the commands whose output is kept, and of JSON the fields that are: all if none is named.
var keptChecks = []struct {
	args   []string
	fields []string
}{
	{args: []string{"inspect", "KEPT/table", "--json"}},
	{args: []string{"inspect", "KEPT/table/pipeline.json", "--json"}},
	{args: []string{"inspect", "KEPT/mlp.safetensors", "--json"}},
	{args: []string{"inspect", "KEPT/boost.model", "--json"}},
	{args: []string{"predict", "--model", "KEPT/mlp.safetensors", "--data", "KEPT/rows.csv"}},
	{args: []string{"predict", "--model", "KEPT/boost.model", "--data", "KEPT/rows.csv"}},
	{args: []string{"predict", "--model", "KEPT/ridge.model", "--data", "KEPT/rows.csv"}},
	{args: []string{"inspect", "KEPT/stages/peer-0", "--json"}},
	{args: []string{"inspect", "KEPT/stages/peer-1", "--json"}},
	{args: []string{"export", "KEPT/stages/peer-0", "KEPT/stages/peer-1", "--out", "TEMP/whole.safetensors", "--json"}, fields: []string{"tensors", "values"}},
	{args: []string{"inspect", "TEMP/whole.safetensors", "--json"}, fields: []string{"kind", "values", "norm", "tensors"}},
	{args: []string{"simulate", "--replay", "KEPT/recording.jsonl", "--model", "softmax", "--steps", "10", "--json"}, fields: []string{"peers", "joined", "stopped_by"}},
	{args: []string{"plot", "KEPT/history.jsonl", "--out", "TEMP/history.svg", "--json"}, fields: []string{"peers", "lines", "moments", "spoilt"}},
}

// within puts folders into a command line.
func within(kept, temp string, args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		args[i] = strings.NewReplacer("KEPT", kept, "TEMP", temp).Replace(a)
	}
	return args
}

// TestKeepFiles writes files of this build for all later ones to read: TestKeptFiles does.
func TestKeepFiles(t *testing.T) {
	if *keepFiles == "" {
		t.Skip("give -keep with the folder of a new release")
	}
	if err := os.Mkdir(*keepFiles, 0o755); err != nil {
		t.Fatalf("files of a release are never written anew: %v", err)
	}
	rows := "distance,hour,carrier,delay\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,%d,%s,%d\n", 200+i*37%900, i*7%24, []string{"UA", "DL", "AA"}[i%3], 2*(i*7%24)-12+i%5)
	}
	for name, text := range map[string]string{"rows.csv": rows, "texts/text.txt": strings.Repeat("Each bird watches a handful of others. ", 60)} {
		path := filepath.Join(*keepFiles, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	temp := t.TempDir()
	do := func(args ...string) string {
		t.Helper()
		code, out, logged := try(within(*keepFiles, temp, args)...)
		if code != cli.ExitDone {
			t.Fatalf("%v: exit code %d\n%s", args, code, logged)
		}
		return out
	}
	fit := []string{"fit", "--data", "KEPT/rows.csv", "--split", "row:7/10", "--floor", "1", "--json"}
	do("keygen", "--out", "KEPT/node.key")
	do(append(tableRun("KEPT/table", "60"), "--history", "KEPT/history.jsonl")...)
	do("export", "KEPT/table", "--out", "KEPT/mlp.safetensors")
	do(append(fit, "--target", "delay>15", "--learner", "boost", "--trees", "3", "--leaf-rows", "5", "--out", "KEPT/boost.model")...)
	do(append(fit, "--target", "delay", "--learner", "ridge", "--out", "KEPT/ridge.model")...)
	do(stagesRun("KEPT/stages", "20")...)
	do("local", "--in-process", "--peers", "3", "--model", "softmax", "--steps", "150", "--step-time", "20ms", "--record", "KEPT/recording.jsonl", "--json")
	var all []said
	for _, c := range keptChecks {
		out := do(c.args...)
		s := said{Args: c.args}
		if slices.Contains(c.args, "--json") {
			var values map[string]json.RawMessage
			if err := json.Unmarshal([]byte(out), &values); err != nil {
				t.Fatalf("%v: %v", c.args, err)
			}
			for name := range values {
				if name == "file" || len(c.fields) > 0 && !slices.Contains(c.fields, name) {
					delete(values, name)
				}
			}
			s.Out, _ = json.Marshal(values)
		} else {
			s.Out, _ = json.Marshal(out)
		}
		all = append(all, s)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.ReplaceAll(text, []byte(`{"Args"`), []byte("\n{\"Args\"")), '\n') // a command a line
	if err := os.WriteFile(filepath.Join(*keepFiles, "said.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(*keepFiles, func(path string, d fs.DirEntry, err error) error { // a lock is none of what is kept
		if err == nil && strings.HasPrefix(d.Name(), ".") && d.Name() != filepath.Base(*keepFiles) && !d.IsDir() {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeptFiles: what each release has written is read, and holds what that release said of it; its checkpoints go on.
func TestKeptFiles(t *testing.T) {
	releases, err := filepath.Glob("../../testdata/v*")
	if err != nil || len(releases) == 0 {
		t.Fatalf("no files of releases: %v", err)
	}
	for _, kept := range releases {
		t.Run(filepath.Base(kept), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(kept, "said.json"))
			var all []said
			if err := errors.Join(err, json.Unmarshal(text, &all)); err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				t.Fatal("nothing is checked")
			}
			temp := t.TempDir()
			for _, s := range all {
				code, out, logged := try(within(kept, temp, s.Args)...)
				if code != cli.ExitDone {
					t.Errorf("%v: exit code %d\n%s", s.Args, code, logged)
					continue
				}
				var want, got any
				if err := json.Unmarshal(s.Out, &want); err != nil {
					t.Fatal(err)
				}
				if got = out; slices.Contains(s.Args, "--json") {
					if err := json.Unmarshal([]byte(out), &got); err != nil {
						t.Fatal(err)
					}
				}
				if fault := differs(want, got); fault != "" {
					t.Errorf("%v: %s", s.Args, fault)
				}
			}
			for folder, args := range map[string][]string{"table": tableRun("TEMP/table", "90"), "stages": stagesRun("TEMP/stages", "80")} {
				if err := os.CopyFS(filepath.Join(temp, folder), os.DirFS(filepath.Join(kept, folder))); err != nil {
					t.Fatal(err)
				}
				code, out, logged := try(within(kept, temp, args)...)
				if code != cli.ExitDone {
					t.Fatalf("%s do not go on: exit code %d\n%s", folder, code, logged)
				}
				if r := lastLine(t, out); r.ResumedStep == 0 || r.Steps <= r.ResumedStep {
					t.Errorf("%s began anew: %+v", folder, r)
				}
			}
		})
	}
}

// numbers of a text; what lies between them has to be the same.
var numbers = regexp.MustCompile(`-?\d+(\.\d+)?(e[+-]?\d+)?`)

// differs says where got has not what want has, as far as other processors may compute it: numbers are near. Got may have more fields.
func differs(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		has, _ := got.(map[string]any)
		for name, value := range want {
			if fault := differs(value, has[name]); fault != "" {
				return name + ": " + fault
			}
		}
		return ""
	case []any:
		has, _ := got.([]any)
		if len(has) != len(want) {
			return fmt.Sprintf("%d entries, and there were %d", len(has), len(want))
		}
		for i := range want {
			if fault := differs(want[i], has[i]); fault != "" {
				return fmt.Sprint(i, ": ", fault)
			}
		}
		return ""
	case float64:
		if has, is := got.(float64); is && math.Abs(has-want) <= 1e-5+1e-4*math.Abs(want) {
			return ""
		}
	case string:
		has, is := got.(string)
		if is && has == want {
			return ""
		}
		is = is && numbers.ReplaceAllString(has, "#") == numbers.ReplaceAllString(want, "#")
		for i, w := range numbers.FindAllString(want, -1) {
			a, _ := strconv.ParseFloat(w, 64)
			if is {
				b, _ := strconv.ParseFloat(numbers.FindAllString(has, -1)[i], 64)
				is = math.Abs(a-b) <= 1e-5+1e-4*math.Abs(a)
			}
		}
		if is {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%v, and it was %v", got, want)
}

// The comparison sees what is not the same, and nothing else.
func TestKeptIsCompared(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{`{"a":1}`, `{"a":1.00001,"b":2}`, true}, {`{"a":1}`, `{"b":1}`, false}, {`{"a":1}`, `{"a":1.1}`, false},
		{`"row,1\n0,2.50001"`, `"row,1\n0,2.5"`, true}, {`"0,2.5"`, `"0,2.6"`, false}, {`"0,a"`, `"0,b"`, false}, {`"0,1"`, `"0,1,2"`, false},
		{`[1,true,null]`, `[1,true,null]`, true}, {`[1,true]`, `[1]`, false}, {`[true]`, `[false]`, false}, {`{"a":{"b":"x"}}`, `{"a":7}`, false},
		{`"4114e754"`, `"4114e754"`, true}, {`"1 a"`, `"a 1"`, false},
	} {
		var want, got any
		if err := errors.Join(json.Unmarshal([]byte(c.want), &want), json.Unmarshal([]byte(c.got), &got)); err != nil {
			t.Fatal(err)
		}
		if fault := differs(want, got); (fault == "") != c.same {
			t.Errorf("%s, %s: %q", c.want, c.got, fault)
		}
	}
}
