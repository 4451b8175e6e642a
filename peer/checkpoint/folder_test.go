package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

func smallParams(t *testing.T, shape ...int) *tensor.Params {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: shape})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i) / 3
	}
	return params
}

// keep saves a checkpoint of a model of that shape with a velocity; edit may change its
// metadata.
func keep(t *testing.T, c Folder, steps uint64, shape []int, edit func(map[string]string)) (path string) {
	t.Helper()
	params := smallParams(t, shape...)
	params.Vector()[0] = float32(steps)
	n := params.Layout().Len()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: shape}, tensor.Spec{Name: optimizerPrefix + "velocity", Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	all := tensor.NewParams(layout)
	copy(all.Vector(), params.Vector())
	all.Vector()[n] = 7
	metadata := c.describe(params.Layout(), time.Now())
	if err := progressMetadata(metadata, behindOf(steps), optim.State{Kind: "sgd"}); err != nil {
		t.Fatal(err)
	}
	Seal(metadata, all)
	if edit != nil {
		edit(metadata)
		metadata[keyHeader] = headerSum(metadata, all.Layout())
	}
	if path, err = c.save(all, metadata); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeText writes a file of a text.
func writeText(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// behindOf is what lies behind a checkpoint that keep saves.
func behindOf(steps uint64) (c peer.Checkpoint) {
	err := c.UnmarshalBinary(fmt.Appendf(nil, `{"steps":%d,"age":%d,"flock_steps":%d,"incarnation":2,"inherited":6,"peers":3,"orders":["AQID","/w=="],
		"past":[{"peer":"a","incarnation":1,"steps":9},{"peer":"b","incarnation":3,"steps":11,"resumed":true}]}`, steps, steps+5, 4*steps))
	if err != nil {
		panic(err)
	}
	return c
}

func testFolder(t *testing.T) Folder {
	return Folder{Dir: filepath.Join(t.TempDir(), "deep", "folder"), Run: "r", Dataset: "d", Model: "m", Keep: 3}
}

// TestCheckpoint shows that what is saved is taken up, bit for bit, with the optimizer's
// state and all that lies behind it, and that the newest come first and the oldest go.
func TestCheckpoint(t *testing.T) {
	c, shape := testFolder(t), []int{3, 4}
	params := smallParams(t, shape...)
	if taken, refused, err := c.Load(params); taken != nil || len(refused) > 0 || err != nil {
		t.Fatalf("no checkpoint yet: %+v, %v, error %v", taken, refused, err)
	}
	if err := c.Probe(); err != nil {
		t.Fatal(err)
	}
	for steps := uint64(7); steps < 12; steps++ {
		keep(t, c, steps, shape, nil)
		taken, refused, err := c.Load(params)
		if err != nil || len(refused) > 0 {
			t.Fatal(err, refused)
		}
		want := smallParams(t, shape...).Vector()
		want[0] = float32(steps)
		if !slices.Equal(params.Vector(), want) {
			t.Errorf("values %v, want %v", params.Vector(), want)
		}
		if p := taken.Progress; p.Steps != steps || p.Age != steps+5 || p.FlockSteps != 4*steps || p.Incarnation != 2 || len(p.Past) != 2 {
			t.Errorf("%+v is what it tells", p)
		}
		if !reflect.DeepEqual(taken.Checkpoint, behindOf(steps)) {
			t.Errorf("%+v lie behind it, want %+v", taken.Checkpoint, behindOf(steps))
		}
		if o := taken.Optimizer; o.Kind != "sgd" || len(o.Vectors) != 1 || len(o.Vectors["velocity"]) != 12 || o.Vectors["velocity"][0] != 7 {
			t.Errorf("the optimizer's state is %+v", o)
		}
	}
	if names, _ := c.Names(); !slices.Equal(names, []string{nameOf(3), nameOf(4), nameOf(5)}) {
		t.Errorf("the folder holds %v, want the last three", names)
	}
	if files, _ := os.ReadDir(c.Dir); len(files) != 3 {
		t.Errorf("%d files in the folder, want 3", len(files))
	}
}

// A program's own metadata are in its checkpoints, and change nothing that these say themselves.
func TestAbout(t *testing.T) {
	c := testFolder(t)
	c.About = map[string]string{"examples": "pixels", keyRun: "another"}
	if err := c.Probe(); err != nil {
		t.Fatal(err)
	}
	file, err := Open(keep(t, c, 7, []int{3, 4}, nil))
	if err != nil || file.Metadata["examples"] != "pixels" || file.Metadata[keyRun] != c.Run || file.Intact() != nil {
		t.Errorf("%v %v", file, err)
	}
	if taken, _, err := c.Load(smallParams(t, 3, 4)); err != nil || taken == nil {
		t.Error(err)
	}
}

// TestRefusedCheckpoint shows that a file that cannot be used is named, with why, and
// left as it is; that the one before it is used; and that a folder with nothing else is
// an error. None of them is ever removed.
func TestRefusedCheckpoint(t *testing.T) {
	mine, shape := testFolder(t), []int{3}
	other := func(change func(*Folder)) Folder {
		c := mine
		change(&c)
		return c
	}
	for _, c := range []struct {
		name, want string
		write      func(t *testing.T) (path string)
	}{
		{"another run", `another run, "x" and not "r"`, func(t *testing.T) string {
			return keep(t, other(func(c *Folder) { c.Run = "x" }), 5, shape, nil)
		}},
		{"another data set", `another dataset, "x" and not "d"`, func(t *testing.T) string {
			return keep(t, other(func(c *Folder) { c.Dataset = "x" }), 5, shape, nil)
		}},
		{"another model", "another model than m", func(t *testing.T) string { return keep(t, mine, 5, []int{4}, nil) }},
		{"newer", "it is of format 4, and this program knows format 3", func(t *testing.T) string {
			return keep(t, mine, 5, shape, func(m map[string]string) { m[keyFormat] = formatName + "4" })
		}},
		{"no checkpoint", "it is no checkpoint of this program", func(t *testing.T) string {
			return keep(t, mine, 5, shape, func(m map[string]string) { clear(m) })
		}},
		{"damaged", "checksum", func(t *testing.T) string {
			return keep(t, mine, 5, shape, func(m map[string]string) { m[keySum] = "00000000" })
		}},
		{"no number", "its steps", func(t *testing.T) string {
			return keep(t, mine, 5, shape, func(m map[string]string) { m[keySteps] = "-1" })
		}},
		{"used up", "which no peer reaches", func(t *testing.T) string {
			return keep(t, mine, 5, shape, func(m map[string]string) { m[keyLife] = "18446744073709551615" })
		}},
		{"no ledger", "its ledger", func(t *testing.T) string {
			return keep(t, mine, 5, shape, func(m map[string]string) { m[keyLedger] = "[]" })
		}},
		{"torn", "ends within the tensors' data", func(t *testing.T) string {
			path := keep(t, mine, 5, shape, nil)
			info, _ := os.Stat(path)
			if err := os.Truncate(path, info.Size()-4); err != nil {
				t.Fatal(err)
			}
			return path
		}},
		{"empty", "bad safetensors file", func(t *testing.T) string {
			path := keep(t, mine, 5, shape, nil)
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			return path
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mine.Dir = t.TempDir()
			bad := c.write(t)
			before, _ := os.ReadFile(bad)
			params := smallParams(t, shape...)
			taken, _, err := mine.Load(params)
			if taken != nil || err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrUnusable) {
				t.Errorf("alone: %+v, error %v, want %q", taken, err, c.want)
			}
			if !slices.Equal(params.Vector(), smallParams(t, shape...).Vector()) {
				t.Error("the model was changed")
			}
			if err := os.Rename(bad, filepath.Join(mine.Dir, nameOf(9))); err != nil {
				t.Fatal(err)
			}
			good := keep(t, other(func(c *Folder) { c.Dir = t.TempDir() }), 8, shape, nil)
			if err := os.Rename(good, filepath.Join(mine.Dir, nameOf(8))); err != nil {
				t.Fatal(err)
			}
			taken, refused, err := mine.Load(params)
			if err != nil || taken == nil || taken.Progress.Steps != 8 || len(refused) != 1 || !strings.Contains(refused[0].Error(), c.want) || !strings.Contains(refused[0].Error(), nameOf(9)) {
				t.Errorf("with one before it: %+v, refused %v, error %v", taken, refused, err)
			}
			once := mine
			once.Keep = 1
			keep(t, once, 10, shape, nil)
			names, _ := mine.Names()
			stays := !slices.Contains([]string{"another model", "damaged", "no number", "used up", "no ledger", "torn"}, c.name) // of this run, as far as a look tells
			if after, _ := os.ReadFile(filepath.Join(mine.Dir, nameOf(9))); stays && string(before) != string(after) {
				t.Errorf("the file has been changed or removed: %v", names)
			}
			if slices.Contains(names, nameOf(8)) || !slices.Contains(names, nameOf(10)) {
				t.Errorf("the folder holds %v: the new one has not taken the place of the old one", names)
			}
		})
	}
}

// TestFailedSave shows that a checkpoint that cannot be written leaves the old
// one, and nothing else.
func TestFailedSave(t *testing.T) {
	c := testFolder(t)
	c.Dir = t.TempDir()
	keep(t, c, 5, []int{3}, nil)
	params := smallParams(t, 3)
	if path, err := c.save(params, map[string]string{"run": "\xff"}); err == nil || path != "" { // not UTF-8, which metadata has to be
		t.Fatal("saved what cannot be saved")
	}
	if taken, refused, err := c.Load(params); err != nil || len(refused) > 0 || taken.Progress.Steps != 5 {
		t.Errorf("%+v, error %v", taken, err)
	}
	if files, _ := os.ReadDir(c.Dir); len(files) != 1 {
		t.Errorf("%d files in the folder, want 1", len(files))
	}
	blocked := Folder{Dir: writeText(t, "file", ""), Run: "r"}
	if err := blocked.Probe(); err == nil || !strings.Contains(err.Error(), "checkpoint folder") {
		t.Errorf("a folder that is a file: error %v", err)
	}
}
