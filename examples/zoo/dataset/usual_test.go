package dataset

import (
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"
	"testing"
)

// sized makes folders of empty pictures with these sizes (width, height).
func sized(t *testing.T, sizes ...[2]int) map[string][]byte {
	files := make(map[string][]byte)
	for i, size := range sizes {
		for _, set := range []string{"train", "test"} {
			files[fmt.Sprintf("%s/class-%d/%d.png", set, i%2, i)] = asPNG(t, image.NewRGBA(image.Rect(0, 0, size[0], size[1])))
		}
	}
	return files
}

// TestUsualShape shows the size to which pictures of mixed sizes are resized, and that
// each resized picture is counted once.
func TestUsualShape(t *testing.T) {
	square, wide, tall := [2]int{20, 20}, [2]int{40, 20}, [2]int{20, 30}
	for name, c := range map[string]struct {
		sizes   [][2]int
		config  Config
		want    Shape
		resized int
	}{
		"all alike":      {[][2]int{wide, wide, wide, wide}, Config{}, Shape{20, 40, 3}, 0},
		"one is not":     {[][2]int{square, wide, wide, wide}, Config{}, Shape{20, 40, 3}, 2},
		"no majority":    {[][2]int{square, wide, tall, square}, Config{}, Shape{MixedSide, MixedSide, 3}, 8},
		"a size to have": {[][2]int{square, wide, tall, square}, Config{Width: 20, Height: 20}, Shape{20, 20, 3}, 4},
	} {
		c.config.Name, c.config.Dir = "images", write(t, sized(t, c.sizes...))
		data, err := Load(t.Context(), c.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if total, named := data.Skipped(0); data.Shape() != c.want || data.Resized() != c.resized || total > 0 {
			t.Errorf("%s: %v, %d resized, want %v and %d; skipped %v", name, data.Shape(), data.Resized(), c.want, c.resized, named)
		}
		batches, err := data.Batches(1, 1, Augment{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 * len(c.sizes) {
			if err := batches.Next(new(Batch)); err != nil {
				t.Fatal(err)
			}
		}
		if err := batches.Close(); err != nil || data.Resized() != c.resized {
			t.Errorf("%s: after some passes %d are resized, %v", name, data.Resized(), err)
		}
	}
}

// TestUsualShapeIsBounded shows that pictures from a camera, all of one size that is too
// large for a set, are resized to a small one.
func TestUsualShapeIsBounded(t *testing.T) {
	headers := map[string][]byte{"camera/1.png": bigPNG(4000, 3000), "camera/2.png": bigPNG(4000, 3000)}
	folder, err := newClassFolders(write(t, headers), []string{"camera"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := readIndex(t.Context(), Config{Dir: "dir"}, folder, 0, new(findings))
	if err != nil {
		t.Fatal(err)
	}
	if shape, err := x.usualShape(t.Context(), 0, 0, new(findings)); err != nil || shape != (Shape{MixedSide, MixedSide, 3}) {
		t.Errorf("%v, %v", shape, err)
	}
}

// TestNamedPictures shows that a file which is not read is named with the reason, one in a
// format that is not known too; that none can be read is an error which names the first.
func TestNamedPictures(t *testing.T) {
	files := sized(t, [2]int{4, 4}, [2]int{4, 4})
	files["train/class-0/a.webp"], files["train/class-1/b.GIF"], files["train/class-1/notes.txt"] = nil, nil, nil
	files["train/class-1/c.jpg"] = []byte("not a picture")
	data, err := Load(t.Context(), Config{Name: "images", Dir: write(t, files)})
	if err != nil {
		t.Fatal(err)
	}
	total, named := data.Skipped(0)
	var texts []string
	for _, err := range named {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	for i, want := range []string{"class-0/a.webp: bad picture: neither JPEG nor PNG: convert it", "class-1/b.GIF", "class-1/c.jpg: bad picture: neither"} {
		if total != 3 || !strings.Contains(texts[i], want) {
			t.Errorf("%d skipped, no %q in %q", total, want, texts)
		}
	}
	clear(files)
	for i := range maxReasons + 3 {
		files[fmt.Sprintf("train/class/%d.png", i)] = []byte("x")
	}
	files["test/class/1.png"] = nil
	_, err = Load(t.Context(), Config{Name: "images", Dir: write(t, files)})
	if !errors.Is(err, ErrEmpty) || strings.Count(err.Error(), "neither JPEG nor PNG") != maxReasons || !strings.HasSuffix(err.Error(), "\n  and 3 more") {
		t.Errorf("nothing that can be read: %v", err)
	}
}
