package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
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
	for _, text := range []string{"left out: ", "train-0.tar, record s007: bad picture"} {
		if strings.Count(said, text) != 1 {
			t.Errorf("not said once: %q in\n%s", text, said)
		}
	}
	code, out, said = try(append([]string{"local", "--in-process", "--peers", "3", "--shard", "files"}, options...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	if strings.Count(said, "record s007: bad picture") != 1 {
		t.Errorf("what all peers have found is not told once:\n%s", said)
	}
	if r := lastLine(t, out); r.Peers != 3 || r.TestAccuracy.Min < 0.9 {
		t.Errorf("%d peers, accuracy %v", r.Peers, r.TestAccuracy)
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
	if code, _, said := try("run", "--normalize", "0.5/0.5"); code != cli.ExitUsage || !strings.Contains(said, "glyphs") {
		t.Errorf("normalization that does not fit: exit code %d\n%s", code, said)
	}
	if code, _, said := try("run", "--size", "64x64"); code != cli.ExitUsage || !strings.Contains(said, "a size for glyphs, which has its own") {
		t.Errorf("a size that does not fit: exit code %d\n%s", code, said)
	}
	code, out, said := try("run", "--dataset", "images", "--data", dir)
	if code != cli.ExitConfig || out != "" || !strings.Contains(said, "train.tar: truncated") {
		t.Errorf("exit code %d, standard output %q, standard error:\n%s", code, out, said)
	}
}

// TestMixedImages shows that an ordinary folder of pictures of mixed sizes is learned
// from: what is done to them is said, and so is, for each file that cannot be used, why, up
// to a bound.
func TestMixedImages(t *testing.T) {
	dir := t.TempDir()
	put := func(data []byte, name string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 24 {
		picture := image.NewGray(image.Rect(0, 0, 10+i, 30-i))
		for p := range picture.Pix {
			picture.Pix[p] = uint8(200 * (i % 2))
		}
		var data bytes.Buffer
		if err := png.Encode(&data, picture); err != nil {
			t.Fatal(err)
		}
		for _, set := range []string{"train", "test"} {
			put(data.Bytes(), fmt.Sprintf("%s/class-%d/%d.png", set, i%2, i))
		}
		put([]byte("no picture"), fmt.Sprintf("train/class-0/no-%d.jpg", i))
	}
	code, out, said := try(strings.Fields("run --strategy alone --dataset images --size 8x6 --data " + dir + " --model softmax --batch 4 --epochs 10 --json")...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	if r := lastLine(t, out); r.TestAccuracy.Min < 0.9 {
		t.Errorf("accuracy %v", r.TestAccuracy)
	}
	for text, times := range map[string]int{
		"48 pictures cropped and resized to 8×6 pixels":  1,
		".jpg: bad picture: neither JPEG nor PNG":        10,
		"left out: 14 more pictures that cannot be used": 1,
	} {
		if strings.Count(said, text) != times {
			t.Errorf("not said %d times: %q in\n%s", times, text, said)
		}
	}
}
