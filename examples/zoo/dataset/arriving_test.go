package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// idxOf is a plain IDX file of n items of a size.
func idxOf(n int, item ...uint32) []byte {
	var file bytes.Buffer
	file.Write([]byte{0, 0, idxUint8, byte(1 + len(item))})
	_ = binary.Write(&file, binary.BigEndian, append([]uint32{uint32(n)}, item...))
	size := n
	for _, d := range item {
		size *= int(d)
	}
	for i := range size {
		file.WriteByte(byte(i % 10))
	}
	return file.Bytes()
}

// TestReadLater: a pair is read once both are whole, and no sooner.
func TestReadLater(t *testing.T) {
	dir := t.TempDir()
	images, labels := filepath.Join(dir, "a"+laterImages), filepath.Join(dir, "a"+laterLabels)
	put := func(path string, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	like, err := NewSet(nil, nil, greyShape, Classes, Normalization{Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	whole, marks := idxOf(8, Side, Side), idxOf(8)
	put(images, whole[:len(whole)/2])
	if _, _, err := ReadLater(t.Context(), images, like); !errors.Is(err, ErrMissing) {
		t.Errorf("without labels: %v", err)
	}
	put(labels, marks)
	if _, _, err := ReadLater(t.Context(), images, like); !errors.Is(err, ErrTruncated) {
		t.Errorf("half of the pictures: %v", err)
	}
	put(images, whole)
	set, _, err := ReadLater(t.Context(), images, like)
	if err != nil || set.Len() != 8 || set.Label(3) != 3 || set.Inputs() != Inputs {
		t.Fatalf("%+v, %v", set, err)
	}
	put(labels, marks[:len(marks)-1])
	if _, err := Begun("mnist", images); !errors.Is(err, ErrTruncated) {
		t.Errorf("labels of which one lacks: %v", err)
	}
	put(labels, marks)
	data, err := Begun("mnist", images)
	if err != nil || data.Train.Len() != 6 || data.HeldOut.Len() != 2 {
		t.Errorf("%+v, %v", data, err)
	}
	if joined := Join([]*Set{set.Subset([]int32{2}), set.Subset([]int32{5, 7})}); joined.Len() != 3 || joined.Label(2) != 7 || !bytes.Equal(joined.Image(1), set.Image(5)) {
		t.Errorf("joined: %+v", joined)
	}
	for name, want := range map[string][2]bool{"a" + laterImages + ".gz": {true}, "b" + laterLabels: {false, true}, "c.tar": {}, "rows.csv": {}} {
		if is, companion := IsLater("glyphs", name); [2]bool{is, companion} != want {
			t.Errorf("%s: %v, %v", name, is, companion)
		}
	}
	if is, _ := IsLater(Images, "c.tgz"); !is || Later("text") != "" {
		t.Error("archives are for images only")
	}
}
