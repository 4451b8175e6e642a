package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
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

// TestCheckpoint shows that what is saved is loaded, bit for bit, and replaces
// what was there.
func TestCheckpoint(t *testing.T) {
	c := checkpoint{dir: filepath.Join(t.TempDir(), "deep", "folder"), run: "r", dataset: "d", model: "m"}
	params := smallParams(t, 3, 4)
	if steps, err := c.load(params); err != nil || steps != 0 {
		t.Fatalf("no checkpoint yet: %d steps, error %v", steps, err)
	}
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	for _, steps := range []uint64{7, 12} {
		c.behind = peer.Checkpoint{Steps: steps + 1, FlockSteps: 4 * steps}
		want := c.behind
		params.Vector()[0] = float32(steps)
		if err := c.save(params, steps); err != nil {
			t.Fatal(err)
		}
		loaded := smallParams(t, 3, 4)
		c.behind = peer.Checkpoint{}
		got, err := c.load(loaded)
		if c.behind != want {
			t.Errorf("%+v lie behind it, want %+v", c.behind, want)
		}
		if err != nil || got != steps || tensor.SquaredDistance(loaded.Vector(), params.Vector()) != 0 {
			t.Errorf("loaded %d steps, want %d, error %v, values %v, want %v", got, steps, err, loaded.Vector(), params.Vector())
		}
	}
	if files, _ := os.ReadDir(c.dir); len(files) != 1 {
		t.Errorf("%d files in the folder, want 1", len(files))
	}
}

// TestForeignCheckpoint shows that a file that is not a checkpoint of this run
// is refused, and left as it is.
func TestForeignCheckpoint(t *testing.T) {
	mine := checkpoint{dir: t.TempDir(), run: "r", dataset: "d", model: "m"}
	write := func(t *testing.T, c checkpoint, shape ...int) {
		t.Helper()
		if err := c.save(smallParams(t, shape...), 5); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, want string
		spoil      func(t *testing.T)
	}{
		{"run", `another run, "x" and not "r"`, func(t *testing.T) { write(t, checkpoint{dir: mine.dir, run: "x", dataset: "d", model: "m"}, 3) }},
		{"data set", `another dataset, "x" and not "d"`, func(t *testing.T) { write(t, checkpoint{dir: mine.dir, run: "r", dataset: "x", model: "m"}, 3) }},
		{"model", "another model than m", func(t *testing.T) { write(t, mine, 4) }},
		{"no checkpoint", "--init", func(t *testing.T) {
			if err := writeSynced(mine.path(), smallParams(t, 3), nil); err != nil {
				t.Fatal(err)
			}
		}},
		{"not finite", "NaN", func(t *testing.T) {
			params, zero := smallParams(t, 3), float32(0)
			params.Vector()[1] = zero / zero
			if err := mine.save(params, 5); err != nil {
				t.Fatal(err)
			}
		}},
		{"cut short", "bad safetensors file", func(t *testing.T) {
			write(t, mine, 3)
			if err := os.Truncate(mine.path(), 50); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spoil(t)
			before, _ := os.ReadFile(mine.path())
			_, err := mine.load(smallParams(t, 3))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "Move it away") {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if after, _ := os.ReadFile(mine.path()); string(before) != string(after) {
				t.Error("the file has been changed")
			}
		})
	}
}

// TestFailedSave shows that a checkpoint that cannot be written leaves the old
// one, and nothing else.
func TestFailedSave(t *testing.T) {
	c := checkpoint{dir: t.TempDir(), run: "r", dataset: "d", model: "m"}
	params := smallParams(t, 3)
	if err := c.save(params, 5); err != nil {
		t.Fatal(err)
	}
	broken := c
	broken.run = "\xff" // not UTF-8, which metadata has to be
	if err := broken.save(params, 6); err == nil {
		t.Fatal("saved what cannot be saved")
	}
	if steps, err := c.load(params); err != nil || steps != 5 {
		t.Errorf("%d steps, error %v", steps, err)
	}
	if files, _ := os.ReadDir(c.dir); len(files) != 1 {
		t.Errorf("%d files in the folder, want 1", len(files))
	}
	blocked := checkpoint{dir: writeFile(t, "file", ""), run: "r"}
	if err := blocked.create(); err == nil || !strings.Contains(err.Error(), "checkpoint folder") {
		t.Errorf("a folder that is a file: error %v", err)
	}
}
