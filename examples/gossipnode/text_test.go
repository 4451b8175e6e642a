package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestATextIsLearnedAndWritten: two peers learn a text together, and what one has learned
// goes on with it.
func TestATextIsLearnedAndWritten(t *testing.T) {
	t.Parallel()
	t.Run("gpt", func(t *testing.T) { // the model if none is named
		learnAndWrite(t, "a flock of birds turns as one bird turns. ", nets.HeadsKey, "--steps", "300", "--layers", "1", "--width", "32", "--heads", "2", "--context", "32")
	})
	t.Run("gru", func(t *testing.T) {
		learnAndWrite(t, "a flock turns as one. ", nets.ContextKey, "--model", "gru", "--steps", "600", "--width", "32", "--context", "32")
	})
}

// learnAndWrite trains a model whose file must tell a size under a key.
func learnAndWrite(t *testing.T, rhyme, key string, model ...string) {
	dir := t.TempDir()
	book := clitest.WriteFile(t, "book.txt", strings.Repeat(rhyme, 200))
	code, out, logged := try(append([]string{"local", "--peers", "2", "--dataset", "text", "--data", filepath.Dir(book),
		"--strategy", "allreduce", // what is learned does not depend on which process is ahead: by pairs it was too little once, on a busy machine
		"--batch", "8", "--optimizer", "adamw", "--lr", "0.01", "--checkpoint", dir, "--json"}, model...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	var r result.Result
	clitest.LastLine(t, out, &r)
	if b := r.BitsPerByte; b == nil || !(b.Max < 1 && b.Min > 0 && b.Min <= b.Mean && b.Mean <= b.Max) || r.Tokens != r.Steps*8*32 {
		t.Fatalf("%s", out)
	}
	weights := filepath.Join(dir, "model.safetensors")
	if code, _, logged := try("export", filepath.Join(dir, "peer-0"), "--out", weights); code != cli.ExitDone {
		t.Fatalf("export: exit code %d\n%s", code, logged)
	}
	if code, _, logged := try("sample", "--weights", newest(t, filepath.Join(dir, "peer-0"))); code != cli.ExitUsage || !strings.Contains(logged, "gossipnode export") {
		t.Errorf("of a checkpoint: exit code %d\n%s", code, logged)
	}
	if file, err := checkpoint.Open(weights); err != nil || file.Metadata[key] == "" {
		t.Errorf("the file tells no %s: %v, %v", key, file.Metadata, err)
	}
	code, out, logged = try("sample", "--weights", weights, "--prompt", rhyme[:12], "--tokens", "60", "--temperature", "0")
	if want := strings.Repeat(rhyme, 4)[:12+60] + "\n"; code != cli.ExitDone || out != want {
		t.Errorf("exit code %d, %q, want %q\n%s", code, out, want, logged)
	}
}

// newest is a checkpoint in a folder.
func newest(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint in %s: %v", dir, err)
	}
	return files[len(files)-1]
}

func TestTextsWrongUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"local --dataset gosource --model mlp", "a text is learned by --model gpt"},
		{"local --dataset gosource --augment flip", "is for pictures"},
		{"local --model gpt", "learns a text: give --dataset gosource"},
		{"local --model gpt --dataset text", "text needs --data"},
		{"local --model gpt --dataset gosource --width 130", "a multiple of the 4 heads"},
		{"local --model gpt --dataset gosource --context 0", "--context 0"},
		{"sample", "--weights is needed"},
		{"sample --weights x --tokens 0", "--tokens 0"},
		{"sample --weights x --temperature -1", "--temperature -1"},
	} {
		code, _, logged := try(strings.Fields(c.line)...)
		if code != cli.ExitUsage || !strings.Contains(logged, c.want) {
			t.Errorf("%s: exit code %d\n%s\nwant %q", c.line, code, logged, c.want)
		}
	}
	other := clitest.WriteFile(t, "other.safetensors", "{}")
	if code, _, logged := try("sample", "--weights", other); code != cli.ExitFailed || !strings.Contains(logged, "weights: reading ") {
		t.Errorf("exit code %d\n%s", code, logged)
	}
}
