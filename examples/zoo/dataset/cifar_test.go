package dataset

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCIFARBatch(t *testing.T) {
	records := newCIFARReader(cifarForms()[0], "data_batch_1.bin", bytes.NewReader(cifarBatch(7, 3)))
	for k := 7; k < 10; k++ {
		label, planes, err := records.cut()
		if err != nil || int(label) != k {
			t.Fatalf("record %d: label %d, %v", k, label, err)
		}
		pixels := make([]uint8, cifarShape.Values())
		if _, err := (cifarDecoder{}).decode(pixels, cifarShape, planes); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(pixels, levelsOf(noise(uint64(k), 32, 32))) {
			t.Errorf("record %d: other pixels", k)
		}
	}
	if _, _, err := records.cut(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestCIFARDecoderRefuses(t *testing.T) {
	pixels := make([]uint8, 3*cifarPixels)
	for name, c := range map[string]struct {
		shape Shape
		bytes int
	}{
		"short":         {cifarShape, 5},
		"another shape": {Shape{16, 64, 3}, 3 * cifarPixels},
	} {
		_, err := (cifarDecoder{}).decode(pixels, c.shape, make([]byte, c.bytes))
		if !errors.Is(err, ErrPicture) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record whose label is no class is damaged. A file that ends within a record is
// damaged.
func TestCIFARDamage(t *testing.T) {
	batch := cifarBatch(0, 5)
	batch[2*cifarRecord] = 10
	dir := write(t, map[string][]byte{"data_batch_1.bin": batch, "test_batch.bin": cifarBatch(5, 2)})
	data, err := Load(t.Context(), Config{Name: "cifar10", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	total, named := data.Skipped(0)
	if data.Total != 4 || total != 1 || !errors.Is(named[0], ErrLabel) || named[0].Key != "2" || !strings.HasSuffix(named[0].Path, "data_batch_1.bin") {
		t.Errorf("%d pictures, %d skipped: %v", data.Total, total, named)
	}
	dir = write(t, map[string][]byte{"data_batch_1.bin": batch[:len(batch)-1], "test_batch.bin": cifarBatch(5, 2)})
	_, err = Load(t.Context(), Config{Name: "cifar10", Dir: dir})
	var wrong *DataError
	if !errors.As(err, &wrong) || !errors.Is(err, ErrTruncated) || !strings.HasSuffix(wrong.Path, "data_batch_1.bin") {
		t.Errorf("cut off: %v", err)
	}
}

// All records are read in order. A stream that ends within a record is an error.
func FuzzCIFARBatch(f *testing.F) {
	f.Add([]byte{})
	f.Add(cifarBatch(0, 1))
	f.Add(cifarBatch(0, 2)[:cifarRecord+1])
	f.Fuzz(func(t *testing.T, stream []byte) {
		records := newCIFARReader(cifarForms()[0], "data_batch_1.bin", bytes.NewReader(stream))
		var again []byte
		for {
			label, planes, err := records.cut()
			if err != nil {
				whole := len(stream)%cifarRecord == 0
				if whole != (err == io.EOF) || !whole && !errors.Is(err, ErrTruncated) {
					t.Fatalf("%d bytes end with %v", len(stream), err)
				}
				break
			}
			again = append(append(again, label), planes...)
		}
		if !bytes.Equal(again, stream[:len(stream)/cifarRecord*cifarRecord]) {
			t.Fatal("other bytes")
		}
	})
}

// CIFAR-100 is read from its own files, found where CIFAR-10's are, with its finer labels; neither set is taken for the
// other.
func TestCIFAR100(t *testing.T) {
	for name, folder := range map[string]string{"files": "", "unpacked": "cifar-100-binary/"} {
		dir := write(t, map[string][]byte{folder + "train.bin": cifar100File(80, 30), folder + "test.bin": cifar100File(7, 4), folder + "fine_label_names.txt": nil})
		data, err := Load(t.Context(), Config{Name: "cifar100", Dir: dir})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if data.Total != 30 || data.Classes() != 100 || data.HeldOut.Len() != 4 || data.Shape() != cifarShape {
			t.Errorf("%s: %d pictures of %d classes, %d held out, %v", name, data.Total, data.Classes(), data.HeldOut.Len(), data.Shape())
		}
		for i := range data.HeldOut.Len() {
			if data.HeldOut.Label(i) != 7+i || !slices.Equal(data.HeldOut.Image(i), levelsOf(noise(uint64(7+i), 32, 32))) {
				t.Errorf("%s: held-out picture %d is another, of class %d", name, i, data.HeldOut.Label(i))
			}
		}
		batches, err := data.Batches(30, 1, Augment{})
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := batches.Next(&b); err != nil {
			t.Fatal(err)
		}
		batches.Close()
		if slices.Sort(b.Labels); b.Labels[0] != 0 || b.Labels[29] != 99 {
			t.Errorf("%s: labels %v", name, b.Labels)
		}
		if _, err := Load(t.Context(), Config{Name: "cifar10", Dir: dir}); !errors.Is(err, ErrMismatch) {
			t.Errorf("as cifar10: %v", err)
		}
	}
	dir := write(t, map[string][]byte{"data_batch_1.bin": cifarBatch(0, 5), "test_batch.bin": cifarBatch(5, 2)})
	if _, err := Load(t.Context(), Config{Name: "cifar100", Dir: dir}); !errors.Is(err, ErrMismatch) {
		t.Errorf("CIFAR-10 as cifar100: %v", err)
	}
	both := write(t, map[string][]byte{
		"cifar-10-batches-bin/data_batch_1.bin": cifarBatch(0, 5), "cifar-10-batches-bin/test_batch.bin": cifarBatch(5, 2),
		"cifar-100-binary/train.bin": cifar100File(80, 30), "cifar-100-binary/test.bin": cifar100File(7, 4)})
	for name, classes := range map[string]int{"cifar10": 10, "cifar100": 100} {
		data, err := Load(t.Context(), Config{Name: name, Dir: both})
		if err != nil || data.Classes() != classes {
			t.Errorf("%s of a folder with both sets: %v", name, err)
		}
	}
	damaged := cifar100File(0, 3)
	damaged[1] = 100
	data, err := Load(t.Context(), Config{Name: "cifar100", Dir: write(t, map[string][]byte{"train.bin": damaged, "test.bin": cifar100File(0, 1)})})
	if err != nil {
		t.Fatal(err)
	}
	if total, named := data.Skipped(0); total != 1 || !errors.Is(named[0], ErrLabel) {
		t.Errorf("%d skipped: %v", total, named)
	}
}
