package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// shard writes n samples of three classes into a WebDataset shard, each class a
// colour of its own; sample number bad has no picture that can be decoded.
func shard(t *testing.T, path string, n, bad int) {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		picture := image.NewNRGBA(image.Rect(0, 0, 8, 8))
		colours := []color.NRGBA{{200, uint8(i), 0, 255}, {0, 200, uint8(i), 255}, {uint8(i), 0, 200, 255}}
		for p := range 64 {
			picture.SetNRGBA(p%8, p/8, colours[i%3])
		}
		var data bytes.Buffer
		if err := png.Encode(&data, picture); err != nil {
			t.Fatal(err)
		}
		if i == bad {
			data.Truncate(30)
		}
		add(fmt.Sprintf("s%03d.png", i), data.Bytes())
		add(fmt.Sprintf("s%03d.cls", i), fmt.Append(nil, i%3))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestImages shows that peers learn from pictures of a user's own, and are told of
// what is damaged and of what all must agree on.
func TestImages(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		shard(t, filepath.Join(dir, fmt.Sprintf("train-%d.tar", i)), 40, 7-i*100)
	}
	shard(t, filepath.Join(dir, "test.tar"), 30, -1)
	options := strings.Fields("--dataset images --data " + dir + " --model softmax --batch 8 --epochs 20 --augment flip+crop --log-level info --json")
	code, out, said := try(append([]string{"run", "--strategy", "alone"}, options...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	if r := lastLine(t, out); r.Steps != 300 || r.TestAccuracy.Min < 0.9 {
		t.Errorf("%d steps, accuracy %v", r.Steps, r.TestAccuracy)
	}
	for _, text := range []string{"skipping a damaged record", "train-0.tar, record s007: bad picture", "normalization measured in the folder"} {
		if strings.Count(said, text) != 1 {
			t.Errorf("not said once: %q in\n%s", text, said)
		}
	}
	code, out, said = try(append([]string{"local", "--in-process", "--peers", "3", "--shard", "files"}, options...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	if r := lastLine(t, out); r.Peers != 3 || r.TestAccuracy.Min < 0.9 {
		t.Errorf("%d peers, accuracy %v", r.Peers, r.TestAccuracy)
	}
}

// TestDataSettingsRefused shows that what cannot be of the data is said.
func TestDataSettingsRefused(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"run --dataset images", "--dataset images needs --data"},
		{"run --augment rotate", `--augment "rotate": want auto, none, flip, crop or flip+crop`},
		{"run --normalize 1", `--normalize "1": want MEAN/SCALE`},
		{"run --normalize 0.5/0.5", "glyphs"},
		{"run --memory 0", "--memory 0: want 1 to"},
		{"run --shard files", "say with --part I/N"},
	} {
		if code, out, err := try(strings.Fields(c.line)...); code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) || !strings.Contains(err, "--help") {
			t.Errorf("%s: exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", c.line, code, out, err, cli.ExitUsage, c.want)
		}
	}
}

// TestDataConfig shows that the flags mean what they say.
func TestDataConfig(t *testing.T) {
	s := dataSettings{Dataset: "images", Data: "dir", Shard: "files", Part: "1/3", Normalize: "0.5/0.25", Memory: 3, Seed: 7}
	got, err := s.dataConfig(9)
	want := dataset.Config{
		Name: "images", Dir: "dir", Seed: 7, Part: 1, Parts: 3, Shard: dataset.Shard{Files: true}, PeerSeed: 9, Memory: 3 << 20,
		Norm: []dataset.Normalization{{Mean: 0.5, Scale: 0.25}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for name, want := range map[string]dataset.Augment{"auto": {Flip: true, Crop: true}, "none": {}, "crop": {Crop: true}} {
		if got := (dataSettings{Dataset: "cifar10", Augment: name}).augmentation(); got != want {
			t.Errorf("--augment %s of cifar10 is %v", name, got)
		}
	}
}

// TestDamagedImages shows that a damaged file is a fault, before anything begins.
func TestDamagedImages(t *testing.T) {
	dir := t.TempDir()
	shard(t, filepath.Join(dir, "train.tar"), 40, -1)
	shard(t, filepath.Join(dir, "test.tar"), 30, -1)
	if err := os.Truncate(filepath.Join(dir, "train.tar"), 10_000); err != nil {
		t.Fatal(err)
	}
	code, out, said := try("run", "--dataset", "images", "--data", dir)
	if code != cli.ExitFailed || out != "" || !strings.Contains(said, "train.tar: truncated") {
		t.Errorf("exit code %d, standard output %q, standard error:\n%s", code, out, said)
	}
}
