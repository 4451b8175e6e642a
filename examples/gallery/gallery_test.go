// Package gallery_test checks the gallery as a whole, and runs what is no program in Go.
package gallery_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gallery/gallerytest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/bridge"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/history"
	"github.com/seed-97356399/murmuration/examples/gossipnode/inspect"
	"github.com/seed-97356399/murmuration/examples/gossipnode/local"
	"github.com/seed-97356399/murmuration/examples/gossipnode/run"
	"github.com/seed-97356399/murmuration/examples/gossipnode/sample"
)

// program is what of gossipnode the gallery uses.
var program = clitest.Only(local.Command, run.Command, history.Command, inspect.ExportCommand, sample.Command, bridge.Command)

func TestMain(m *testing.M) { program.Main(m) }

const (
	most        = 80       // lines of an example; what stands for a user's data is in a file of its own
	mostPicture = 64 << 10 // bytes
)

// TestGallery: the page tells of each example, which is short, and shows its picture, which is small.
func TestGallery(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := []string{"fraud/main.go", "cnn/cnn.py", "adapters/main.go", "text/text.sh", "stages/main.go", "serve/main.go"}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d", path, n, most)
		}
		picture := filepath.Join(filepath.Dir(path), filepath.Dir(path)+".svg")
		gallerytest.Sound(t, picture)
		if info, err := os.Stat(picture); err != nil || info.Size() > mostPicture {
			t.Errorf("%s: %v, at most %d bytes: %v", picture, info.Size(), mostPicture, err)
		}
		if !strings.Contains(string(page), "]("+path+")") || !strings.Contains(string(page), "]("+picture+")") {
			t.Errorf("README.md does not show %s and %s", path, picture)
		}
	}
}

// TestText runs the script with a few steps, on the pages of this project.
func TestText(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("there is no bash here: %v", err)
	}
	picture := filepath.Join(t.TempDir(), "text.svg")
	out := ran(t, bash, []string{"STEPS=60", "TEXT=docs/design"}, "examples/gallery/text/text.sh", picture)
	gallerytest.Sound(t, picture)
	if !regexp.MustCompile(`The models of the 4 peers that finished are the same`).MatchString(out) || !strings.Contains(out, "A peer that ") {
		t.Error(out)
	}
}

// TestWithTorch runs the CNN on two machines, where a Python has torch.
func TestWithTorch(t *testing.T) {
	t.Parallel()
	python := os.Getenv("MURMURATION_TORCH")
	if python == "" {
		t.Skip("MURMURATION_TORCH names no python that has torch: make torch")
	}
	picture := filepath.Join(t.TempDir(), "cnn.svg")
	out := ran(t, python, []string{"PYTHONPATH=examples/python", "PYTHONDONTWRITEBYTECODE=1"}, "examples/gallery/cnn/cnn.py", picture, "--steps", "600")
	gallerytest.Sound(t, picture)
	if n := len(regexp.MustCompile(`machine [12]: accuracy (0\.[6-9]|1\.0)`).FindAllString(out, -1)); n != 2 {
		t.Errorf("%d machines have learned:\n%s", n, out)
	}
}

// ran runs a program at the root of the checkout, with this test's binary as gossipnode, and returns all that it says.
func ran(t *testing.T, name string, environment []string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = "../..", append(append(os.Environ(), "GOSSIPNODE="+self), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}
