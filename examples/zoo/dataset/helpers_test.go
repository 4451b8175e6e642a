package dataset

import (
	"archive/tar"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// noise is a picture of random levels, which compresses badly.
func noise(seed uint64, height, width int) *image.NRGBA {
	rng := rand.New(rand.NewPCG(seed, 1))
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.SetNRGBA(x, y, color.NRGBA{uint8(rng.Uint32()), uint8(rng.Uint32()), uint8(rng.Uint32()), 255})
		}
	}
	return picture
}

// levelsOf are the pixels of an opaque picture, as a set has them.
func levelsOf(picture *image.NRGBA) []uint8 {
	var levels []uint8
	for i := 0; i < len(picture.Pix); i += 4 {
		levels = append(levels, picture.Pix[i:i+3]...)
	}
	return levels
}

func asPNG(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, picture); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func asJPEG(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, picture, nil); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// member is a file in a tar archive.
type member struct {
	name string
	data []byte
}

func archive(t testing.TB, members ...member) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// samplesOf are the members of n samples with PNG pictures; picture k is noise of
// seed first+k and its class is its seed modulo 10.
func samplesOf(t testing.TB, first, n, height, width int) []member {
	t.Helper()
	var members []member
	for k := first; k < first+n; k++ {
		members = append(members,
			member{fmt.Sprintf("%06d.png", k), asPNG(t, noise(uint64(k), height, width))},
			member{fmt.Sprintf("%06d.cls", k), fmt.Append(nil, k%10)})
	}
	return members
}

// cifarRecord is the bytes of a record of CIFAR-10.
const cifarRecord = 1 + 3*cifarPixels

// cifar100File is a binary file of CIFAR-100 whose record k has the levels of noise k and the class k modulo 100.
func cifar100File(first, n int) []byte {
	var out []byte
	for k := first; k < first+n; k++ {
		record := cifarBatch(k, 1)
		out = append(append(out, uint8(k%20), uint8(k%100)), record[1:]...)
	}
	return out
}

// cifarBatch is a binary batch whose record k has the levels of noise k.
func cifarBatch(first, n int) []byte {
	var out []byte
	for k := first; k < first+n; k++ {
		levels := levelsOf(noise(uint64(k), 32, 32))
		out = append(out, uint8(k%10))
		for c := range 3 {
			for i := range cifarPixels {
				out = append(out, levels[3*i+c])
			}
		}
	}
	return out
}

// write writes files below a new folder, by their paths in it.
func write(t testing.TB, files map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
